// What the in-switch all-reduce does beyond its node (in_switch_programs.h): the trees over nodes of the GPUs of one
// place. A channel has flags and FIFOs of its own, the same on all ranks. What goes to another node is staged, and
// taken from there by the NIC (nic_programs.h).
#pragma once

#include <cstdint>

#include "gpu_model/in_switch_programs.h"
#include "network/binary_tree.h"

namespace weft {

class InSwitchTree {
 public:
  // `place` outlives it. Of `rank` of the group; `schedule_flags`: counters of a channel before those of its tree.
  InSwitchTree(const InSwitchPlace& place, std::uint32_t rank, std::uint32_t schedule_flags)
      : place_(&place), rank_(rank % place.ranks), node_(rank / place.ranks), schedule_flags_(schedule_flags) {}

  static constexpr std::uint32_t kChildren = 2;
  // Pieces that have come up from each child, that each child has taken of those sent down, that the parent has taken
  // of those sent up, and that have come down or, where nobody is the root, turned round; and those that wait for the
  // NIC and that it has sent, up and down.
  static constexpr std::uint32_t kFlags = 2 * kChildren + 7;
  // Of slots: from each child, from the parent, and for the NIC, up and down.
  static constexpr std::uint32_t kFifos = kChildren + 3;

  [[nodiscard]] TreeNode node_at(std::uint32_t channel) const { return tree_of(channel, node_); }
  // Adds what the children sent, and sends it up, or turns it round at the root. True at the root.
  bool reduce(std::uint32_t channel, std::uint32_t index, std::int64_t bytes, Phase& phase) const;
  // The sums of all nodes come down.
  void broadcast(std::uint32_t channel, std::uint32_t index, std::int64_t bytes, Phase& phase) const;
  // What the NIC does for them: to the parent, or to child `c`.
  [[nodiscard]] Phase nic_up(std::uint32_t channel, std::uint32_t index, std::int64_t bytes) const;
  [[nodiscard]] Phase nic_down(std::uint32_t channel, std::uint32_t c, std::uint32_t index, std::int64_t bytes) const;

 private:
  struct Channel {
    std::uint32_t came_up, child_took, parent_took, came_down, turned;  // flags; the first two by child
    std::uint32_t filled_up, sent_up, filled_down, sent_down;
    std::int64_t fifo;  // of kFifos, kInSwitchSlots of the largest chunk each
  };
  static constexpr std::uint32_t kDown = kChildren, kStagedUp = kDown + 1, kStagedDown = kDown + 2;  // FIFOs

  [[nodiscard]] TreeNode tree_of(std::uint32_t channel, std::uint32_t node) const;
  // The GPU of this place in another node.
  [[nodiscard]] std::uint16_t gpu(std::uint32_t node) const;
  // Which of its parent's children this node is.
  [[nodiscard]] std::uint32_t number_at(std::uint32_t channel, std::uint32_t parent) const;
  [[nodiscard]] Channel channel_of(std::uint32_t channel) const;
  static std::int64_t slot(const Channel& at, std::uint32_t fifo, std::uint32_t index);
  void stage(const Channel& at, bool up, std::uint32_t index, std::int64_t bytes, Phase& phase) const;
  [[nodiscard]] Phase pass_on(const Channel& at, std::uint32_t from, std::uint32_t to, std::uint32_t index,
                              std::int64_t bytes, std::uint16_t peer) const;
  // What the NIC takes for pieces of so many bytes of all channels of a tree.
  [[nodiscard]] SubCycle all_channels(std::int64_t bytes) const;
  // A level of a tree that goes on without end, apart from what its warps do.
  [[nodiscard]] SubCycle hop() const { return place_->node_latency + place_->proxy_latency; }

  const InSwitchPlace* place_;
  std::uint32_t rank_;  // in the node
  std::uint32_t node_;
  std::uint32_t schedule_flags_;
};

}  // namespace weft
