#include "cli/run/counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "workloads/memory_plan.h"

namespace weft {

namespace {

constexpr double kBytesPerGiB = 1024.0 * 1024 * 1024;

// The bins of a run: all of the same width.
struct Bins {
  explicit Bins(Time end)
      : doublings(time_bin_doublings(end)),
        width(kShortestTimeBin * (std::int64_t{1} << doublings)),
        count(static_cast<std::size_t>(end / width + (end > width * (end / width) ? 1 : 0))) {}
  [[nodiscard]] std::size_t of(Time t) const { return std::min(count - 1, static_cast<std::size_t>(t / width)); }

  int doublings;
  Time width;
  std::size_t count;
};

CounterTrack track(const Bins& bins, CounterKind kind, std::string name, std::string unit, double limit) {
  CounterTrack made;
  made.name = std::move(name);
  made.unit = std::move(unit);
  made.period_s = to_seconds(bins.width);
  made.values.resize(bins.count);
  made.kind = kind;
  made.limit = limit;
  return made;
}

// Each amount times `factor`. What is counted when it begins, and goes beyond the end of its bin, belongs to the next:
// no bin has more than `most`.
void fill(CounterTrack& track, const std::vector<std::int64_t>& amounts, double factor, double most) {
  double beyond = 0;
  for (std::size_t i = 0; i < track.values.size(); ++i) {
    const double all = beyond + (i < amounts.size() ? static_cast<double>(amounts[i]) * factor : 0);
    track.values[i] = std::min(all, most);
    beyond = all - track.values[i];
  }
}

void gather_hbm(const RunConfig& config, const Bins& bins, const HbmOverTime& series, std::uint32_t number,
                RunResult& result) {
  const double limit = static_cast<double>(config.system.gpu.hbm.bandwidth.count()) * 1e-9;
  const double most = config.private_parts.hbm ? 2 * limit : limit;
  for (const auto& [name, amounts] : {std::pair("HBM read", &series.read), std::pair("HBM write", &series.written),
                                      std::pair("HBM communication", &series.communication)}) {
    CounterTrack made = track(bins, CounterKind::hbm, name, "GB/s", limit);
    made.gpu = number;
    fill(made, amounts->amounts(bins.doublings), 1e-9 / made.period_s, most);
    result.counters.push_back(std::move(made));
  }
}

// What is allocated, by class, in the moment of each bin in which that is most.
void gather_memory(const RunConfig& config, const Bins& bins, const Program& program, const std::vector<OpTimes>& times,
                   const ClockDomain& clock, const GpuResult& row, RunResult& result) {
  if (program.memory.empty()) return;
  using Held = std::array<Bytes, kMemoryClassCount>;
  const auto total = [](const Held& held) {
    Bytes sum;
    for (const Bytes bytes : held) sum += bytes;
    return sum;
  };
  Held held{};
  // The communication library's buffers are there all the time.
  held[static_cast<std::size_t>(MemoryClass::communication)] =
      Bytes(*row.peak_memory_bytes) - peak_memory(program).total;
  std::vector<Held> most(bins.count, held);
  std::size_t bin = 0;
  for (const MemoryEvent& event : program.memory) {
    const SubCycle start = times[event.op.value].start;
    if (start < 0) break;  // the run is stuck
    // Operations of several streams start in another order than they were planned in: what is planned later is later.
    const std::size_t at = std::max(bin, bins.of(clock.to_time(start)));
    while (bin < at) most[++bin] = held;
    held[static_cast<std::size_t>(event.memory_class)] += event.bytes;
    if (total(held) > total(most[bin])) most[bin] = held;
  }
  while (bin + 1 < bins.count) most[++bin] = held;
  for (std::size_t c = 0; c < kMemoryClassCount; ++c) {
    if (std::all_of(most.begin(), most.end(), [c](const Held& at) { return at[c] == Bytes(0); })) continue;
    CounterTrack made =
        track(bins, CounterKind::memory, std::string("memory ") + to_string(static_cast<MemoryClass>(c)), "GiB",
              static_cast<double>(config.system.gpu.hbm.bytes) / kBytesPerGiB);
    made.gpu = row.id;
    for (std::size_t i = 0; i < bins.count; ++i) {
      made.values[i] = static_cast<double>(most[i][c].count()) / kBytesPerGiB;
    }
    result.counters.push_back(std::move(made));
  }
}

// The GPU whose link it is: of two GPUs, that which sends.
std::optional<std::uint32_t> gpu_of(const Topology& topology, LinkId link) {
  for (const std::uint32_t node : {topology.from(link), topology.to(link)}) {
    if (topology.nodes()[node].kind == TopologyNodeKind::gpu) return topology.nodes()[node].number;
  }
  return std::nullopt;
}

// Returns how many have no counter.
std::size_t gather_links(const Bins& bins, const Machine& machine, RunResult& result) {
  const std::vector<Machine::Link> lanes = machine.links();
  std::size_t left_out = 0;
  for (std::size_t first = 0, last = 0; first < lanes.size(); first = last) {
    while (last < lanes.size() && lanes[last].link == lanes[first].link) ++last;
    if (lanes[first].load == nullptr) {
      ++left_out;
      continue;
    }
    TimeBins load = *lanes[first].load;
    for (std::size_t l = first; l < last; ++l) lanes[l].statistics->count_open_bin(load);
    const Topology& topology = machine.fabric()->topology();
    CounterTrack made = track(bins, CounterKind::link, topology.name(lanes[first].link), "%", 100);
    made.gpu = gpu_of(topology, lanes[first].link);
    fill(made, load.amounts(bins.doublings),
         100 / (static_cast<double>(bins.width.count()) * static_cast<double>(last - first)), 100);
    result.counters.push_back(std::move(made));
  }
  return left_out;
}

// By windows of the power, whole ones only.
void gather_power(const RunConfig& config, const Gpu& gpu, Time end, std::uint32_t number, RunResult& result) {
  const std::optional<PowerUse> use = gpu.power_use(end);
  if (!use || use->window_W.empty()) return;
  CounterTrack power{.name = "power", .unit = "W", .period_s = use->window_s, .values = use->window_W, .gpu = number};
  power.kind = CounterKind::power;
  power.limit = config.system.gpu.power->limit_W;
  CounterTrack clock{.name = "clock", .unit = "MHz", .period_s = use->window_s, .values = {}, .gpu = number};
  clock.kind = CounterKind::clock;
  for (const double hertz : use->window_Hz) clock.values.push_back(std::round(hertz) / 1e6);
  clock.limit = static_cast<double>(config.system.gpu.clock.count()) / 1e6;
  result.counters.push_back(std::move(power));
  result.counters.push_back(std::move(clock));
}

}  // namespace

void gather_counters(const RunConfig& config, const std::vector<Program>& programs, const Machine& machine,
                     RunResult& result) {
  const Bins bins(machine.end());
  if (bins.count == 0) return;
  const std::size_t gpus = std::min<std::size_t>(machine.gpus(), HbmOverTime::kMostGpus);
  for (std::uint32_t g = 0; g < gpus; ++g) {
    const Gpu& gpu = machine.gpu(g);
    gather_hbm(config, bins, gpu.hbm_over_time(), g, result);
    gather_memory(config, bins, programs[g], gpu.times(), gpu.clock(), result.gpus[g], result);
    gather_power(config, gpu, machine.end(), g, result);
  }
  const std::size_t left_out = gather_links(bins, machine, result);
  if (gpus < machine.gpus() || left_out > 0) {
    result.notes.push_back(fmt::format(
        "Counters over time are kept of the first {} of {} GPUs; {} links, the last of the network, have none.", gpus,
        machine.gpus(), left_out));
  }
}

void gather_equal_counters(const RunConfig& config, const Program& program, const HbmOverTime& hbm,
                           const std::vector<OpTimes>& times, const ClockDomain& clock, Time end, RunResult& result) {
  const Bins bins(end);
  if (bins.count == 0) return;
  const std::size_t gpus = std::min<std::size_t>(result.gpus.size(), HbmOverTime::kMostGpus);
  for (std::uint32_t g = 0; g < gpus; ++g) {
    gather_hbm(config, bins, hbm, g, result);
    gather_memory(config, bins, program, times, clock, result.gpus[g], result);
  }
}

}  // namespace weft
