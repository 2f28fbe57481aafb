#include "cli/run/collective_times.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/run/machine.h"
#include "cli/run/scripts.h"
#include "cli/run/standstill.h"
#include "sim/error.h"
#include "workloads/address_plan.h"

namespace weft {

namespace {

// Every collective of `wanted` once, each after the one before has ended on its ranks.
std::vector<Program> one_after_another(const std::vector<CollectiveSignature>& wanted, std::size_t gpus) {
  std::vector<Program> programs(gpus);
  for (Program& program : programs) program.priorities = {0};
  std::map<GpuGroup, std::uint32_t> sequences;
  for (const CollectiveSignature& one : wanted) {
    ProgramOp op;
    op.kind = ProgramOpKind::collective;
    op.name = to_string(one.kind);
    op.collective = {.kind = one.kind,
                     .bytes = Bytes(one.bytes),
                     .type = one.type,
                     .group = one.group,
                     .root = one.root,
                     .sequence = sequences[one.group]++,
                     .send_address = kFirstAddress,
                     .receive_address = kFirstAddress};
    for (const GpuId gpu : one.group) {
      std::vector<ProgramOp>& ops = programs[gpu.value].ops.edit();
      ops.push_back(op);
      ProgramOp wait;
      wait.kind = ProgramOpKind::host_wait;
      wait.waits = {OpId{static_cast<std::uint32_t>(ops.size() - 1)}};
      ops.push_back(wait);
    }
  }
  return programs;
}

void keep_each_once(std::vector<CollectiveSignature>& wanted) {
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
}

CollectiveSignature barrier_of(const GpuGroup& group) {
  return {.kind = CollectiveKind::barrier, .bytes = 0, .type = DataType::fp32, .root = 0, .group = group};
}

}  // namespace

std::map<CollectiveSignature, Time> times_by_themselves(const RunConfig& config,
                                                        std::vector<CollectiveSignature> wanted) {
  keep_each_once(wanted);
  const std::vector<Program> programs = one_after_another(wanted, config.gpus);
  const Scripts scripts(config, programs);
  std::vector<GpuWork> work;
  for (std::size_t g = 0; g < programs.size(); ++g) work.push_back(scripts.work(g));
  // Without SystemC, which allows one elaboration a process.
  Machine machine(config.system, work, scripts.multicast_groups(), {}, scripts.aggregation_groups(), config.seed);
  machine.run_until_asleep(1);
  std::map<CollectiveSignature, Time> times;
  for (const Scripts::Collective& collective : scripts.collectives()) {
    Time last_start, end;
    for (const auto& [gpu, op] : collective.members) {
      const OpTimes& t = machine.gpu(gpu).times()[op.value];
      if (t.end < 0) {
        throw InputError(fmt::format("{}: expected that it ends by itself, got a deadlock: {}",
                                     programs[gpu].ops[op.value].name,
                                     why_at_a_standstill(machine, programs, scripts.collectives())));
      }
      last_start = std::max(last_start, machine.gpu(gpu).clock().to_time(t.start));
      end = std::max(end, machine.gpu(gpu).clock().to_time(t.end));
    }
    const auto& [gpu, op] = collective.members.front();
    times[signature_of(programs[gpu].ops[op.value].collective)] = end - last_start;
  }
  return times;
}

CollectiveSignature signature_of(const CollectiveDemand& demand) {
  return {demand.kind, demand.bytes.count(), demand.type, demand.root, demand.group};
}

std::map<CollectiveSignature, CollectiveTime> collective_times(const RunConfig& config,
                                                               const std::vector<Program>& programs) {
  std::vector<CollectiveSignature> wanted;
  for (const Program& program : programs) {
    for (const ProgramOp& op : program.ops) {
      if (op.kind != ProgramOpKind::collective) continue;
      wanted.push_back(signature_of(op.collective));
      wanted.push_back(barrier_of(op.collective.group));
    }
  }
  // Groups that share a GPU come in the same order on it, so none waits for good.
  const std::map<CollectiveSignature, Time> times = times_by_themselves(config, std::move(wanted));
  std::map<CollectiveSignature, CollectiveTime> found;
  for (const auto& [signature, moving] : times) found[signature] = {moving, times.at(barrier_of(signature.group))};
  return found;
}

}  // namespace weft
