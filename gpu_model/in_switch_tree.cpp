#include "gpu_model/in_switch_tree.h"

#include "gpu_model/nic_programs.h"
#include "gpu_model/phase_lines.h"
#include "sim/error.h"

namespace weft {

TreeNode InSwitchTree::tree_of(std::uint32_t channel, std::uint32_t node) const {
  const bool second = channel % 2 == 1;
  if (place_->alike_ranks && has_alike_trees(place_->nodes())) return alike_tree(place_->nodes(), node, second);
  return second ? second_binary_tree(place_->nodes(), node) : binary_tree(place_->nodes(), node);
}

std::uint16_t InSwitchTree::gpu(std::uint32_t node) const {
  return static_cast<std::uint16_t>(place_->group[node * place_->ranks + rank_].value);
}

std::uint32_t InSwitchTree::number_at(std::uint32_t channel, std::uint32_t parent) const {
  const TreeNode above = tree_of(channel, parent);
  WEFT_CHECK(above.child_count > 0, "a parent without children");
  return above.children[0] == node_ ? 0 : 1;
}

InSwitchTree::Channel InSwitchTree::channel_of(std::uint32_t channel) const {
  const std::uint32_t flags = in_switch_channel_flags(*place_, channel) + schedule_flags_;
  const std::int64_t staging = place_->spec.channels * std::int64_t{2} * kInSwitchSlots * place_->ranks;
  const std::int64_t fifo = staging + std::int64_t{channel} * kFifos * kInSwitchSlots;
  const std::uint32_t others = flags + 2 * kChildren;
  return {
      flags,      flags + kChildren, others,     others + 1, others + 2,
      others + 3, others + 4,        others + 5, others + 6, place_->buffer + fifo * InSwitchSchedule::kLargestChunk};
}

std::int64_t InSwitchTree::slot(const Channel& at, std::uint32_t fifo, std::uint32_t index) {
  return at.fifo + (fifo * kInSwitchSlots + index % kInSwitchSlots) * InSwitchSchedule::kLargestChunk;
}

// For the NIC.
void InSwitchTree::stage(const Channel& at, bool up, std::uint32_t index, std::int64_t bytes, Phase& phase) const {
  if (index >= kInSwitchSlots) phase.wait({up ? at.sent_up : at.sent_down, index + 1 - kInSwitchSlots});
  if (bytes > 0) phase.store(lines(slot(at, up ? kStagedUp : kStagedDown, index), bytes));
  phase.post_to_proxy({up ? at.filled_up : at.filled_down, Target::local, 0});
  phase.proxy_delay = place_->proxy_latency;
}

// What was staged goes to another node's FIFO; its flag follows the data unfenced (nic_programs.cpp).
Phase InSwitchTree::pass_on(const Channel& at, std::uint32_t from, std::uint32_t to, std::uint32_t index,
                            std::int64_t bytes, std::uint16_t peer) const {
  Phase phase;
  phase.fenced = place_->values_travel;
  if (bytes > 0) {
    phase.load(lines(slot(at, from, index), bytes));
    phase.store(lines(slot(at, to, index), bytes, Target::remote, peer));
  }
  set_rounds(phase, kNicLinesPerRound, kNicLinesInFlight / kNicLinesPerRound);
  return phase;
}

Phase InSwitchTree::nic_up(std::uint32_t channel, std::uint32_t index, std::int64_t bytes) const {
  const Channel at = channel_of(channel);
  const TreeNode node = node_at(channel);
  const std::uint16_t parent = gpu(*node.parent);
  const std::uint32_t number = number_at(channel, *node.parent);
  Phase phase = pass_on(at, kStagedUp, number, index, bytes, parent);
  phase.wait({at.filled_up, index + 1});
  if (index >= kInSwitchSlots) phase.wait({at.parent_took, index + 1 - kInSwitchSlots});
  phase.post({at.came_up + number, Target::remote, parent});
  phase.post({at.sent_up, Target::local, 0});
  return phase;
}

Phase InSwitchTree::nic_down(std::uint32_t channel, std::uint32_t c, std::uint32_t index, std::int64_t bytes) const {
  const Channel at = channel_of(channel);
  const TreeNode node = node_at(channel);
  const std::uint16_t child = gpu(node.children.at(c));
  Phase phase = pass_on(at, kStagedDown, kDown, index, bytes, child);
  phase.wait({at.filled_down, index + 1});
  if (index >= kInSwitchSlots) phase.wait({at.child_took + c, index + 1 - kInSwitchSlots});
  const FlagPost came{at.came_down, Target::remote, child};
  if (node.endless() && c != TreeNode::kEndlessChild) {
    phase.post_late(came);
    // Its phases count, those of the warps that broadcast do not: they store through the switch, and fence.
    phase.post_delay = node.hops_down() * (hop() + place_->poll + place_->fence);
    phase.post_delay_phases = node.hops_down();
  } else {
    phase.post(came);
  }
  if (c + 1 == node.child_count) phase.post({at.sent_down, Target::local, 0});
  return phase;
}

// Blocks go in step, so their pieces are at the NIC at the same time: those of one tree.
SubCycle InSwitchTree::all_channels(std::int64_t bytes) const {
  return (place_->spec.channels + 1) / 2 * (bytes / kLineBytes) * place_->nic_line;
}

bool InSwitchTree::reduce(std::uint32_t channel, std::uint32_t index, std::int64_t bytes, Phase& phase) const {
  const Channel at = channel_of(channel);
  const TreeNode node = node_at(channel);
  for (std::uint32_t c = 0; c < node.child_count; ++c) {
    if (!node.endless() || c != TreeNode::kEndlessChild) phase.wait({at.came_up + c, index + 1});
    if (bytes > 0) phase.load(lines(slot(at, c, index), bytes));
    phase.post({at.parent_took, Target::remote, gpu(node.children.at(c))});
  }
  phase.compute = adding_time(place_->adds_per_cycle, place_->lines_per_round, 1 + node.child_count);
  if (!node.parent) {
    if (node.child_count > 0) stage(at, false, index, bytes, phase);
    return true;
  }
  stage(at, true, index, bytes, phase);
  if (node.endless()) {
    phase.post_late({at.turned, Target::local, 0});
    // The way to the parent, which nobody waits for, and those beyond it.
    phase.post_delay = (1 + node.hops_up()) * (hop() + all_channels(bytes)) + node.hops_up() * place_->poll;
    phase.post_delay_phases = node.hops_up();
  }
  return false;
}

void InSwitchTree::broadcast(std::uint32_t channel, std::uint32_t index, std::int64_t bytes, Phase& phase) const {
  const Channel at = channel_of(channel);
  const TreeNode node = node_at(channel);
  phase.wait({node.endless() ? at.turned : at.came_down, index + 1});
  if (bytes > 0) phase.load(lines(slot(at, kDown, index), bytes));
  phase.post({at.child_took + number_at(channel, *node.parent), Target::remote, gpu(*node.parent)});
  if (node.child_count > 0) stage(at, false, index, bytes, phase);
}

}  // namespace weft
