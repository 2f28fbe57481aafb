// Trees: pieces go up to the root, summed on the way, and down again. Up and down are two groups of warps, as in NCCL's
// runTreeSplit (src/device/all_reduce.h), so a rank passes pieces on both ways at once; the root turns them round.
// Over several nodes, the two trees join one rank of each node, others by channel, and the rest of a node is a chain
// behind it (NCCL src/graph/connect.cc).
#include <algorithm>
#include <array>
#include <bit>

#include "network/binary_tree.h"
#include "network/generated_schedule.h"
#include "network/schedule_generators.h"

namespace weft {

namespace {

// The first ranks of nodes, in each of which a chain joins all, and behind them the number of ranks.
std::vector<std::uint32_t> nodes_of(const ScheduleRequest& request) {
  std::vector<std::uint32_t> firsts = request.first_ranks;
  const bool even = request.ranks_per_node > 0 && request.ranks % request.ranks_per_node == 0;
  const std::uint32_t places = even ? request.ranks_per_node : 1;
  for (std::uint32_t rank = 0; request.first_ranks.empty() && rank < request.ranks; rank += places) {
    firsts.push_back(rank);
  }
  firsts.push_back(request.ranks);
  return firsts;
}

class TreeSchedule : public GeneratedSchedule {
 public:
  TreeSchedule(const ScheduleRequest& request, bool two_trees)
      : GeneratedSchedule(request),
        two_trees_(two_trees),
        firsts_(two_trees ? nodes_of(request) : std::vector<std::uint32_t>()),
        alike_(request.alike_trees && has_alike_trees(nodes())),
        grid_(ChunkGrid::free_parts(request, request.bytes, 1, ChunkGrid::kLineUnit)) {}

  [[nodiscard]] std::uint32_t groups(std::uint32_t rank, std::uint32_t /*block*/) const override {
    if (request().kind == CollectiveKind::broadcast || request().kind == CollectiveKind::reduce) return 1;
    return two_trees_ || rank != request().root ? 2 : 1;
  }

  // Where all are alike, a rank may send up to whom it also sends down.
  [[nodiscard]] std::uint32_t channel(std::uint32_t /*rank*/, std::uint32_t block, std::uint32_t group) const override {
    return alike_ ? 2 * block + group : block;
  }

  [[nodiscard]] std::uint64_t steps(std::uint32_t rank, std::uint32_t block, std::uint32_t group) const override {
    if (group == 1 && !node(rank, block).parent) return 0;
    return is_barrier() ? 1 : grid_.loops() * grid_.slices();
  }

  [[nodiscard]] ScheduleStep step(std::uint32_t rank, std::uint32_t block, std::uint32_t group,
                                  std::uint64_t index) const override {
    Piece piece;
    if (!is_barrier()) {
      piece = grid_.piece(index / grid_.slices(), block, 0, static_cast<std::uint32_t>(index % grid_.slices()));
      if (piece.bytes == 0) return {};
    }
    const TreeNode at = node(rank, block);
    const bool down_only = request().kind == CollectiveKind::broadcast;
    if (group == 0 && !down_only) return up(at, piece);
    ScheduleStep step = down(at, piece);
    if (at.endless()) step.start_after({block, 0, index + 1});
    return step;
  }

  [[nodiscard]] bool is_waited_for(std::uint32_t rank, std::uint32_t block, std::uint32_t group) const override {
    return group == 0 && node(rank, block).endless();
  }

  [[nodiscard]] std::vector<std::uint32_t> sends_to(std::uint32_t rank, std::uint32_t block,
                                                    std::uint32_t group) const override {
    const TreeNode at = node(rank, block);
    const bool up = group == 0 && request().kind != CollectiveKind::broadcast;
    if (up && at.parent) return {*at.parent};
    if (request().kind == CollectiveKind::reduce) return {};
    return {at.children.begin(), at.children.begin() + at.child_count};
  }

 private:
  [[nodiscard]] std::uint32_t nodes() const {
    return firsts_.empty() ? ranks() : static_cast<std::uint32_t>(firsts_.size() - 1);
  }
  [[nodiscard]] bool is_barrier() const { return request().kind == CollectiveKind::barrier; }

  [[nodiscard]] TreeNode node(std::uint32_t rank, std::uint32_t block) const {
    if (two_trees_) return double_tree_node(rank, block);
    TreeNode node = binary_tree(ranks(), before(rank, request().root));
    if (node.parent) node.parent = after(*node.parent, request().root);
    for (std::uint32_t& child : node.children) child = after(child, request().root);
    return node;
  }

  [[nodiscard]] TreeNode double_tree_node(std::uint32_t rank, std::uint32_t block) const {
    const auto after_own = std::upper_bound(firsts_.begin(), firsts_.end(), rank);
    const auto own = static_cast<std::uint32_t>(after_own - firsts_.begin() - 1);
    const auto size = [&](std::uint32_t node) { return firsts_[node + 1] - firsts_[node]; };
    const auto rank_at = [&](std::uint32_t node, std::uint32_t p) { return firsts_[node] + p % size(node); };
    const std::uint32_t turn = block / 2;
    const std::uint32_t head = turn % size(own);
    const std::uint32_t place = rank - firsts_[own];
    TreeNode at;
    if (place == head) {
      const bool second = block % 2 == 1;
      at = alike_   ? alike_tree(nodes(), own, second)
           : second ? second_binary_tree(nodes(), own)
                    : binary_tree(nodes(), own);
      if (at.parent) at.parent = rank_at(*at.parent, turn);
      for (std::uint32_t c = 0; c < at.child_count; ++c) at.children.at(c) = rank_at(at.children.at(c), turn);
    } else {
      at.parent = rank_at(own, place + size(own) - 1);
    }
    const std::uint32_t next = (place + 1) % size(own);
    if (next != head) at.children.at(at.child_count++) = rank_at(own, next);
    return at;
  }

