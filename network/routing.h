// Which ports lead a packet nearer to its GPU. Regular networks compute it, irregular ones look it up in tables that
// hold runs of GPU ids: memory is linear in routers and links, never GPUs by GPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "network/packet.h"
#include "network/topology.h"

namespace weft {

// The GPU that a packet comes from, and the one that it goes to.
constexpr std::uint16_t origin_of(const Packet& packet) {
  return virtual_channel(packet.kind) == VirtualChannel::request ? packet.source : packet.destination;
}
constexpr std::uint16_t target_of(const Packet& packet) {
  return virtual_channel(packet.kind) == VirtualChannel::request ? packet.destination : packet.source;
}

// Ports of equal worth: `ports[0 .. count)`, or from `first` on where `ports` is null.
struct Hops {
  const std::uint16_t* ports = nullptr;
  std::uint16_t first = 0;
  std::uint16_t count = 1;
  std::uint16_t preferred = 0;  // of those, by destination: what deterministic routing takes
  std::uint8_t vc_class = 0;    // that the packet travels in to the next router
  [[nodiscard]] std::uint16_t port(std::uint16_t index) const {
    return ports != nullptr ? ports[index] : static_cast<std::uint16_t>(first + index);
  }
};

constexpr Hops one_port(std::uint32_t port, std::uint8_t vc_class = 0) {
  return {
      .ports = nullptr, .first = static_cast<std::uint16_t>(port), .count = 1, .preferred = 0, .vc_class = vc_class};
}

class Routing {
 public:
  virtual ~Routing() = default;
  // Of a packet at router `node` that came by `in_port`.
  [[nodiscard]] virtual Hops next(std::uint32_t node, std::uint32_t in_port, const Packet& packet) const = 0;
  // Virtual channels of each message class that keep the routes free of deadlock.
  [[nodiscard]] virtual std::uint32_t vc_classes() const { return 1; }
  // Whether packets on their way go before those that come from terminals. Else these take the places that packets
  // half-way wait for, who hold up all behind them: throughput falls as the load grows. Networks in which all routers have
  // equal shares of the way can afford it; in the middle of a mesh nobody would get in.
  [[nodiscard]] virtual bool through_first() const { return false; }
};

// Up to any common ancestor, then down. Leaf switches have their terminals (GPUs or NICs) at the first ports; ports to
// the level above are the last ones.
struct TreeLayout {
  std::uint32_t levels = 2;
  std::uint32_t leaf_down = 0;   // terminals of a full leaf
  std::uint32_t pod_leaves = 0;  // of a full pod; 3 levels
  std::uint32_t leaf_up = 0, pod_up = 0;
  std::uint32_t first_leaf = 0, leaves = 0;  // nodes
  std::uint32_t first_middle = 0;            // of pods: leaf_up each; 3 levels
  std::uint32_t first_root = 0;
  // The place of a GPU's terminal: GPUs there are, a node's, and for rails nodes and terminals a node.
  std::uint32_t gpus = 0;                                   // for others stands g % gpus, across the roots or nodes
  std::uint32_t gpus_per_node = 0, terminals_per_node = 0;  // 0: a GPU is a terminal
  std::uint32_t rail_places = 0;                            // 0: no rails
  [[nodiscard]] std::uint32_t place(std::uint32_t gpu) const;
};

class TreeRouting final : public Routing {
 public:
  TreeRouting(const Topology& topology, const TreeLayout& layout) : topology_(&topology), layout_(layout) {}
  [[nodiscard]] Hops next(std::uint32_t node, std::uint32_t in_port, const Packet& packet) const override;

 private:
  const Topology* topology_;
  TreeLayout layout_;
};

// A NIC: what comes from its GPUs, which have its first ports, goes out, all else to them.
class NicRouting final : public Routing {
 public:
  NicRouting(std::uint32_t first_nic, std::uint32_t gpus_per_nic, std::uint32_t gpus)
      : first_nic_(first_nic), gpus_per_nic_(gpus_per_nic), gpus_(gpus) {}
  [[nodiscard]] Hops next(std::uint32_t node, std::uint32_t in_port, const Packet& packet) const override;

 private:
  std::uint32_t first_nic_, gpus_per_nic_, gpus_;
};

}  // namespace weft
