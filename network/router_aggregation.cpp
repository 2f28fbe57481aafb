// Packets of trees: contributions go to the slots of this router, or further up; sums go down to all below.
#include "network/router.h"
#include "sim/error.h"

namespace weft {

namespace {
// Of message classes without classes of virtual channels: contributions go up and wait for sums, which go down and wait
// for nobody, so they need no more.
std::uint32_t tree_vc(const Packet& packet) { return static_cast<std::uint32_t>(virtual_channel(packet.kind)); }
}  // namespace

// The chunk chooses the lane, so that chunks of one lane keep their order.
std::uint32_t Router::tree_output(const Packet& packet, std::uint32_t port) const {
  const std::uint32_t first = first_lane_[port];
  const std::uint32_t lanes = first_lane_[port + 1] - first;
  std::uint32_t lane = packet.entry % lanes;
  while (outputs_[first + lane].timing == nullptr) lane = lane + 1 == lanes ? 0 : lane + 1;
  return first + lane;
}

// False: it waits in its queue for the output that is set, like any packet.
bool Router::taken_by_tree(std::uint32_t index) {
  Slot& slot = slots_[index];
  if (slot.queue == kNone) {  // a sum that has become complete here
    const Packet sum = slot.packet;
    free_slot(index);
    sum_came(sum);
    return true;
  }
  if (is_internal(slot.queue)) return false;
  WEFT_CHECK(!trees_.places.empty(), "a packet of a tree came to a router that is on none");
  if (trees_.loss.lost(node_, tree_packets_++)) {
    ++lost_;
    leave_queue(index);
    return true;
  }
  const TreePlace& tree = trees_.places[slot.packet.destination];
  const bool up = slot.packet.kind == PacketKind::contribution;
  if (tree.contributors == 0 && (up || tree.below.size() == 1)) {
    slot.output = tree_output(slot.packet, up ? *tree.above : tree.below.front());
    slot.credit = place(slot.output, tree_vc(slot.packet));
    return false;
  }
  if (up) {
    contribution_came(index);
    return true;
  }
  const Packet sum = slot.packet;
  leave_queue(index);
  sum_came(sum);
  return true;
}

void Router::contribution_came(std::uint32_t index) {
  using As = Contributed::As;
  const Packet packet = slots_[index].packet;
  const TreePlace& place = trees_.places[packet.destination];
  const std::uint32_t queue = slots_[index].queue;
  const Contributed what = trees_.aggregator->contribute(packet, lane_of(queue), now());
  if (what.as == As::waiting) {
    slot_waiters_[what.slot].push_back(index);
    return;
  }
  leave_queue(index);
  const auto send_up = [&](Time when) {
    Packet sum = packet;
    sum.agent = place.place;
    pass_on(sum, *place.above, when);
  };
  switch (what.as) {
    case As::completed: {
      if (place.above) {
        send_up(what.when);
        return;
      }
      Packet sum = packet;
      sum.kind = PacketKind::chunk_sum;
      wheel_.push((what.when.count() + kTick.count() - 1) >> kTickShift, take_slot(sum, kNone));
      return;
    }
    case As::asks_above:
      send_up(later(what.when, now()));
      return;
    case As::asks_for_sum: {
      Packet sum = packet;
      sum.kind = PacketKind::chunk_sum;
      pass_on(sum, queues_[queue].port, now());
      return;
    }
    default:
      return;
  }
}

// From above, or complete here: to all below. Contributions to the slot's next chunk can go on.
void Router::sum_came(const Packet& sum) {
  const TreePlace& place = trees_.places[sum.destination];
  if (place.contributors == 0) {
    for (const std::uint16_t port : place.below) pass_on(sum, port, now());
    return;
  }
  const std::optional<std::uint32_t> slot = trees_.aggregator->finish(sum);
  if (!slot) return;
  for (const std::uint16_t port : place.below) pass_on(sum, port, now());
  if (!slot_waiters_[*slot].empty()) wake(*slot);
}

// Those of the earliest chunk go on, in the order in which they came; the others wait for it.
void Router::wake(std::uint32_t aggregator_slot) {
  woken_.swap(slot_waiters_[aggregator_slot]);
  std::uint32_t earliest = ~std::uint32_t{0};
  for (const std::uint32_t index : woken_) earliest = std::min(earliest, slots_[index].packet.entry);
  for (const std::uint32_t index : woken_) {
    if (slots_[index].packet.entry != earliest) {
      slot_waiters_[aggregator_slot].push_back(index);
      continue;
    }
    trees_.aggregator->count_stall(now() - slots_[index].packet.when);
    contribution_came(index);
  }
  woken_.clear();
}

// A copy of its own, in the queue behind the lane, from `when` on.
void Router::pass_on(const Packet& packet, std::uint32_t port, Time when) {
  const std::uint32_t output = tree_output(packet, port);
  const std::uint32_t lane = static_cast<std::uint32_t>(outputs_.size()) + output;
  const std::uint32_t index = take_slot(packet, queue_of(place(lane, tree_vc(packet)), 0));
  slots_[index].output = output;
  slots_[index].credit = place(output, tree_vc(packet));
  added_bytes_ += packet.payload;
  wheel_.push((when.count() + kTick.count() - 1) >> kTickShift, index);
}

// Its place in the buffer is free, and the packet gone.
void Router::leave_queue(std::uint32_t index) {
  const Slot& slot = slots_[index];
  const Queue& in = queues_[slot.queue];
  in.credits->send(in.place, in.place.when + now());
  added_bytes_ -= slot.packet.payload;
  free_slot(index);
}

}  // namespace weft
