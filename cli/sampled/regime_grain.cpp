// At which grain the lab tells a collective by itself.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cli/sampled/coarse_system.h"
#include "cli/sampled/regime_lab.h"
#include "gpu_model/coarse_gpu.h"
#include "gpu_model/coarse_programs.h"
#include "network/network.h"

namespace weft {

RunConfig RegimeLab::config_at(std::uint32_t grain) const {
  RunConfig config = *config_;
  config.collective.grain = grain;
  return config;
}

SystemSpec RegimeLab::system_at(std::uint32_t grain) const {
  return grain == 1 ? config_->system : coarse(config_->system, config_->gpus, grain);
}

RegimeLab::Grain& RegimeLab::at_grain(std::uint32_t grain) {
  const auto [at, fresh] = grains_.try_emplace(grain);
  Grain& found = at->second;
  if (!fresh) return found;
  found.config = config_at(grain);
  found.system = system_at(grain);
  found.folded.emplace(found.config, *programs_);
  if (!found.folded->why_not().empty()) found.each.emplace(found.config, *programs_);
  return found;
}

bool RegimeLab::flows_meet() const {
  switch (config_->system.network.topology) {
    case TopologyKind::ring:
    case TopologyKind::mesh:
    case TopologyKind::torus:
    case TopologyKind::hypercube:
    case TopologyKind::dragonfly:
    case TopologyKind::graph:
      return true;
    default:  // of a hybrid cube mesh few do (docs/validation.md)
      return false;
  }
}

// Long messages: of short ones, beginnings and ends are most. Nor where messages pass routers, nor all pairs of a
// cluster: long trains that meet hold each other up (docs/validation.md).
// Very long ones may be coarser still, but where one GPU stands for all: such a run is short at a finer grain, too. How
// long for how coarse a line is a choice (docs/validation.md, Long collectives).
std::uint32_t RegimeLab::grain_of(OpId collective) {
  constexpr std::int64_t kBytes = 4 << 20;
  constexpr std::uint32_t kCoarsestOfMost = 8;
  constexpr std::int64_t kBytesOfVeryLong = 32 << 20;
  // Rings that share links, on a GPU that stands for all (docs/validation.md).
  constexpr std::uint32_t kCoarsestOfShared = 4;
  constexpr std::int64_t kBytesOfShared = 8 << 20;
  // Of loads that a switch sums, fewer in flight will do, but where trains are long: klenk16 then is 6 % too slow.
  constexpr std::uint32_t kFewestSums = 8;
  constexpr double kShortTrain = 4;
  const CollectiveDemand& demand = programs_->front().ops[collective.value].collective;
  const ScriptedKernel* kernel = scripts_->work(0).scripts[collective.value];
  const NetworkSpec& network = config_->system.network;
  const bool pairs_meet = network.cluster || (network.topology != TopologyKind::switched &&
                                              network.topology != TopologyKind::fully_connected);
  if (kernel == nullptr || kernel->programs == nullptr || config_->collective.mover != Mover::compute_units ||
      config_->private_parts.cache || config_->private_parts.hbm || gpus_of_branch(network) > 0 || flows_meet() ||
      (pairs_meet && demand.kind == CollectiveKind::all_to_all)) {
    return 1;
  }
  const std::uint32_t fewest_sums =
      system_at(kCoarsestOfMost).network.link.train <= kShortTrain ? kFewestSums : kFewestInFlight;
  std::uint32_t grain =
      coarsest_grain(*kernel->programs, config_->system.gpu.compute_unit.max_outstanding_lines, fewest_sums);
  const auto bytes_for = [&] { return (grain > kCoarsestOfMost ? kBytesOfVeryLong : kBytes) * grain; };
  while (grain > 1 && demand.bytes.count() < bytes_for()) grain /= 2;
  const bool share_links = network.topology == TopologyKind::hybrid_cube_mesh;
  if (grain <= kCoarsestOfMost && !share_links) return grain;
  const FoldedMachine& folded = *at_grain(1).folded;
  if (!folded.why_not().empty() || folded.standing() > 1) return grain;
  grain = std::min(grain, share_links ? kCoarsestOfShared : kCoarsestOfMost);
  while (share_links && grain > 1 && demand.bytes.count() < kBytesOfShared * grain * grain) grain /= 2;
  return grain;
}

std::uint32_t RegimeLab::grain_from(std::uint32_t op) {
  const SharedList<ProgramOp>& ops = programs_->front().ops;
  std::set<Message> seen;
  std::uint32_t grain = kCoarsestGrain;
  for (; op < ops.size() && grain > 1; ++op) {
    if (ops[op].fused) return 1;
    if (ops[op].kind != ProgramOpKind::collective || !seen.insert(message_of(ops[op].collective)).second) continue;
    grain = std::min(grain, grain_of(OpId{op}));
  }
  return grain;
}

Regime RegimeLab::collective_by_itself(OpId op) {
  const GpuSpec& gpu = config_->system.gpu;
  std::optional<L2Cache> l2 = std::exchange(l2_, L2Cache(gpu.l2, gpu.hbm, gpu.clock));  // it is not its turn
  const std::uint32_t at = std::exchange(l2_at_, op.value);
  Regime did = company({op, op.value + 1, {0}, std::nullopt, 0}, true);
  l2_ = std::move(l2);
  l2_at_ = at;
  return did;
}

double RegimeLab::bytes_simulated(OpId collective) {
  const FoldedMachine& folded = *at_grain(1).folded;
  const double gpus = folded.why_not().empty() ? folded.standing() : static_cast<double>(programs_->size());
  return gpus * static_cast<double>(programs_->front().ops[collective.value].collective.bytes.count());
}

std::string RegimeLab::shape_of(OpId collective) const {
  const CollectiveDemand& demand = programs_->front().ops[collective.value].collective;
  std::string shape;
  for (const Scripts::Collective& one : scripts_->collectives()) {
    if (one.members.front() != std::pair{std::uint32_t{0}, collective}) continue;
    shape = fmt::format("{} {} {}", one.plan.algorithm, one.plan.protocol, one.plan.channels);
  }
  const auto part = [](const Json& from, const char* key) {
    return from.contains(key) ? from.at(key).dump() : std::string();
  };
  const Json& all = config_->resolved;
  return fmt::format("{} {} {} {} {} {} {} {}", shape, to_string(demand.kind), to_string(demand.type),
                     demand.group.size(), part(all, "all_reduce"), part(all.at("system"), "collectives"),
                     part(all, "private"), fmt::join(programs_->front().priorities, ","));
}

void RegimeLab::tell_real_network(const Machine& machine, std::uint32_t grain, Regime& regime) const {
  const auto real =
      make_network(config_->system.network, static_cast<std::uint32_t>(machine.gpus()), {}, machine.folded_gpus());
  tell_finely(machine.fabric()->topology(), real->topology, grain, regime);
}

L2Cache RegimeLab::at_grain(const L2Cache& l2, std::uint32_t grain, std::uint32_t wanted) const {
  const GpuSpec gpu = wanted == 1 ? config_->system.gpu : coarse(config_->system.gpu, wanted);
  L2Cache told(gpu.l2, gpu.hbm, gpu.clock);
  copy_lines(l2, grain, wanted, told);
  told.rest();
  return told;
}

std::unique_ptr<RegimeLab::Grain> RegimeLab::folded_alone(OpId collective, std::uint32_t grain) {
  const FoldedMachine& whole = *at_grain(grain).folded;
  if (!config_->system.network.cluster || (whole.why_not().empty() && whole.standing() == 1)) return nullptr;
  auto alone = std::make_unique<Grain>(Grain{config_at(grain), system_at(grain), std::nullopt, std::nullopt});
  alone->folded.emplace(alone->config, *programs_, collective);
  return alone->folded->why_not().empty() ? std::move(alone) : nullptr;
}

}  // namespace weft
