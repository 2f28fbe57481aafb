#include "bench/gpu/model/simulate_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "gpu_model/kernels_in_a_row.h"

namespace weft {
namespace {

constexpr std::uint64_t kBase = std::uint64_t{1} << 28;
constexpr std::uint64_t kLoadBytes = 1024 * 16;  // what a block of 1024 threads loads at a time
constexpr std::uint32_t kLoadsAtATime = 4;

void print(const std::string& what, double measured, double simulated, const char* unit) {
  fmt::print("{:<44} {:9.2f} {:9.2f} {} {:+6.1f} %\n", what, measured, simulated, unit,
             100 * (simulated / measured - 1));
  std::fflush(stdout);
}

// Of kernels of one kind, the smallest first: by how much longer others take. What lies between two of them is in each.
class LongerThanShortest {
 public:
  void print(const std::string& what, double measured_us, double simulated_us) {
    if (!shortest_) {
      shortest_ = {measured_us, simulated_us};
    } else {
      weft::print(what, measured_us - shortest_->first, simulated_us - shortest_->second, "us more than the smallest");
    }
  }

 private:
  std::optional<std::pair<double, double>> shortest_;
};

// Blocks that take a unit each, of which each goes over a region.
KernelDemand a_unit_each(std::uint32_t blocks, std::uint64_t region) {
  KernelDemand demand;
  demand.shape.grid = {blocks, 1, 1};
  demand.shape.block = {1024, 1, 1};
  demand.shape.registers_per_thread = 32;
  demand.shape.shared_memory_bytes = 200 << 10;
  demand.iterations = static_cast<std::uint32_t>(region / kLoadBytes);
  demand.stages = kLoadsAtATime;
  return demand;
}

// Blocks that take a unit each go over regions of `bytes` in all, each region for `readers` of them. Blocks that go on
// take any unit, where the probe's keep theirs.
double regions_GBps(const GpuSpec& spec, std::uint64_t bytes, std::uint32_t blocks, std::uint32_t readers,
                    bool writes) {
  const std::uint32_t groups = blocks / readers;
  const std::uint64_t region = std::max<std::uint64_t>(bytes / groups / kLoadBytes, 1) * kLoadBytes;
  const auto repeats = static_cast<std::uint32_t>(std::clamp<std::uint64_t>((std::uint64_t{1} << 20) / region, 2, 16));
  KernelDemand demand = a_unit_each(blocks * repeats, region);
  (writes ? demand.writes : demand.reads).push_back({.base = kBase, .bytes_per_block = region, .modulo = groups});
  const double moved = static_cast<double>(region) * blocks * repeats;
  return moved / to_seconds(time_of_last(spec, {demand, demand})) * 1e-9;
}

// Of two kernels in turns over the same lines, by a block a unit, of which the second one reads: the mean.
double passed_on_us(const GpuSpec& spec, std::uint64_t bytes, bool first_writes) {
  const std::uint64_t region = bytes / spec.compute_units;
  KernelDemand second = a_unit_each(spec.compute_units, region);
  KernelDemand first = second;
  second.reads.push_back({.base = kBase, .bytes_per_block = region});
  (first_writes ? first.writes : first.reads) = second.reads;
  std::vector<KernelDemand> in_turns;
  for (int i = 0; i < 3; ++i) in_turns.insert(in_turns.end(), {first, second});
  double us = 1e6 * to_seconds(time_of_last(spec, in_turns));
  in_turns.push_back(first);
  us += 1e6 * to_seconds(time_of_last(spec, in_turns));
  return us / 2;
}

// An elementwise kernel with two tensors read and one written, one behind others like it.
double add_us(const GpuSpec& spec, std::uint64_t bytes) {
  constexpr std::uint64_t kPart = 2048;  // of 128 threads
  KernelDemand demand;
  const auto blocks = static_cast<std::uint32_t>(bytes / 3 / kPart);
  demand.shape.grid = {blocks, 1, 1};
  demand.shape.block = {128, 1, 1};
  demand.shape.registers_per_thread = 32;
  for (std::uint32_t t = 0; t < 3; ++t)
    (t < 2 ? demand.reads : demand.writes)
        .push_back({.base = kBase + t * (bytes / 3 + 4096), .bytes_per_block = kPart});
  return 1e6 * to_seconds(time_of_last(spec, std::vector<KernelDemand>(6, demand)));
}

}  // namespace

void print_cache(const Json& probe, const GpuSpec& spec) {
  const Json& cache = probe.at("cache");
  for (const Json& item : cache.at("same_lines")) {
    if (item.at("cluster") != 1 || item.at("lag_bytes") != 0) continue;
    const std::uint32_t readers = item.at("readers");
    print(fmt::format("{} units on the same lines", readers), item.at("GBps"),
          regions_GBps(spec, item.at("bytes"), item.at("blocks"), readers, false), "GB/s");
  }
  for (const Json& item : cache.at("footprints")) {
    if (item.at("rotation") == 0U) continue;
    const bool writes = item.at("operation") == "write";
    print(fmt::format("{:.1f} MiB {}, {} on", item.at("bytes").get<double>() / (1 << 20), writes ? "written" : "read",
                      item.at("rotation").get<int>()),
          item.at("GBps"), regions_GBps(spec, item.at("bytes"), item.at("blocks"), 1, writes), "GB/s");
  }
  for (const std::string first : {"read", "write"}) {
    LongerThanShortest passed_on;
    for (const Json& item : cache.at("passed_on")) {
      if (item.at("shift") != 0U || item.at("first") != first) continue;
      passed_on.print(fmt::format("{:.1f} MiB passed on, first {}", item.at("bytes").get<double>() / (1 << 20), first),
                      item.at("us"), passed_on_us(spec, item.at("bytes"), first == "write"));
    }
  }
  LongerThanShortest adds;
  for (const Json& item : cache.at("adds")) {
    if (!item.at("aggressor").is_null()) continue;
    adds.print(fmt::format("add of {} MiB", item.at("bytes").get<std::uint64_t>() >> 20), item.at("us").at("median"),
               add_us(spec, item.at("bytes")));
  }
}

}  // namespace weft
