#include "cli/run/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/run/beside.h"
#include "cli/run/collective_phases.h"
#include "cli/run/counters.h"
#include "cli/run/iteration_times.h"
#include "sim/error.h"

namespace weft {

namespace {

double gigabytes(double bytes, double s) { return s > 0 ? bytes / s * 1e-9 : 0; }

// nccl-tests' doc/PERFORMANCE.md: what a collective of n ranks moves on a link, by the size it reports.
double bus_factor(CollectiveKind kind, double n) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:  // these two: its src/gather.cu and scatter.cu
    case CollectiveKind::scatter:
      return (n - 1) / n;
    default:
      return 1;
  }
}

// A kernel's time less its undisturbed one. Both ends are rounded up to femtoseconds, and so is a time between two
// cycles: one of these is none.
double added_seconds(Time taken, Time undisturbed) {
  const Time added = taken - undisturbed;
  return added >= Time(-1) && added <= Time(1) ? 0 : to_seconds(added);
}

void gather_operations(const std::vector<Program>& programs, const AlonePasses& alone, const Machine& machine,
                       RunResult& result) {
  for (std::uint32_t g = 0; g < machine.gpus(); ++g) {
    const Gpu& gpu = machine.gpu(g);
    for (std::uint32_t o = 0; o < programs[g].ops.size(); ++o) {
      const ProgramOp& op = programs[g].ops[o];
      if (op.kind == ProgramOpKind::host_wait) continue;
      const OpTimes& times = gpu.times()[o];
      if (times.end < 0) continue;  // it never ended: the run is stuck
      OperationRecord record = recorded(op, o, times, gpu.clock());
      record.gpu = g;
      if (op.kind == ProgramOpKind::kernel) {
        record.isolated_s = to_seconds(alone.of(g).fits[o].alone);
        const UndisturbedRun& undisturbed = alone.of(g).undisturbed;
        record.undisturbed_s = to_seconds(undisturbed.durations[o]);
        const Time taken = gpu.clock().to_time(times.end) - gpu.clock().to_time(times.began());
        record.causes = attribute(gpu.ledger(OpId{o}), gpu.clock(), added_seconds(taken, undisturbed.durations[o]),
                                  undisturbed.slow_clock.empty() ? 0 : undisturbed.slow_clock[o]);
      }
      result.operations.push_back(std::move(record));
    }
  }
}

void gather_collectives(const std::vector<Program>& programs, const Scripts& scripts, const Machine& machine,
                        RunResult& result) {
  for (const Scripts::Collective& collective : scripts.collectives()) {
    if (collective.plan.ranks.empty()) continue;
    const auto& [first_gpu, first_op] = collective.members.front();
    const ProgramOp& op = programs[first_gpu].ops[first_op.value];
    CollectiveResult row = described(op, collective);
    row.start_s = std::numeric_limits<double>::max();
    bool ended = true;
    double first_rank = row.start_s;
    double last_rank = 0;
    for (const auto& [gpu, member] : collective.members) {
      const ClockDomain& clock = machine.gpu(gpu).clock();
      const OpTimes& times = machine.gpu(gpu).times()[member.value];
      // From when nothing but launching it stood before its start: what nccl-tests times, and what a bucket waits.
      row.start_s = std::min(row.start_s, to_seconds(clock.to_time(std::max(times.called, times.unblocked))));
      row.end_s = std::max(row.end_s, to_seconds(clock.to_time(times.end)));
      first_rank = std::min(first_rank, to_seconds(clock.to_time(times.began())));
      last_rank = std::max(last_rank, to_seconds(clock.to_time(times.began())));
      ended = ended && times.end >= 0;
    }
    row.waiting_s = last_rank - first_rank;
    set_bandwidths(op.collective.kind, row);
    if (!ended) continue;
    check_bound(link_rate(machine.fabric()->topology(), first_gpu), row);
    result.collectives.push_back(std::move(row));
  }
}

std::optional<PowerResult> power_result(const Gpu& gpu, Time end) {
  const std::optional<PowerUse> use = gpu.power_use(end);
  if (!use) return std::nullopt;
  return PowerResult{use->joules, use->mean_W, use->highest_W, std::round(use->mean_clock_Hz) / 1e6,
                     std::round(use->lowest_clock_Hz) / 1e6};
}

