#include "cli/sampled/sampled_gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/run/counters.h"
#include "cli/run/gather.h"
#include "cli/run/iteration_times.h"
#include "network/network.h"
#include "traces/intervals.h"

namespace weft {

namespace {

// By operation: a collective behind which the next one of its stream only waited for its turn. Who is through early
// goes on with that, so it communicates on.
std::vector<bool> collectives_in_a_row(const Program& program, const LaunchSpec& launch,
                                       const SampledTimeline& timeline) {
  const Time latency = std::max(launch.device_latency, launch.graph_node);
  std::vector<bool> in_a_row(program.ops.size(), false);
  std::vector<const OpTimes*> next(program.priorities.size(), nullptr);  // by stream; null: it is no collective
  for (std::size_t o = program.ops.size(); o-- > 0;) {
    const ProgramOp& op = program.ops[o];
    if (op.kind == ProgramOpKind::host_wait) continue;
    const OpTimes& times = timeline.times()[o];
    const OpTimes*& behind = next[op.stream.value];
    const bool collective = op.kind == ProgramOpKind::collective;
    in_a_row[o] =
        collective && behind != nullptr && behind->start - times.end <= timeline.clock().to_subcycles(latency);
    behind = collective && op.start_delay == Time() ? &times : nullptr;
  }
  return in_a_row;
}

// An iteration ends when the last GPU is through with it.
StepBounds bounds_of(const Program& program, const SampledTimeline& timeline) {
  const auto at = [&](SubCycle t) { return to_seconds(timeline.clock().to_time(t)); };
  StepBounds bounds;
  bounds.add(program, timeline.times(), timeline.clock());
  for (std::uint32_t o = 0; o < program.ops.size(); ++o) {
    const ProgramOp& op = program.ops[o];
    if (op.kind != ProgramOpKind::host_wait) bounds.end(op.iteration, at(timeline.times()[o].end + timeline.late(o)));
  }
  return bounds;
}

std::vector<OperationRecord> operations_of(const Program& program, const LaunchSpec& launch,
                                           const std::vector<DemandFit>& fits, const SampledTimeline& quiet,
                                           const SampledTimeline& timeline) {
  const std::vector<bool> in_a_row = collectives_in_a_row(program, launch, timeline);
  const auto at = [&](SubCycle t) { return to_seconds(timeline.clock().to_time(t)); };
  std::vector<OperationRecord> records;
  for (std::uint32_t o = 0; o < program.ops.size(); ++o) {
    const ProgramOp& op = program.ops[o];
    if (op.kind == ProgramOpKind::host_wait) continue;
    OperationRecord record = recorded(op, o, timeline.times()[o], timeline.clock());
    if (!in_a_row[o]) record.early_s = at(timeline.early(o));
    if (op.kind == ProgramOpKind::kernel) {
      const OpTimes& undisturbed = quiet.times()[o];
      record.undisturbed_s = at(undisturbed.end - undisturbed.began());
      record.isolated_s = fits.empty() ? *record.undisturbed_s : to_seconds(fits[o].alone);
      record.causes =
          attribute(timeline.ledger(o), timeline.clock(), record.end_s - record.start_s - *record.undisturbed_s);
    }
    records.push_back(std::move(record));
  }
  return records;
}

// All ranks come at the same time: a collective moves data as long as it runs.
void place_beside_moving(std::vector<OperationRecord>& operations) {
  std::vector<Interval> moving;
  for (const OperationRecord& op : operations) {
    if (op.communication) moving.push_back({seconds(op.start_s), seconds(op.end_s)});
  }
  moving = union_of(std::move(moving));
  for (OperationRecord& op : operations) {
    if (op.communication) continue;
    op.beside_moving_s = to_seconds(overlap({{seconds(op.start_s), seconds(op.end_s)}}, moving));
  }
}

// Of a collective, after the times of the mean GPU.
struct Members {
  SubCycle first_began = 0, last_began = 0, last_ended = 0;
};
Members members_of(const Scripts::Collective& collective, const SampledTimeline& timeline) {
  const std::uint32_t op = collective.members.front().second.value;
  const std::vector<SubCycle>& began = timeline.began_later(op);
  const std::vector<SubCycle>& ended = timeline.ended_later(op);
  if (began.empty()) return {0, 0, timeline.late(op)};
  const auto first = collective.members.front().first;
  Members found{began[first], began[first], ended[first]};
  for (const auto& [gpu, member] : collective.members) {
    found.first_began = std::min(found.first_began, began[gpu]);
    found.last_began = std::max(found.last_began, began[gpu]);
    found.last_ended = std::max(found.last_ended, ended[gpu]);
  }
  return found;
}

void gather_collectives(const Program& program, const Scripts& scripts, double links, const SampledTimeline& timeline,
                        RunResult& result) {
  const auto at = [&](SubCycle t) { return to_seconds(timeline.clock().to_time(t)); };
  for (const Scripts::Collective& collective : scripts.collectives()) {
    if (collective.plan.ranks.empty()) continue;
    const OpId op = collective.members.front().second;
    const OpTimes& times = timeline.times()[op.value];
    CollectiveResult row = described(program.ops[op.value], collective);
    const Members members = members_of(collective, timeline);
    row.start_s = at(std::max(times.called, times.unblocked) + members.first_began);
    row.end_s = at(times.end + members.last_ended);
    row.waiting_s = at(members.last_began - members.first_began);
    set_bandwidths(program.ops[op.value].collective.kind, row);
    check_bound(links, row);
    result.collectives.push_back(std::move(row));
  }
}

void gather_gpus(const SampledTimeline& timeline, std::uint32_t gpus, RunResult& result) {
  const Regime& sum = timeline.sum();
  const double end = to_seconds(timeline.clock().to_time(timeline.end()));
  const double busy = end > 0 ? busy_seconds(result.operations, 0) / end : 0;
  result.gpus.resize(gpus);
  for (std::uint32_t g = 0; g < gpus; ++g) {
    GpuResult& row = result.gpus[g];
    row.id = g;
    row.hbm_read_bytes = sum.hbm_read_bytes;
    row.hbm_write_bytes = sum.hbm_write_bytes;
    row.hbm_communication_bytes = sum.hbm_communication_bytes;
    row.compute_unit_seconds_compute = sum.unit_seconds_compute;
    row.compute_unit_seconds_communication = sum.unit_seconds_communication;
    row.busy_fraction = busy;
  }
}

void gather_network(const RunConfig& config, const Topology& topology, const SampledTimeline& timeline,
                    RunResult& result) {
  const double end = to_seconds(timeline.clock().to_time(timeline.end()));
  if (timeline.network().empty() || end <= 0) return;
  const NetworkLoad all = loads_of_all(config.system.network, topology, config.gpus, timeline.network());
  const std::vector<std::string> names = link_names(topology);
  const auto share = [&](std::int64_t fs) { return static_cast<double>(fs) * 1e-15 / end; };
  result.links.reserve(names.size());
  for (std::size_t i = 0; i < all.links.size(); ++i) {
    const LinkLoad& load = all.links[i];
    result.links.push_back(
        {.name = names[i],
         .bytes = load.payload_bytes,
         .wire_bytes = load.wire_bytes,
         .busy_fraction = share(load.busy),
         .peak_fraction = std::min(1.0, to_seconds(Time(load.busiest)) / to_seconds(kStatisticsPeriod)),
         .stall_s = to_seconds(Time(load.stalled)),
         .queue_high_water_packets = load.queue_high_water});
  }
  for (std::size_t s = 0; s < all.switches.size(); ++s) {
    const SwitchLoad& load = all.switches[s];
    SwitchResult row;
    row.name = fmt::format("switch{}", s);
    row.reduced_bytes = load.reduced_bytes;
    row.multicast_bytes = load.multicast_bytes;
    row.table_high_water_bytes = load.table_high_water_bytes;
    row.table_stall_s = to_seconds(Time(load.stalled));
    for (const std::int64_t stalled : load.stalled_by_table) row.port_stall_s.push_back(to_seconds(Time(stalled)));
    row.table_entries_opened = load.entries_opened;
    row.table_refused = load.refused;
    row.wasted_replies = load.wasted_replies;
    row.table_evictions = load.evicted;
    row.table_timeouts = load.timed_out;
    row.table_mean_entries = load.entry_seconds / end;
    if (load.entries_opened > 0) row.table_residence_s = load.entry_seconds / static_cast<double>(load.entries_opened);
    if (config.system.switch_reduce && !row.port_stall_s.empty()) {
      const auto adders = static_cast<double>(row.port_stall_s.size()) * config.system.switch_reduce->adders.per_port;
      row.adder_busy_fraction = share(load.adders_busy) / adders;
    }
    result.switches.push_back(row);
  }
}

}  // namespace

void gather_sampled(const RunConfig& config, const std::vector<Program>& programs, const Scripts& scripts,
                    const std::vector<DemandFit>& fits, const SampledTimeline& quiet, const SampledTimeline& timeline,
                    RunResult& result) {
  result.operations = operations_of(programs.front(), config.system.gpu.launch, fits, quiet, timeline);
  place_beside_moving(result.operations);
  const auto network = config.gpus > 1 ? make_network(config.system.network, config.gpus) : nullptr;
  gather_collectives(programs.front(), scripts, network ? link_rate(network->topology, 0) : 0, timeline, result);
  gather_gpus(timeline, config.gpus, result);
  if (network) gather_network(config, network->topology, timeline, result);
  gather_equal_counters(config, programs.front(), timeline.hbm(), timeline.times(), timeline.clock(),
                        timeline.clock().to_time(timeline.end()), result);
  // All GPUs are the first one: its times are the mean of all.
  RunConfig one = config;
  one.gpus = 1;
  gather_iterations(one, {programs.front()}, bounds_of(programs.front(), timeline), result);
  for (auto* rate : {&result.samples_per_s, &result.tokens_per_s}) {
    if (*rate) **rate *= config.gpus;
  }
  if (result.samples_per_s) {
    const double alone = to_seconds(quiet.clock().to_time(quiet.end())) / programs.front().iterations;
    result.scaling_efficiency = alone / result.iteration.time_s;
  }
  const std::size_t each = result.operations.size();
  const std::uint32_t listed = std::min(config.gpus, kListedGpus);
  result.operations.reserve(each * listed);
  for (std::uint32_t g = 1; g < listed; ++g) {
    for (std::size_t i = 0; i < each; ++i) {
      OperationRecord copy = result.operations[i];
      copy.gpu = g;
      result.operations.push_back(std::move(copy));
    }
  }
  if (listed < config.gpus) {
    result.notes.push_back(fmt::format("Operations are listed of {} GPUs: those of the others are the same.", listed));
  }
}

}  // namespace weft
