#include "cli/sampled/even_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <set>

#include "cli/run/scripts.h"
#include "cli/sampled/fullest_block.h"
#include "cli/sampled/node_symmetry.h"
#include "gpu_model/folded_programs.h"
#include "network/binary_tree.h"
#include "network/collective_algorithm.h"
#include "network/network.h"
#include "network/tuner.h"

namespace weft {

namespace {

// How far off collectives are that some GPUs stand for, one standard deviation (docs/validation.md): between nodes by
// trees in which all nodes are alike, those of switches apart, and of all pairs; where LL and LL128 cut unevenly by the
// library, on fewer channels, or in longer pieces, of which others are empty; of long messages in a switch, whose
// blocks stay in step, and of those on registered buffers, who then load and store at the same time; where a branch of
// a tree of switches stands for all, on several channels, of which one is held up at times, or on one; rings by links
// between GPUs, short ones of them, and those of LL and LL128 whose links have different widths; all others.
constexpr double kTreeScatter = 0.035;
constexpr double kInSwitchTreeScatter = 0.06;
constexpr double kPairsScatter = 0.035;
constexpr double kUnevenScatter = 0.035;
constexpr double kLongerPieceScatter = 0.075;
constexpr double kInSwitchScatter = 0.035;
constexpr double kRegisteredScatter = 0.07;
constexpr double kBranchScatter = 0.045;
constexpr double kBranchOfOneScatter = 0.015;
constexpr double kDirectRingScatter = 0.02;
constexpr double kShortRingScatter = 0.03;
constexpr double kSharedRingScatter = 0.035;
constexpr double kFoldedScatter = 0.0075;
constexpr double kUneven = 1.05;       // of the fullest block or phase, as a share of the mean
constexpr double kLongerPiece = 1.25;  // of the library's, to those of even shares
constexpr double kMostOfTree = 1.05;   // of what is sent through a tree of switches, in place of the message
// Of longer messages, phases that are shorter are the last ones, for which few wait.
constexpr std::int64_t kShortMessage = 1 << 20;
constexpr std::int64_t kShortRing = 32 << 20;
constexpr std::int64_t kLongInSwitch = 128 << 20;
constexpr std::int64_t kLongRegistered = 8 << 20;

// Shares are multiples of one of these, so that they begin with a line.
constexpr std::array<std::int64_t, 9> kChunkUnits{128, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};

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

// All pairs over nodes: several GPUs send by one NIC at a time, and several NICs to one.
bool meets_by_chance(const RunConfig& config, const CollectiveDemand& demand) {
  const auto& cluster = config.system.network.cluster;
  return cluster && demand.kind == CollectiveKind::all_to_all &&
         demand.group.back().value / cluster->gpus_per_node - demand.group.front().value / cluster->gpus_per_node > 0;
}

}  // namespace

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
  // Sends cut each message to a peer alike, on whichever of their blocks.
  const bool flagged = real.protocol != to_string(CollectiveProtocol::simple) && !is_point_to_point(kind);
  const NetworkSpec& network = config.system.network;
  const bool tree = gpus_of_branch(network) > 0;
  const Fullest fullest = flagged || tree ? fullest_of(real) : Fullest();
  const bool uneven = fullest.block > kUneven || (bytes < kShortMessage && fullest.phase > kUneven);
  // Their links are what all blocks share, and take as long as all of it takes.
  const bool grid = links_come_back(network) && has_router_for_each_gpu(network.topology) &&
                    network.topology != TopologyKind::hybrid_cube_mesh;
  if ((tree || grid) && uneven) {
    why_not = fmt::format("blocks of {} have unequal shares of their links", op.name);
    return std::nullopt;
  }
  // A ring then takes longer than by equal pieces, by something up to what its longest ones are longer.
  const bool waits_for_longest =
      flagged && real.algorithm == to_string(CollectiveAlgorithm::ring) && fullest.in_step > kUneven;
  const bool in_switch = real.algorithm == kInSwitch;
  const bool registered = config.collective.registered || config.system.collectives.in_switch.registered;
  const bool trees = in_switch || (flagged && real.algorithm == to_string(CollectiveAlgorithm::double_binary_tree));
  const auto has_alike = [&](const RankSymmetry& by) { return trees && has_alike_trees(by.ranks / by.per_node); };
  const auto& cluster = config.system.network.cluster;
  const bool share_nics = cluster && cluster->nics_per_node < cluster->gpus_per_node;
  // Pieces of several rings behind one another in lanes that they share: in step they are up to 22 % too fast
  // (docs/validation.md), while what comes line by line mixes.
  const bool share_lanes =
      !flagged && has_router_for_each_gpu(network.topology) && lanes_for_each_gpu(network, config.gpus) == 0;
  const auto way_of = [&](const CollectivePlan& plan) -> std::optional<RankSymmetry> {
    for (RankSymmetry by : ways) {
      if (op.collective.group.back().value < by.per_node) {
        if (by.rings && ranks < by.ranks) continue;
        by = {.ranks = ranks, .per_node = ranks, .rings = by.rings};
      } else if (ranks < config.gpus) {
        if (by.alternating || by.trees_of_places) continue;
        by.apart = by.per_node;
      }
      if (by.rings && share_lanes) {
        why_not = fmt::format("rings of {} share the lanes between a GPU and its router", op.name);
        continue;
      }
      const auto folded = plan.ranks.empty() ? std::nullopt : fold_ranks(plan.ranks, by);
      if (!folded) continue;
      if (in_switch && share_nics && has_alike(by)) {  // 18 % too fast (docs/validation.md)
        why_not = fmt::format("GPUs share the NICs by which {} goes on to other nodes", op.name);
        continue;
      }
      std::string why = why_nodes_differ(network, by, *folded);
      if (!flagged && why.empty()) why = why_links_differ(network, *folded);
      many_pairs = folded->many_pairs;
      if (why.empty()) return by;
      why_not = why;
    }
    return std::nullopt;
  };
  double fullest_of_even = 1;  // of what was found
  const auto nearest = [&](std::int64_t wished, std::uint32_t channels) -> std::optional<Evened> {
    for (const std::int64_t even_bytes : even_messages(wished, parts, std::max({1U, real.channels, channels}))) {
      const EvenMessage even{even_bytes, channels};
      const double longer = static_cast<double>(even_bytes) / static_cast<double>(bytes);
      if (tree && longer > kMostOfTree) continue;
      cut_evenly.collective.even_messages =
          std::make_shared<const EvenMessages>(EvenMessages{{message_of(op.collective), even}});
      const Scripts scripts(cut_evenly, one);
      const CollectivePlan& plan = scripts.collectives().front().plan;
      const auto by = way_of(plan);
      if (!by) continue;
      const Fullest even_fullest = flagged ? fullest_of(plan) : Fullest();
      fullest_of_even = even_fullest.block;
      const bool longer_piece =
          flagged && static_cast<double>(fullest.piece) > kLongerPiece * static_cast<double>(even_fullest.piece);
      if (tree && longer_piece) {  // 16 % too fast (docs/validation.md)
        why_not = fmt::format("pieces of {} are longer than equal shares of it", op.name);
        continue;
      }
      Evened evened{even, *by, kFoldedScatter, has_alike(*by)};
      if (by->rings) {
        const bool shared = config.system.network.topology == TopologyKind::hybrid_cube_mesh;
        const std::int64_t whole = is_part ? bytes * ranks : bytes;
        evened.scatter = whole < kShortRing ? kShortRingScatter : kDirectRingScatter;
        if (shared && flagged) evened.scatter = kSharedRingScatter;
      }
      if (uneven || waits_for_longest || channels > 0) evened.scatter = kUnevenScatter;
      if (longer_piece) evened.scatter = kLongerPieceScatter;
      if (in_switch && bytes >= kLongInSwitch) evened.scatter = kInSwitchScatter;
      if (in_switch && registered && kind == CollectiveKind::all_reduce && bytes >= kLongRegistered)
        evened.scatter = kRegisteredScatter;
      if (tree) evened.scatter = std::max(plan.channels > 1 ? kBranchScatter : kBranchOfOneScatter, longer - 1);
      if (many_pairs || meets_by_chance(config, op.collective))
        evened.scatter = std::max(evened.scatter, kPairsScatter);
      if (evened.alike_trees)
        evened.scatter = std::max(evened.scatter, in_switch ? kInSwitchTreeScatter : kTreeScatter);
      return evened;
    }
    return std::nullopt;
  };
  // Blocks of LL and LL128 take as long as their own share of the message takes, the fullest one longest: all get that.
  std::optional<Evened> found;
  const auto of_fullest = static_cast<double>(bytes) * fullest.block;
  if (flagged) found = nearest(std::llround(of_fullest), 0);
  // But for those of its blocks that have no work either.
  if (found && fullest_of_even > kUneven) found = nearest(std::llround(of_fullest / fullest_of_even), 0);
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

}  // namespace weft
