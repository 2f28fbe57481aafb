#include "gpu_model/in_switch_programs.h"

#include <algorithm>

#include "gpu_model/in_switch_gathers.h"
#include "gpu_model/in_switch_registered.h"
#include "gpu_model/phase_lines.h"
#include "network/binary_tree.h"
#include "sim/error.h"

namespace weft {

namespace {

constexpr std::uint32_t kSlots = kInSwitchSlots;
// By slot: ranks that have staged in, heads that have reduced; and loops staged out. A slot is used again only after
// its loop was staged out here, which takes all ranks' signals: so each counter is complete at a multiple of the
// ranks.
constexpr std::uint32_t kFlagsPerChannel = 2 * kSlots + 1;
// Over several nodes, behind these: pieces that have come up from each child, that each child has taken of those sent
// down, that the parent has taken of those sent up, and that have come down or, where nobody is the root, turned round.
constexpr std::uint32_t kTreeChildren = 2;
constexpr std::uint32_t kTreeFlags = 2 * kTreeChildren + 3;

enum class Group : std::uint32_t { stage_in, reduce, stage_out, broadcast };
constexpr std::uint32_t kGroups = 3;  // and the last one over several nodes

std::uint32_t flags_per_channel(std::uint32_t nodes) { return kFlagsPerChannel + (nodes > 1 ? kTreeFlags : 0); }

class InSwitchPrograms final : public BlockPrograms {
 public:
  InSwitchPrograms(const InSwitchPlace& place, std::uint32_t rank)
      : place_(place),
        schedule_(std::max<std::int64_t>(1, place.bytes), place.ranks, place.spec.channels, place.nodes()),
        rank_(rank % place.ranks),
        node_(rank / place.ranks) {}

  [[nodiscard]] std::uint32_t blocks() const override { return place_.spec.channels; }
  [[nodiscard]] std::uint32_t groups(std::uint32_t /*block*/) const override {
    return place_.nodes() > 1 ? kGroups + 1 : kGroups;
  }
  [[nodiscard]] std::uint32_t lines_in_flight(std::uint32_t /*block*/, std::uint32_t group) const override {
    return workers(static_cast<Group>(group)) * lines_per_round(static_cast<Group>(group));
  }
  [[nodiscard]] std::unique_ptr<PhaseCursor> start(std::uint32_t block, std::uint32_t group) const override {
    return std::make_unique<Cursor>(*this, block, static_cast<Group>(group));
  }

 private:
  class Cursor final : public PhaseCursor {
   public:
    Cursor(const InSwitchPrograms& programs, std::uint32_t channel, Group group)
        : programs_(&programs), channel_(channel), group_(group) {}
    bool next(Phase& phase) override {
      if (loop_ == programs_->schedule_.loops()) return false;
      if (group_ == Group::broadcast && !programs_->tree(channel_).parent) return false;  // the root's reduce does it
      phase = programs_->phase(channel_, group_, loop_);
      const bool copies = group_ == Group::stage_in || group_ == Group::stage_out;
      if (copies) programs_->keep_only(piece_, loop_, phase);
      if (!copies || ++piece_ == programs_->place_.ranks) {
        piece_ = 0;
        ++loop_;
      }
      return true;
    }
    [[nodiscard]] std::unique_ptr<PhaseCursor> clone() const override { return std::make_unique<Cursor>(*this); }

   private:
    const InSwitchPrograms* programs_;
    std::uint32_t channel_;
    Group group_;
    std::uint32_t loop_ = 0;
    std::uint32_t piece_ = 0;  // of the loop, when it is copied
  };

  [[nodiscard]] std::uint32_t warps(Group group) const {
    if (group == Group::stage_in || group == Group::stage_out) return place_.spec.copy_warps;
    // NCCL src/device/all_reduce.h: where the sums go on over the network, 3 of the 5 warps reduce and 2 broadcast.
    const std::uint32_t broadcast = place_.nodes() > 1 ? std::max(1U, place_.spec.reduce_warps * 2 / 5) : 0;
    return group == Group::broadcast ? broadcast : std::max(1U, place_.spec.reduce_warps - broadcast);
  }

  [[nodiscard]] TreeNode tree_of(std::uint32_t channel, std::uint32_t node) const {
    const bool second = channel % 2 == 1;
    if (place_.alike_trees && has_alike_trees(place_.nodes())) return alike_tree(place_.nodes(), node, second);
    return second ? second_binary_tree(place_.nodes(), node) : binary_tree(place_.nodes(), node);
  }
  [[nodiscard]] TreeNode tree(std::uint32_t channel) const { return tree_of(channel, node_); }
  // The GPU of this place in another node.
  [[nodiscard]] std::uint16_t gpu(std::uint32_t node) const {
    return static_cast<std::uint16_t>(place_.group[node * place_.ranks + rank_].value);
  }
  // Which of its parent's children this node is.
  [[nodiscard]] std::uint32_t number_at(std::uint32_t channel, std::uint32_t parent) const {
    const TreeNode above = tree_of(channel, parent);
    WEFT_CHECK(above.child_count > 0, "a parent without children");
    return above.children[0] == node_ ? 0 : 1;
  }

