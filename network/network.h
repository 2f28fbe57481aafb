// A network ready to be wired: its topology and the routes over it.
#pragma once

#include <memory>
#include <vector>

#include "network/routing.h"
#include "network/topology.h"

namespace weft {

struct Network {
  Topology topology;  // GPU g is node g
  std::vector<std::unique_ptr<Routing>> routings;
  std::vector<std::uint32_t> vc_classes;  // by routing
  std::vector<std::uint16_t> routing_of;  // by node: of routers and NICs
  std::uint32_t gpus_per_node = 0;        // all GPUs where there is one node

  [[nodiscard]] const Routing& routing(std::uint32_t node) const { return *routings[routing_of[node]]; }
};

// The network of `gpus` GPUs. Throws InputError (at `origin` and below) for parameters that make no network, for
// one with too few places, and where GPUs cannot reach each other.
// `all`: they stand for so many. Between nodes, or branches of a fat tree, what one sends to another comes back: to GPU
// g % gpus.
[[nodiscard]] std::unique_ptr<Network> make_network(const NetworkSpec& spec, std::uint32_t gpus,
                                                    const Origin& origin = {}, std::uint32_t all = 0);

// The GPUs below one port of a root of a fat tree of GPUs: those of a leaf, or of a pod. 0: of other networks.
[[nodiscard]] std::uint32_t gpus_of_branch(const NetworkSpec& spec);

}  // namespace weft
