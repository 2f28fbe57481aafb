#include "cli/sampled/sampled_gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/counters.h"
#include "cli/gather.h"
#include "cli/iteration_times.h"
#include "network/fabric.h"
#include "traces/intervals.h"

namespace weft {

namespace {

std::vector<OperationRecord> operations_of(const Program& program, const std::vector<DemandFit>& fits,
                                           const SampledTimeline& quiet, const SampledTimeline& timeline) {
  const auto at = [&](SubCycle t) { return to_seconds(timeline.clock().to_time(t)); };
  std::vector<OperationRecord> records;
  for (std::uint32_t o = 0; o < program.ops.size(); ++o) {
    const ProgramOp& op = program.ops[o];
    if (op.kind == ProgramOpKind::host_wait) continue;
    OperationRecord record = recorded(op, o, timeline.times()[o], timeline.clock());
    if (op.kind == ProgramOpKind::kernel) {
      const OpTimes& undisturbed = quiet.times()[o];
      record.undisturbed_s = at(undisturbed.end - undisturbed.start);
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

void gather_collectives(const RunConfig& config, const Program& program, const Scripts& scripts,
                        const SampledTimeline& timeline, RunResult& result) {
  const double links = config.gpus > 1 ? link_rate(Fabric(config.system.network, config.gpus).topology(), 0) : 0;
  const auto at = [&](SubCycle t) { return to_seconds(timeline.clock().to_time(t)); };
  for (const Scripts::Collective& collective : scripts.collectives()) {
    if (collective.plan.ranks.empty()) continue;
    const OpId op = collective.members.front().second;
    const OpTimes& times = timeline.times()[op.value];
    CollectiveResult row = described(program.ops[op.value], collective);
    row.start_s = at(std::max(times.called, times.unblocked));
    row.end_s = at(times.end);
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

// By link of the whole system, the one that stands for it where one GPU stands for all.
std::vector<std::size_t> stand_ins(const std::vector<std::string>& names, const std::vector<std::string>& simulated) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < simulated.size(); ++i) places.emplace(simulated[i], i);
  std::vector<std::size_t> found;
  for (const std::string& name : names) {
    const std::size_t from = name.find("gpu");
    const std::size_t to = name.find_first_not_of("0123456789", from + 3);
    std::string folded = name;
    if (from != std::string::npos) folded.replace(from, std::min(to, name.size()) - from, "gpu0");
    const auto at = places.find(name);
    const auto instead = places.find(folded);
    found.push_back(at != places.end() ? at->second : instead != places.end() ? instead->second : simulated.size());
  }
  return found;
}

void gather_network(const RunConfig& config, const SampledTimeline& timeline, RunResult& result) {
  const Regime& sum = timeline.sum();
  const double end = to_seconds(timeline.clock().to_time(timeline.end()));
  if (config.gpus < 2 || sum.links.empty() || end <= 0) return;
  std::vector<std::string> names = link_names(Fabric(config.system.network, config.gpus).topology());
  const bool folded = sum.links.size() < names.size();
  const std::vector<std::string> simulated = folded ? link_names(Fabric(config.system.network, 1).topology()) : names;
  const std::vector<std::size_t> places = stand_ins(names, simulated);
  const auto share = [&](std::int64_t fs) { return static_cast<double>(fs) * 1e-15 / end; };
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (places[i] >= sum.links.size()) continue;
    const LinkLoad& load = sum.links[places[i]];
    result.links.push_back(
        {.name = names[i],
         .bytes = load.payload_bytes,
         .wire_bytes = load.wire_bytes,
         .busy_fraction = share(load.busy),
         .peak_fraction = std::min(1.0, to_seconds(Time(load.busiest)) / to_seconds(kStatisticsPeriod)),
         .stall_s = to_seconds(Time(load.stalled)),
         .queue_high_water_packets = load.queue_high_water});
  }
  const std::int64_t ports = folded ? config.gpus : 1;  // for each that was simulated
  for (std::size_t s = 0; s < sum.switches.size(); ++s) {
    const SwitchLoad& load = sum.switches[s];
    SwitchResult row;
    row.name = fmt::format("switch{}", s);
    row.reduced_bytes = load.reduced_bytes * ports;
    row.multicast_bytes = load.multicast_bytes * ports;
    row.table_high_water_bytes = load.table_high_water_bytes;
    row.table_stall_s = to_seconds(Time(load.stalled * ports));
    for (std::int64_t p = 0; p < ports; ++p) {
      for (const std::int64_t stalled : load.stalled_by_table) row.port_stall_s.push_back(to_seconds(Time(stalled)));
    }
    row.table_entries_opened = load.entries_opened * ports;
    row.table_refused = load.refused * ports;
    row.wasted_replies = load.wasted_replies * ports;
    row.table_evictions = load.evicted * ports;
    row.table_timeouts = load.timed_out * ports;
    row.table_mean_entries = load.entry_seconds * static_cast<double>(ports) / end;
    if (load.entries_opened > 0) row.table_residence_s = load.entry_seconds / static_cast<double>(load.entries_opened);
    if (config.system.switch_reduce && !row.port_stall_s.empty()) {
      const auto adders = static_cast<double>(row.port_stall_s.size()) * config.system.switch_reduce->adders.per_port;
      row.adder_busy_fraction = share(load.adders_busy * ports) / adders;
    }
    result.switches.push_back(row);
  }
}

}  // namespace

void gather_sampled(const RunConfig& config, const std::vector<Program>& programs, const Scripts& scripts,
                    const std::vector<DemandFit>& fits, const SampledTimeline& quiet, const SampledTimeline& timeline,
                    RunResult& result) {
  result.operations = operations_of(programs.front(), fits, quiet, timeline);
  place_beside_moving(result.operations);
  gather_collectives(config, programs.front(), scripts, timeline, result);
  gather_gpus(timeline, config.gpus, result);
  gather_network(config, timeline, result);
  gather_equal_counters(config, programs.front(), timeline.hbm(), timeline.times(), timeline.clock(),
                        timeline.clock().to_time(timeline.end()), result);
  // All GPUs are the first one: its times are the mean of all.
  RunConfig one = config;
  one.gpus = 1;
  gather_iterations(one, {programs.front()}, result);
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