  // Flags and FIFOs of the tree, the same on all ranks: up from each child, then down.
  struct TreePlace {
    std::uint32_t came_up, child_took, parent_took, came_down, turned;  // flags; the first two by child
    std::int64_t fifo;  // of kTreeChildren + 1, kSlots of the largest chunk each
  };
  [[nodiscard]] TreePlace tree_place(std::uint32_t channel) const {
    const std::uint32_t flags = in_switch_channel_flags(place_, channel) + kFlagsPerChannel;
    const std::int64_t staging = place_.spec.channels * std::int64_t{2} * kSlots * place_.ranks;
    const std::int64_t fifo = staging + std::int64_t{channel} * (kTreeChildren + 1) * kSlots;
    return {flags,
            flags + kTreeChildren,
            flags + 2 * kTreeChildren,
            flags + 2 * kTreeChildren + 1,
            flags + 2 * kTreeChildren + 2,
            place_.buffer + fifo * InSwitchSchedule::kLargestChunk};
  }
  static std::int64_t fifo_slot(const TreePlace& at, std::uint32_t fifo, std::uint32_t index) {
    return at.fifo + (fifo * kSlots + index % kSlots) * InSwitchSchedule::kLargestChunk;
  }

  void send_down(const TreePlace& at, const TreeNode& node, std::uint32_t index, std::int64_t bytes,
                 Phase& phase) const {
    for (std::uint32_t c = 0; c < node.child_count; ++c) {
      if (index >= kSlots) phase.wait({at.child_took + c, index + 1 - kSlots});
      const std::uint16_t child = gpu(node.children.at(c));
      if (bytes > 0) phase.store(lines(fifo_slot(at, kTreeChildren, index), bytes, Target::remote, child));
      const FlagPost came{at.came_down, Target::remote, child};
      node.endless() && c != TreeNode::kEndlessChild ? phase.post_late(came) : phase.post(came);
    }
  }

  // Beyond the node: adds what the children sent, and sends it up, or turns it round at the root. True at the root.
  bool reduce_over_nodes(std::uint32_t channel, std::uint32_t index, std::int64_t bytes, Phase& phase) const {
    const TreePlace at = tree_place(channel);
    const TreeNode node = tree(channel);
    for (std::uint32_t c = 0; c < node.child_count; ++c) {
      if (!node.endless() || c != TreeNode::kEndlessChild) phase.wait({at.came_up + c, index + 1});
      if (bytes > 0) phase.load(lines(fifo_slot(at, c, index), bytes));
      phase.post({at.parent_took, Target::remote, gpu(node.children.at(c))});
    }
    phase.compute = adding_time(place_.adds_per_cycle, place_.lines_per_round, 1 + node.child_count);
    if (!node.parent) {
      send_down(at, node, index, bytes, phase);
      return true;
    }
    if (index >= kSlots) phase.wait({at.parent_took, index + 1 - kSlots});
    const std::uint32_t number = number_at(channel, *node.parent);
    if (bytes > 0) phase.store(lines(fifo_slot(at, number, index), bytes, Target::remote, gpu(*node.parent)));
    phase.post({at.came_up + number, Target::remote, gpu(*node.parent)});
    if (node.endless()) {
      phase.post_late({at.turned, Target::local, 0});
      phase.post_delay = node.hops_up() * (place_.node_latency + place_.poll);
      phase.post_delay_phases = node.hops_up();
    }
    return false;
  }

  // The sums of all nodes come down.
  void broadcast(std::uint32_t channel, std::uint32_t index, std::int64_t bytes, Phase& phase) const {
    const TreePlace at = tree_place(channel);
    const TreeNode node = tree(channel);
    phase.wait({node.endless() ? at.turned : at.came_down, index + 1});
    if (bytes > 0) phase.load(lines(fifo_slot(at, kTreeChildren, index), bytes));
    phase.post({at.child_took + number_at(channel, *node.parent), Target::remote, gpu(*node.parent)});
    send_down(at, node, index, bytes, phase);
    if (node.endless()) {
      phase.post_delay = node.hops_down() * place_.node_latency;
      phase.post_delay_phases = node.hops_down();
    }
  }

  // Without the warp that fences and posts while the others go on (NCCL src/device/prims_simple.h: who sends has one).
  [[nodiscard]] std::uint32_t workers(Group group) const {
    const std::uint32_t all = warps(group);
    return group == Group::stage_out || all < 3 ? all : all - 1;
  }

  // Copies go piece by piece, each in whole rounds of all warps (ScatterGatherOp in the same file): what is left of the
  // last one is lost. Only the first piece waits, only the last one posts.
  void keep_only(std::uint32_t piece, std::uint32_t index, Phase& phase) const {
    const auto piece_lines = static_cast<std::uint32_t>(schedule_.loop(0, index).piece / kLineBytes);
    const auto narrow = [&](LineStream& stream) {
      const std::uint32_t before = std::min(stream.lines, piece * piece_lines);
      stream.first += before;
      stream.lines = std::min(stream.lines - before, piece_lines);
    };
    if (phase.load_count > 0) {
      narrow(phase.loads[0]);
      narrow(phase.stores[0]);
    }
    if (phase.load_count > 0 && phase.loads[0].lines == 0) phase.load_count = phase.store_count = 0;
    if (piece > 0) phase.wait_count = 0;
    if (piece + 1 < place_.ranks) phase.post_count = 0;
    set_rounds(phase, place_.copy_lines_per_round, phase.stages);
  }