  [[nodiscard]] ScheduleStep up(const TreeNode& node, const Piece& piece) const {
    ScheduleStep step{.bytes = piece.bytes};
    if (node.endless()) step.hops_beyond = node.hops_up() + node.hops_down();
    for (std::uint32_t c = 0; c < node.child_count; ++c) {
      const bool awaited = !node.endless() || c != TreeNode::kEndlessChild;
      awaited ? step.receive(node.children.at(c)) : step.receive_unawaited(node.children.at(c));
    }
    if (!is_barrier()) step.read(ScheduleBuffer::input, piece.offset);
    if (node.parent) return step.send(*node.parent);
    if (!is_barrier()) step.write(ScheduleBuffer::output, piece.offset);
    if (request().kind != CollectiveKind::reduce) send_to_children(node, step);
    return step;
  }

  [[nodiscard]] ScheduleStep down(const TreeNode& node, const Piece& piece) const {
    ScheduleStep step{.bytes = piece.bytes};
    if (node.parent) {
      node.endless() ? step.receive_unawaited(*node.parent) : step.receive(*node.parent);
    } else {
      step.read(ScheduleBuffer::input, piece.offset);
    }
    if (!is_barrier()) step.write(ScheduleBuffer::output, piece.offset);
    send_to_children(node, step);
    return step;
  }

  static void send_to_children(const TreeNode& node, ScheduleStep& step) {
    for (std::uint32_t c = 0; c < node.child_count; ++c) step.send(node.children.at(c));
  }

  bool two_trees_;
  std::vector<std::uint32_t> firsts_;  // nodes_of(), of two trees
  bool alike_;
  ChunkGrid grid_;
};

// Ranks that a piece passes from the furthest one to the root, of nodes that are equal.
std::uint32_t depth_of(std::uint32_t ranks, std::uint32_t nodes) {
  return ranks / nodes - 1 + static_cast<std::uint32_t>(std::bit_width(nodes) - 1);
}

// A tree is as slow as a piece on all of its levels, and then as its pieces one after the other.
std::int64_t piece_for_depth(std::int64_t bytes, std::int64_t depth, std::int64_t piece) {
  struct Limit {
    std::int64_t pieces_a_level, smallest;
  };
  constexpr std::array<Limit, 3> kLimits{{{8, 128 << 10}, {4, 64 << 10}, {1, 32 << 10}}};
  for (const auto& limit : kLimits) {
    while (bytes / piece < limit.pieces_a_level * depth && piece > limit.smallest) piece /= 2;
  }
  return piece;
}

// Counted as it lies in a buffer, where each 120 bytes have 8 of flags.
std::int64_t piece_for_nodes(std::int64_t bytes, std::uint32_t nodes, std::uint32_t ranks_per_node,
                             std::int64_t piece) {
  const double ranks = ranks_per_node;
  const double steps = std::bit_width(nodes) + 0.1 * ranks;
  struct Limit {
    double pieces_a_step;  // of all ranks of a node
    std::int64_t smallest;
  };
  constexpr std::array<Limit, 2> kLimits{{{64, 128 << 10}, {16, 32 << 10}}};
  std::int64_t stored = piece / 120 * 128;
  for (const Limit& limit : kLimits) {
    while (static_cast<double>(bytes / stored) < steps * limit.pieces_a_step / ranks && stored > limit.smallest) {
      stored /= 2;
    }
  }
  return stored / 128 * 120;
}

}  // namespace

std::unique_ptr<CollectiveSchedule> make_tree(const ScheduleRequest& request) {
  ScheduleRequest tree = request;
  if (request.kind == CollectiveKind::barrier) tree.channels = 1;
  if (request.kind == CollectiveKind::barrier || request.kind == CollectiveKind::all_reduce) tree.root = 0;
  return std::make_unique<TreeSchedule>(tree, false);
}

std::unique_ptr<CollectiveSchedule> make_double_binary_tree(const ScheduleRequest& request) {
  ScheduleRequest trees = request;
  trees.channels += request.channels % 2;
  if (request.kind == CollectiveKind::all_reduce) {
    const std::int64_t bytes = trees.bytes / trees.channels;
    const auto nodes = static_cast<std::uint32_t>(nodes_of(trees).size() - 1);
    if (request.tree_pieces == TreePieces::by_depth) {
      trees.piece_bytes = piece_for_depth(bytes, depth_of(trees.ranks, nodes), trees.piece_bytes);
    } else if (request.tree_pieces == TreePieces::by_nodes) {
      trees.piece_bytes = piece_for_nodes(bytes, nodes, trees.ranks / nodes, trees.piece_bytes);
    }
  }
  return std::make_unique<TreeSchedule>(trees, true);
}

}  // namespace weft
