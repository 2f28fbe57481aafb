// The links of one GPU: bundles of lanes to switches, to peers, to a router, to a NIC; and which lane an address takes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "network/network_spec.h"
#include "network/plane_lanes.h"
#include "network/routing.h"
#include "network/transmitter.h"
#include "sim/ids.h"

namespace weft {

// The lanes to one neighbour.
struct LinkBundle {
  LinkWires* in = nullptr;
  LinkWires* out = nullptr;
  std::vector<std::shared_ptr<const LinkTiming>> lanes;  // null: this lane is out
};

// Who is at the other end of the bundles.
struct LinkPlan {
  // planes: switches, all alike; an address takes the same lane number on all GPUs that it concerns, so that its
  // traffic meets in one switch. peers: the other GPUs of the node, ascending. router: one bundle.
  enum class Kind : std::uint8_t { planes, peers, router } kind = Kind::planes;
  std::uint32_t first_gpu = 0;  // of this GPU's node
  std::uint32_t gpus = 0;       // of the node: to all others, packets take the last bundle, the NIC's
  // planes: the lanes; and where some are out, those of them that work for both this GPU and each of the node, and for
  // all members of each multicast group that it is in. Empty: all.
  std::vector<LinkLane> lanes = {};
  std::vector<std::vector<LinkLane>> lanes_to_gpu = {};
  std::vector<std::vector<LinkLane>> lanes_of_group = {};
  // peers, router: so many that are there stand for all `gpus`, and packets between others have their numbers; 0: all
  // are there.
  std::uint32_t there = 0;
  // router: lanes that packets to each GPU of the node have for themselves; 0: they share all of them.
  std::uint32_t lanes_for_each = 0;
  // One stands for all, and each link comes back to it: what it sends to another one is as if that one had sent it.
  bool loops = false;
};

class LinkPorts {
 public:
  LinkPorts() = default;  // of a GPU without links
  LinkPorts(const LinkPlan& plan, GpuId self, const std::vector<LinkBundle>& bundles);

  [[nodiscard]] LinkLane lane_of(LineAddress line, std::uint16_t destination) const;
  // Of what goes to a switch for a multicast group.
  [[nodiscard]] LinkLane lane_of_group(LineAddress line, std::uint16_t group) const;
  // By which a chunk leaves for its tree, so that chunks of one lane keep their order.
  [[nodiscard]] LinkLane lane_of_chunk(std::uint32_t bundle, std::uint32_t chunk) const {
    return lane_in(bundle, chunk);
  }
  // The bundle that the answer to a packet which came in by `bundle` leaves by is the same one.
  [[nodiscard]] std::size_t size() const { return transmitters_.size(); }
  [[nodiscard]] bool empty() const { return transmitters_.empty(); }
  [[nodiscard]] const Transmitter& transmitter(std::size_t index) const { return transmitters_[index]; }

  // Sends a packet by a lane of a bundle: that of its lane_of(), or the one that the packet it answers came by.
  void submit(const Packet& packet, std::size_t bundle, Time ready);
  // Sends the credit of a packet that leaves its buffer place at `when`.
  void give_credit(const Packet& packet, std::size_t bundle, Time when);
  // Hands over what has come: credits to the transmitters, packets to `handle(packet, bundle)`.
  template <class Handler>
  void receive(Handler&& handle) {
    if (inbox_ == nullptr) return;
    inbox_->drain([&](std::uint32_t slot) {
      const std::uint32_t bundle = slot / 2;
      if (slot % 2 == 1) {
        in_[bundle]->packets.receive([&](const Packet& packet) {
          if (plan_.there == 0 || target_of(packet) < plan_.there) {
            handle(packet, bundle);
          } else {
            handle(as_sent_to_it(packet), bundle);  // apart: only this one is a copy
          }
        });
        return;
      }
      departures_.clear();  // nobody holds a buffer place for a packet that waits here: agents hold their own limits
      in_[bundle]->credits.receive(
          [&](const Credit& credit) { transmitters_[bundle].receive_credit(credit, departures_); });
    });
  }

 private:
  // A packet for one that this GPU stands for, as if it were this GPU's: its sender is as far from it, or the one that
  // it went to.
  [[nodiscard]] Packet as_sent_to_it(const Packet& packet) const;
  [[nodiscard]] LinkLane lane_in(std::uint32_t bundle, std::uint32_t spread) const;

  LinkPlan plan_;
  std::uint32_t self_ = 0;
  std::unique_ptr<Inbox> inbox_;  // wires point at it
  std::vector<LinkWires*> in_;
  std::vector<LinkWires*> out_;
  std::vector<Time> latency_;
  std::vector<Transmitter> transmitters_;
  std::vector<std::vector<std::uint8_t>> live_;  // by bundle, where a lane is out: those that are not
  std::vector<Departure> departures_;
};

}  // namespace weft