void gather_gpus(const RunConfig& config, const Machine& machine, RunResult& result) {
  const double end = to_seconds(machine.end());
  for (std::uint32_t g = 0; g < machine.gpus(); ++g) {
    const Gpu& gpu = machine.gpu(g);
    GpuResult& row = result.gpus[g];
    row.chunks_summed = gpu.messages().chunks;
    row.chunks_sent_again = gpu.messages().retransmissions;
    row.id = g;
    const HbmBytes hbm = gpu.hbm_bytes();
    row.hbm_read_bytes = hbm.read;
    row.hbm_write_bytes = hbm.written;
    row.hbm_communication_bytes = hbm.communication;
    row.compute_unit_seconds_compute = gpu.statistics().unit_seconds_compute;
    row.compute_unit_seconds_communication = gpu.statistics().unit_seconds_communication;
    row.busy_fraction = end > 0 ? busy_seconds(result.operations, g) / end : 0;
    row.beside = beside_results(config, gpu.residents());
    row.power = power_result(gpu, machine.end());
    result.engine.memory_transactions += gpu.statistics().memory_transactions;
  }
}

// Those that sum.
void gather_routers(const RunConfig& config, const Machine& machine, RunResult& result) {
  if (machine.fabric() == nullptr || !config.system.network_reduce) return;
  const AggregationSpec& spec = *config.system.network_reduce;
  const double end = to_seconds(machine.end());
  for (std::size_t r = 0; r < machine.fabric()->routers(); ++r) {
    const Router& router = machine.fabric()->router(r);
    if (router.aggregator() == nullptr) continue;
    const AggregatorStatistics sums = router.aggregator()->statistics();
    SwitchResult row;
    row.name = machine.fabric()->topology().name(router.node());
    row.reduced_bytes = sums.reduced_bytes;
    row.table_high_water_bytes = std::int64_t{sums.high_water} * spec.slot_bytes;
    row.table_stall_s = to_seconds(sums.stalled);
    row.slots_high_water = sums.high_water;
    row.stalled_packets = sums.stalled_packets;
    row.duplicates = sums.duplicates;
    row.lost_packets = router.lost_packets();
    const auto adders = static_cast<double>(router.lanes()) * spec.adders.per_port;
    if (end > 0) row.adder_busy_fraction = to_seconds(sums.adders_busy) / (end * adders);
    result.switches.push_back(row);
  }
}

void gather_network(const RunConfig& config, const Machine& machine, RunResult& result) {
  const double end = to_seconds(machine.end());
  for (const Machine::Link& link : machine.links()) {
    const LaneStatistics& lane = *link.statistics;
    result.links.push_back({.name = link.name,
                            .bytes = lane.payload_bytes,
                            .wire_bytes = lane.wire_bytes,
                            .busy_fraction = end > 0 ? to_seconds(lane.busy) / end : 0,
                            .peak_fraction = std::min(1.0, to_seconds(lane.busiest()) / to_seconds(kStatisticsPeriod)),
                            .stall_s = to_seconds(lane.stalled),
                            .queue_high_water_packets = lane.queue_high_water});
    result.engine.packets += lane.packets;
  }
  for (std::size_t s = 0; s < machine.switches(); ++s) {
    const Switch& hub = machine.switch_at(s);
    SwitchResult row;
    row.name = fmt::format("switch{}", s);
    row.multicast_bytes = hub.statistics().multicast_bytes;
    if (hub.reducer() != nullptr) {
      const ReducerStatistics reducer = hub.reducer()->statistics();
      row.reduced_bytes = reducer.reduced_bytes;
      row.table_high_water_bytes = reducer.table_high_water_bytes;
      row.table_stall_s = to_seconds(reducer.stalled);
      for (const Time stalled : hub.reducer()->stalled_by_table()) row.port_stall_s.push_back(to_seconds(stalled));
      row.table_entries_opened = reducer.entries_opened;
      row.table_refused = reducer.refused;
      row.wasted_replies = reducer.wasted_replies;
      row.table_evictions = reducer.evicted;
      row.table_timeouts = reducer.timed_out;
      row.table_mean_entries = end > 0 ? reducer.entry_seconds / end : 0;
      if (reducer.entries_opened > 0) {
        row.table_residence_s = reducer.entry_seconds / static_cast<double>(reducer.entries_opened);
      }
      const auto adders = static_cast<double>(row.port_stall_s.size()) * config.system.switch_reduce->adders.per_port;
      if (end > 0) row.adder_busy_fraction = to_seconds(reducer.adders_busy) / (end * adders);
    }
    result.switches.push_back(row);
  }
  gather_routers(config, machine, result);
}

}  // namespace

OperationRecord recorded(const ProgramOp& op, std::uint32_t number, const OpTimes& times, const ClockDomain& clock) {
  OperationRecord record;
  record.stream = op.stream.value;
  record.op = number;
  record.iteration = op.iteration;
  record.name = op.name;
  record.phase = op.phase;
  record.communication = op.kind == ProgramOpKind::collective;
  record.start_s = to_seconds(clock.to_time(times.began()));
  record.end_s = to_seconds(clock.to_time(times.end));
  return record;
}

