#include "cli/sampled/symmetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "cli/sampled/fullest_block.h"
#include "cli/sampled/group_places.h"
#include "cli/sampled/node_symmetry.h"
#include "gpu_model/folded_programs.h"
#include "network/binary_tree.h"
#include "network/collective_algorithm.h"
#include "network/network.h"

namespace weft {

namespace {

// How far off collectives are that some GPUs stand for, one standard deviation (docs/validation.md): between nodes by
// trees in which all nodes are alike, those of switches apart, and of all pairs; where LL and LL128 cut unevenly by the
// library, or on fewer channels; where a branch of a tree of switches stands for all; all others.
constexpr double kTreeScatter = 0.035, kInSwitchTreeScatter = 0.06, kPairsScatter = 0.035;
constexpr double kUnevenScatter = 0.035;
constexpr double kBranchScatter = 0.015, kFoldedScatter = 0.0075;
constexpr double kUneven = 1.05;      // of the fullest block or phase, as a share of the mean
constexpr double kMostOfTree = 1.05;  // of what is sent through a tree of switches, in place of the message
// Of longer messages, phases that are shorter are the last ones, for which few wait.
constexpr std::int64_t kShortMessage = 1 << 20;

// Shares are multiples of one of these, so that they begin with a line: 1920 where lines hold 120 B of data.
constexpr std::array<std::int64_t, 10> kChunkUnits{128, 1920, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};

// Messages of the same bytes or a few more of which all ranks may have the same share, the nearest first: each of
// `parts` that it is cut into is the same on all channels, or on as many channels as are filled.
std::set<std::int64_t> even_messages(std::int64_t bytes, std::int64_t parts, std::int64_t channels) {
  const auto round_up = [](std::int64_t n, std::int64_t grain) { return (n + grain - 1) / grain * grain; };
  std::set<std::int64_t> found{bytes};
  for (const std::int64_t unit : kChunkUnits) {
    found.insert(round_up(bytes, unit * parts * channels));
    const std::int64_t chunk = round_up((bytes + parts * channels - 1) / (parts * channels), unit);
    found.insert(round_up(bytes, chunk * parts));
  }
  return found;
}

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

// A message of about as many bytes that all ranks have the same share of, and how they then are alike; none: not found.
struct Evened {
  EvenMessage message;
  RankSymmetry by;
  double scatter = kFoldedScatter;
};

// All pairs over nodes: several GPUs send by one NIC at a time, and several NICs to one.
bool meets_by_chance(const RunConfig& config, const CollectiveDemand& demand) {
  const auto& cluster = config.system.network.cluster;
  return cluster && demand.kind == CollectiveKind::all_to_all &&
         demand.group.back().value / cluster->gpus_per_node - demand.group.front().value / cluster->gpus_per_node > 0;
}

bool by_alike_trees(const RankSymmetry& by) { return by.two_trees && has_alike_trees(by.ranks / by.per_node); }

std::optional<Evened> evened(const RunConfig& config, const ProgramOp& op, const std::vector<RankSymmetry>& ways,
                             std::string& why_not) {
  const auto ranks = static_cast<std::uint32_t>(op.collective.group.size());
  std::vector<Program> one(config.gpus);
  ProgramOp only = op;
  only.waits.clear();
  only.stream = StreamId{0};
  only.collective.sequence = 0;
  for (const GpuId member : op.collective.group) {
    one[member.value] = Program{.ops = {only}, .priorities = {0}, .memory = {}};
  }
  const std::int64_t bytes = op.collective.bytes.count();
  // What a rank puts into a gather, or sends on, is one rank's part.
  const CollectiveKind kind = op.collective.kind;
  const bool is_part =
      kind == CollectiveKind::all_gather || kind == CollectiveKind::gather || kind == CollectiveKind::shift;
  const std::uint32_t parts = is_part ? 1 : ranks;
  RunConfig as_ever = config;
  as_ever.collective.alike_ranks = false;
  const Scripts as_cut(as_ever, one);
  const CollectivePlan& real = as_cut.collectives().front().plan;
  bool many_pairs = false;
  RunConfig cut_evenly = config;
  const bool flagged = real.protocol != to_string(CollectiveProtocol::simple);
  const bool tree = gpus_of_branch(config.system.network) > 0;
  const Fullest fullest = flagged || tree ? fullest_of(real) : Fullest();
  const bool uneven = fullest.block > kUneven || (bytes < kShortMessage && fullest.phase > kUneven);
  // Their links are what all blocks share, and take as long as all of it takes.
  if (tree && uneven) {
    why_not = fmt::format("blocks of {} have unequal shares of their links", op.name);
    return std::nullopt;
  }
  const auto way_of = [&](const CollectivePlan& plan) -> std::optional<RankSymmetry> {
    for (RankSymmetry by : ways) {
      if (op.collective.group.back().value < by.per_node) {
        by = {.ranks = ranks, .per_node = ranks};
      } else if (ranks < config.gpus) {
        if (by.alternating || by.trees_of_places) continue;
        by.apart = by.per_node;
      }
      const auto folded = plan.ranks.empty() ? std::nullopt : fold_ranks(plan.ranks, by);
      if (!folded) continue;
      const std::string why = why_nodes_differ(config.system.network, by.ranks, *folded);
      many_pairs = folded->many_pairs;
      if (why.empty()) return by;
      why_not = why;
    }
    return std::nullopt;
  };
  const auto nearest = [&](std::int64_t wished, std::uint32_t channels) -> std::optional<Evened> {
    for (const std::int64_t even_bytes : even_messages(wished, parts, std::max({1U, real.channels, channels}))) {
      const EvenMessage even{even_bytes, channels};
      const double longer = static_cast<double>(even_bytes) / static_cast<double>(bytes);
      if (tree && longer > kMostOfTree) continue;
      cut_evenly.collective.even_messages =
          std::make_shared<const EvenMessages>(EvenMessages{{message_of(op.collective), even}});
      const Scripts scripts(cut_evenly, one);
      const auto by = way_of(scripts.collectives().front().plan);
      if (!by) continue;
      Evened evened{even, *by};
      if (uneven || channels > 0) evened.scatter = kUnevenScatter;
      if (tree) evened.scatter = std::max(kBranchScatter, longer - 1);
      if (many_pairs || meets_by_chance(config, op.collective))
        evened.scatter = std::max(evened.scatter, kPairsScatter);
      const bool in_switch = real.algorithm == kInSwitch;
      if (by_alike_trees(*by))
        evened.scatter = std::max(evened.scatter, in_switch ? kInSwitchTreeScatter : kTreeScatter);
      return evened;
    }
    return std::nullopt;
  };
  // Blocks of LL and LL128 take as long as their own share of the message takes, the fullest one longest: all get that.
  std::optional<Evened> found;
  const auto of_fullest = static_cast<double>(bytes) * fullest.block;
  if (flagged) found = nearest(std::llround(of_fullest), 0);
  if (!found) found = nearest(bytes, 0);
  // Short messages by trees over nodes take fewer channels than there are places: all places take one, as full.
  const std::uint32_t places = 2 * ways.front().per_node;
  if (!found && flagged && real.algorithm == to_string(CollectiveAlgorithm::double_binary_tree) &&
      real.channels < places)
    found = nearest(std::llround(of_fullest * places / real.channels), places);
  if (!found && why_not.empty()) {
    why_not = fmt::format("the ranks of {} do different things by {}", op.name, real.algorithm);
  }
  return found;
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
    if (gpus_of_branch(network) == 0) per_node_ = network.cluster ? network.cluster->gpus_per_node : gpus;
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
  for (const Evened& evened : found) {
    ways_.push_back(evened.by);
    scatters_.push_back(evened.scatter);
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

bool FoldedMachine::has_alike_trees() const { return std::ranges::any_of(ways_, by_alike_trees); }

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

GpuWork FoldedMachine::work(std::uint32_t gpu) const {
  GpuWork work = scripts_->work(gpu);
  work.scripts = folded_[gpu];
  return work;
}

}  // namespace weft