  [[nodiscard]] std::uint32_t lines_per_round(Group group) const {
    const bool copies = group == Group::stage_in || group == Group::stage_out;
    return copies ? place_.copy_lines_per_round : place_.lines_per_round;
  }

  [[nodiscard]] Phase phase(std::uint32_t channel, Group group, std::uint32_t index) const {
    const std::uint32_t flags = in_switch_channel_flags(place_, channel);
    const std::uint32_t staged_out = flags + 2 * kSlots;
    const std::uint32_t slot = index % kSlots;
    const std::uint32_t all = place_.ranks * (index / kSlots + 1);
    const auto [in, out] = staging_slots(place_, channel, index);
    const InSwitchLoop loop = schedule_.loop(channel, index);
    Phase phase;
    phase.fence = place_.fence;
    switch (group) {
      case Group::stage_in:
        if (index >= kSlots) phase.wait({staged_out, index + 1 - kSlots});
        if (loop.bytes > 0) {
          phase.load(lines(place_.send_address + loop.offset, loop.bytes));
          phase.store(lines(in, loop.bytes));
        }
        phase.post({flags + slot, Target::multicast, place_.multicast_group});
        break;
      case Group::reduce:
      case Group::broadcast: {
        const std::int64_t own = rank_ * loop.piece;
        const std::int64_t bytes = std::max<std::int64_t>(0, std::min(loop.piece, loop.bytes - own));
        bool complete = true;
        if (group == Group::broadcast) {
          broadcast(channel, index, bytes, phase);
        } else {
          phase.wait({flags + slot, all});
          phase.delay = place_.poll;
          if (bytes > 0) phase.load(lines(in + own, bytes, Target::multicast, place_.multicast_group));
          if (place_.nodes() > 1) complete = reduce_over_nodes(channel, index, bytes, phase);
        }
        if (complete) {
          if (bytes > 0) phase.store(lines(out + own, bytes, Target::multicast, place_.multicast_group));
          phase.post({flags + kSlots + slot, Target::multicast, place_.multicast_group});
        }
        break;
      }
      case Group::stage_out:
        phase.wait({flags + kSlots + slot, all});
        if (loop.bytes > 0) {
          phase.load(lines(out, loop.bytes));
          phase.store(lines(place_.receive_address + loop.offset, loop.bytes));
        }
        phase.post({staged_out, Target::local, 0});
        phase.fenced = false;  // the slot was read; who waits for it is in the same block
        break;
    }
    set_rounds(phase, lines_per_round(group), workers(group));
    return phase;
  }

  InSwitchPlace place_;
  InSwitchSchedule schedule_;
  std::uint32_t rank_;  // in the node
  std::uint32_t node_;
};

}  // namespace

std::uint32_t in_switch_part(std::uint32_t members, std::uint32_t fan_in) {
  for (std::uint32_t part = std::min(members, fan_in); part >= 2; --part) {
    if (members % part == 0) return part;
  }
  return 0;
}

std::uint32_t in_switch_flags(const InSwitchPlace& place) {
  return place.spec.channels * flags_per_channel(place.nodes());
}

std::int64_t in_switch_buffer_bytes(const InSwitchSpec& spec, std::uint32_t ranks, std::uint32_t nodes) {
  const std::uint32_t fifos = nodes > 1 ? kTreeChildren + 1 : 0;
  return std::int64_t{spec.channels} * (2 * ranks + fifos) * kSlots * InSwitchSchedule::kLargestChunk;
}

StagingSlots staging_slots(const InSwitchPlace& place, std::uint32_t channel, std::uint32_t index) {
  const std::int64_t slot_bytes = place.ranks * InSwitchSchedule::kLargestChunk;
  const std::int64_t in = place.buffer + (channel * 2 * kSlots + index % kSlots) * slot_bytes;
  return {in, in + kSlots * slot_bytes};
}

std::uint32_t in_switch_channel_flags(const InSwitchPlace& place, std::uint32_t channel) {
  return place.first_flag + channel * flags_per_channel(place.nodes());
}

std::uint32_t in_switch_threads(const InSwitchPlace& place) {
  if (!place.registered && place.kind != CollectiveKind::all_reduce) return staged_gather_threads();
  return 32 * (place.spec.reduce_warps + 2 * place.spec.copy_warps);
}

std::shared_ptr<const BlockPrograms> in_switch_programs(const InSwitchPlace& place, std::uint32_t rank) {
  if (place.registered) return registered_in_switch_programs(place, rank);
  if (place.kind != CollectiveKind::all_reduce) return staged_gather_programs(place, rank);
  return std::make_shared<InSwitchPrograms>(place, rank);
}

}  // namespace weft