double link_rate(const Topology& topology, std::uint32_t gpu) {
  double rate = 0;
  for (std::uint32_t p = 0; p < topology.nodes()[gpu].ports; ++p) {
    const Cable& cable = topology.cables()[topology.out(gpu, p).cable];
    rate += cable.lanes * static_cast<double>(topology.classes()[cable.link_class].bandwidth.count()) * 1e-9;
  }
  return rate;
}

void check_bound(double links, const CollectiveResult& row) {
  const double used = row.algorithm == kInSwitch || row.algorithm == kInNetwork ? row.algbw_GBps : row.busbw_GBps;
  WEFT_CHECK(used <= links, fmt::format("{} {} of {} B: expected at most {:.1f} GB/s, the links of a GPU, got {:.1f}",
                                        row.algorithm, row.kind, row.bytes, links, used));
}

CollectiveResult described(const ProgramOp& op, const Scripts::Collective& collective) {
  CollectiveResult row;
  row.name = op.layer.empty() ? op.name : op.layer;
  row.kind = to_string(op.collective.kind);
  row.algorithm = collective.plan.algorithm;
  row.protocol = collective.plan.protocol;
  row.channels = collective.plan.channels;
  row.ranks = static_cast<std::uint32_t>(collective.members.size());
  // As nccl-tests counts sizes: the larger of what a rank gives and gets.
  const bool joins = op.collective.kind == CollectiveKind::all_gather || op.collective.kind == CollectiveKind::gather;
  row.bytes = op.collective.bytes.count() * (joins ? row.ranks : 1);
  return row;
}

void set_bandwidths(CollectiveKind kind, CollectiveResult& row) {
  row.algbw_GBps = gigabytes(static_cast<double>(row.bytes), row.end_s - row.start_s);
  row.busbw_GBps = row.algbw_GBps * bus_factor(kind, row.ranks);
}

SlowdownByCause attribute(const KernelLedger& ledger, const ClockDomain& clock, double added_s,
                          double undisturbed_slow_clock) {
  const auto in_seconds = [&](double t) { return to_seconds(clock.to_time(static_cast<SubCycle>(t))); };
  // Of what the chain of blocks stalled for memory, the share that its lines waited for communication.
  const double each = ledger.latency > 0 ? ledger.stall / ledger.latency : 0;
  const double slower = std::max(0.0, ledger.slow_clock - undisturbed_slow_clock);
  double units = in_seconds(ledger.held_by_pipe + slower + ledger.held_by_port * each);
  const double hbm = in_seconds(ledger.held_by_hbm * each);
  const double cache = in_seconds(ledger.held_by_cache * each);
  const double links = in_seconds(ledger.held_by_links);
  // A kernel that found places taken has more waves or fuller units: what memory does not explain, that does.
  if (ledger.displaced) units = std::max(units, added_s - hbm - cache - links);
  const double all = units + hbm + cache + links;
  if (all <= 0) return {.compute_units = added_s};  // nobody held it up: what is left is where its blocks were placed
  SlowdownByCause causes{.hbm = added_s * hbm / all, .cache = added_s * cache / all, .links = added_s * links / all};
  causes.compute_units = added_s - causes.hbm - causes.cache - causes.links;
  // Three subtractions, each of which rounds.
  if (std::abs(causes.compute_units) <= 3 * std::numeric_limits<double>::epsilon() * std::abs(added_s))
    causes.compute_units = 0;
  return causes;
}

void gather(const RunConfig& config, const std::vector<Program>& programs, const AlonePasses& alone,
            const Scripts& scripts, const Machine& machine, RunResult& result) {
  gather_operations(programs, alone, machine, result);
  place_beside(collective_phases(scripts, machine), result.operations);
  gather_collectives(programs, scripts, machine, result);
  gather_gpus(config, machine, result);
  note_beside(config, result);
  gather_network(config, machine, result);
  gather_counters(config, programs, machine, result);
  StepBounds steps;
  for (std::uint32_t g = 0; g < machine.gpus(); ++g)
    steps.add(programs[g], machine.gpu(g).times(), machine.gpu(g).clock());
  gather_iterations(config, programs, steps, result);
  // One GPU takes the program without communication: no other has a part of its work.
  if (result.samples_per_s) {
    const double one_gpu = to_seconds(alone.of(0).undisturbed.end) / programs.front().iterations;
    result.scaling_efficiency = one_gpu / result.iteration.time_s;
  }
}

}  // namespace weft
