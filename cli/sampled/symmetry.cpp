#include "cli/sampled/symmetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>

#include "cli/sampled/even_share.h"
#include "cli/sampled/group_places.h"
#include "cli/sampled/node_symmetry.h"
#include "gpu_model/folded_programs.h"
#include "network/network.h"

namespace weft {

namespace {

// What one of the others does of it besides is not asked for.
Program collectives_of(const Program& program, GpuId gpu) {
  Program only{.ops = {}, .priorities = program.priorities, .memory = {}};
  std::ranges::copy_if(program.ops, std::back_inserter(only.ops), [&](const ProgramOp& op) {
    return op.kind == ProgramOpKind::collective && std::ranges::binary_search(op.collective.group, gpu);
  });
  return only;
}

// Where the others will not run: kernels that nobody starts.
Program with_one_collective(const Program& program, OpId only) {
  Program one = program;
  std::vector<ProgramOp>& ops = one.ops.edit();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind == ProgramOpKind::collective && i != only.value) ops[i].kind = ProgramOpKind::kernel;
  }
  return one;
}

}  // namespace

FoldedMachine::FoldedMachine(const RunConfig& config, const std::vector<Program>& programs, std::optional<OpId> only)
    : config_(config) {
  config_.collective.alike_ranks = true;
  const NetworkSpec& network = config_.system.network;
  const auto gpus = static_cast<std::uint32_t>(programs.size());
  why_not_ = gpus < 2 ? "there is only one GPU" : why_places_differ(network, gpus);
  if (!why_not_.empty()) return;
  if (std::ranges::any_of(programs.front().ops, &ProgramOp::fused)) {
    why_not_ = "kernels push sums to switches";
  } else if (config.collective.mover != Mover::compute_units) {
    why_not_ = "engines move the data";
  } else {
    // By links to each other, groups that were others have links of their own.
    const bool all_alike = gpus_of_branch(network) == 0 && !links_come_back(network);
    if (all_alike) per_node_ = network.cluster ? network.cluster->gpus_per_node : gpus;
    programs_.push_back(only ? with_one_collective(programs.front(), *only) : programs.front());
    has_groups_ = std::ranges::any_of(programs_.front().ops, [&](const ProgramOp& op) {
      return op.kind == ProgramOpKind::collective && op.collective.group.size() < gpus;
    });
    if (has_groups_ && per_node_ == 0) why_not_ = "some collectives are of some GPUs only";
    if (has_groups_ && per_node_ > 0) {
      why_not_ = why_groups_differ(programs_.front(), programs, per_node_);
      programs_.front() = with_first_groups(std::move(programs_.front()), gpus, per_node_);
    }
    if (!why_not_.empty()) return;
    programs_.resize(gpus);
    keep_collectives();
    for (const auto& ways : symmetries(network, gpus)) {
      if (has_groups_ && ways.front().standing > 1) {  // their groups are others; what kept one from it says more
        if (why_not_.empty()) why_not_ = "some collectives are of some GPUs only";
        break;
      }
      why_not_.clear();
      round_messages(ways);
      if (why_not_.empty()) break;
    }
    if (!why_not_.empty()) return;
    for (std::uint32_t g = 1; g < standing_; ++g) programs_[g] = programs_.front();
    scripts_.emplace(config_, programs_);
    fold_collectives();
  }
}

// Of the GPUs behind the first one.
void FoldedMachine::keep_collectives() {
  const SharedList<ProgramOp>& ops = programs_.front().ops;
  const bool all_alike = std::ranges::all_of(ops, [&](const ProgramOp& op) {
    return op.kind != ProgramOpKind::collective || op.collective.group.size() == programs_.size();
  });
  for (std::size_t g = 1; g < programs_.size(); ++g) {
    const bool as_before = all_alike && g > 1;
    programs_[g] = as_before ? programs_[1] : collectives_of(programs_.front(), GpuId{static_cast<std::uint32_t>(g)});
  }
}

void FoldedMachine::round_messages(const std::vector<RankSymmetry>& ways) {
  std::map<Message, std::optional<Evened>> known;
  EvenMessages even;
  std::vector<Evened> found;
  for (const ProgramOp& op : programs_.front().ops) {
    if (op.kind != ProgramOpKind::collective) continue;
    const Message key = message_of(op.collective);
    auto at = known.find(key);
    if (at == known.end()) at = known.emplace(key, evened(config_, op, ways, why_not_)).first;
    if (!at->second) return;
    why_not_.clear();
    found.push_back(*at->second);
    even[key] = at->second->message;
  }
  ways_.clear();
  scatters_.clear();
  has_alike_trees_ = false;
  for (const Evened& evened : found) {
    ways_.push_back(evened.by);
    scatters_.push_back(evened.scatter);
    has_alike_trees_ = has_alike_trees_ || evened.alike_trees;
  }
  standing_ = ways.front().standing;
  config_.collective.even_messages = std::make_shared<const EvenMessages>(std::move(even));
}

void FoldedMachine::fold_collectives() {
  for (std::uint32_t g = 0; g < standing_; ++g) folded_.push_back(scripts_->work(g).scripts);
  auto way = ways_.begin();
  for (const Scripts::Collective& collective : scripts_->collectives()) {
    const std::uint32_t op = collective.members.front().second.value;
    const auto number = static_cast<std::uint16_t>(multicast_groups_.size());
    const RankSymmetry& by = *way++;
    const std::vector<GpuGroup>& multicasts = collective.plan.multicasts;
    auto ranks = multicasts.size() > 1
                     ? std::nullopt
                     : fold_ranks(collective.plan.ranks, by, number, by.per_node < by.ranks && multicasts.empty());
    if (!ranks) {
      why_not_ = fmt::format("the ranks of {} do different things", programs_.front().ops[op].name);
      return;
    }
    for (std::uint32_t g = 0; g < standing_; ++g) {
      kernels_.push_back(std::move(ranks->kernels[g]));
      folded_[g][op] = &kernels_.back();
    }
    // Groups of its own for each collective, since what the others' multicasts are depends on its chunks.
    if (ranks->multicasts.empty()) ranks->multicasts.emplace_back();
    const CollectiveDemand& demand = programs_.front().ops[op].collective;
    for (const MulticastImages& images : ranks->multicasts) {
      multicast_groups_.push_back({demand.group.members(), demand.type, {images}});
    }
  }
}

double FoldedMachine::scatter(std::uint32_t from, std::uint32_t end) const {
  double most = 0;
  auto scatter = scatters_.begin();
  for (std::uint32_t i = 0; i < end && scatter != scatters_.end(); ++i) {
    if (programs_.front().ops[i].kind != ProgramOpKind::collective) continue;
    if (i >= from) most = std::max(most, *scatter);
    ++scatter;
  }
  return most;
}

std::unique_ptr<Machine> FoldedMachine::machine(const SystemSpec& system, const std::vector<GpuWork>& works) const {
  return std::make_unique<Machine>(system, works, multicast_groups_, CarriedValues(), scripts_->aggregation_groups(),
                                   config_.seed, config_.gpus);
}

GpuWork FoldedMachine::work(std::uint32_t gpu) const {
  GpuWork work = scripts_->work(gpu);
  work.scripts = folded_[gpu];
  return work;
}

}  // namespace weft
