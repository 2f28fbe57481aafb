#include "cli/sampled/observed_regime.h"

#include <algorithm>
#include <cmath>

#include "cli/sampled/gpus_apart.h"

namespace weft {

namespace {

// Lines of other GPUs by those that were simulated: what links and switches carried grows with them.
double left_out_factor(const Machine& machine) {
  double simulated = 0;
  double left_out = 0;
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    simulated += static_cast<double>(machine.gpu(g).remote_lines());
    left_out += static_cast<double>(machine.gpu(g).remote_lines_left_out());
  }
  return simulated > 0 ? (simulated + left_out) / simulated : 1;
}

LinkLoad load_of(const LaneStatistics& lane, double factor) {
  const auto grown = [&](std::int64_t value) { return std::llround(static_cast<double>(value) * factor); };
  return {grown(lane.payload_bytes),     grown(lane.wire_bytes),      grown(lane.packets),  grown(lane.busy.count()),
          grown(lane.busiest().count()), grown(lane.stalled.count()), lane.queue_high_water};
}

SwitchLoad load_of(const Switch& hub, double factor) {
  const auto grown = [&](std::int64_t value) { return std::llround(static_cast<double>(value) * factor); };
  SwitchLoad load;
  load.multicast_bytes = grown(hub.statistics().multicast_bytes);
  if (hub.reducer() == nullptr) return load;
  const ReducerStatistics r = hub.reducer()->statistics();
  load.reduced_bytes = grown(r.reduced_bytes);
  load.table_high_water_bytes = r.table_high_water_bytes;
  load.stalled = grown(r.stalled.count());
  load.adders_busy = grown(r.adders_busy.count());
  load.entries_opened = grown(r.entries_opened);
  load.refused = grown(r.refused);
  load.wasted_replies = grown(r.wasted_replies);
  load.evicted = grown(r.evicted);
  load.timed_out = grown(r.timed_out);
  load.entry_seconds = r.entry_seconds * factor;
  for (const Time stalled : hub.reducer()->stalled_by_table()) load.stalled_by_table.push_back(grown(stalled.count()));
  return load;
}

SubCycle mean_until_began(const Machine& machine, std::uint32_t op) {
  SubCycle all = 0;
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    const OpTimes& times = machine.gpu(g).times()[op];
    all += times.began() - times.start;
  }
  return all / static_cast<SubCycle>(machine.gpus());
}

// The first GPU may have gone on while others caught up.
bool all_ended(const Machine& machine, std::uint32_t op) {
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    if (machine.gpu(g).times()[op].end < 0) return false;
  }
  return true;
}

// When the last GPU is through, and when they are in the mean, or the first one is.
struct Ends {
  SubCycle last = 0, mean = 0;
};
Ends ends_of(const Machine& machine, std::uint32_t op, bool of_first) {
  Ends ends;
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    const SubCycle end = machine.gpu(g).times()[op].end;
    ends.last = std::max(ends.last, end);
    ends.mean += end;
  }
  ends.mean = of_first ? machine.gpu(0).times()[op].end : ends.mean / static_cast<SubCycle>(machine.gpus());
  return ends;
}

// The last operation, until the last GPU is through with all: in the mean they are idle before.
void wait_for_others(const Machine& machine, std::uint32_t first, bool of_first, Regime& regime) {
  std::size_t last = 0;
  Ends of_all;
  for (std::size_t i = 0; i < regime.operations.size(); ++i) {
    if (regime.operations[i].duration < 0) continue;
    const Ends ends = ends_of(machine, first + static_cast<std::uint32_t>(i), of_first);
    of_all.last = std::max(of_all.last, ends.last);
    if (ends.mean <= of_all.mean) continue;
    of_all.mean = ends.mean;
    last = i;
  }
  Regime::Operation& op = regime.operations[last];
  op.early = of_all.last - of_all.mean;
  op.duration += op.early;
  op.late = 0;
}

}  // namespace

SubCycle mean_duration(const Machine& machine, std::uint32_t op) {
  SubCycle all = 0;
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    const OpTimes& times = machine.gpu(g).times()[op];
    all += times.end - times.start;
  }
  return all / static_cast<SubCycle>(machine.gpus());
}

Regime observed_regime(const Machine& machine, const Program& program, const HostState& from, std::uint32_t end,
                       Waits waits, bool of_first) {
  Regime regime;
  const Gpu& gpu = machine.gpu(0);
  for (std::uint32_t i = from.first.value; i < end; ++i) {
    const OpTimes& first = gpu.times()[i];
    if (had_ended(program, from, i) || !all_ended(machine, i)) {
      regime.operations.push_back({.duration = -1, .ledger = {}});
      continue;
    }
    Regime::Operation op{.duration = first.end - first.start, .ledger = gpu.ledger(OpId{i})};
    const SubCycle mean = mean_duration(machine, i);
    const bool collective = program.ops[i].kind == ProgramOpKind::collective;
    const Ends ends = ends_of(machine, i, of_first);
    if (waits == Waits::each_collective && collective) {
      op.duration = ends.last - first.start;
      op.early = op.duration - mean;
    } else if (waits != Waits::at_the_end || !of_first) {
      op.duration = mean;
    }
    if (waits != Waits::each_collective && collective) op.late = ends.last - ends.mean;
    if (waits == Waits::never && collective) {
      for (std::size_t g = 0; g < machine.gpus(); ++g) {
        const OpTimes& times = machine.gpu(g).times()[i];
        op.began.push_back(times.start - (ends.mean - mean));
        op.ended.push_back(times.end - ends.mean);
      }
    }
    op.behind = std::min(op.duration, of_first ? first.began() - first.start : mean_until_began(machine, i));
    regime.operations.push_back(op);
  }
  if (waits == Waits::at_the_end) wait_for_others(machine, from.first.value, of_first, regime);
  if (waits == Waits::never) regime.apart = apart_after(machine, regime, from.first.value);
  const HbmBytes hbm = gpu.hbm_bytes();
  const GpuProgress& left_out = gpu.skipped();
  regime.hbm_read_bytes = hbm.read + left_out.hbm_read_bytes;
  regime.hbm_write_bytes = hbm.written + left_out.hbm_write_bytes;
  regime.hbm_communication_bytes = hbm.communication + left_out.hbm_communication_bytes;
  regime.unit_seconds_compute = gpu.statistics().unit_seconds_compute + left_out.unit_seconds_compute;
  regime.unit_seconds_communication = gpu.statistics().unit_seconds_communication;
  const double factor = left_out_factor(machine);
  regime.gpus = static_cast<std::uint32_t>(machine.gpus());
  for (const Machine::Link& link : machine.links()) regime.links.push_back(load_of(*link.statistics, factor));
  for (std::size_t s = 0; s < machine.switches(); ++s) {
    regime.switches.push_back(load_of(machine.switch_at(s), factor));
  }
  return regime;
}

}  // namespace weft
