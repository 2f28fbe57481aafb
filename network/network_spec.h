// The interconnect between GPUs as a configuration describes it: links, switches, topology, routing, faults. Plain
// data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/units.h"

namespace weft {

enum class TopologyKind : std::uint8_t {
  switched,         // every GPU linked to every switch, or to a leaf of every plane of two levels
  fully_connected,  // every GPU linked to every other
  ring,             // the rest: a router for each GPU, or switches
  mesh,
  torus,
  hypercube,
  hybrid_cube_mesh,
  fat_tree,
  dragonfly,
  graph,
};

// Whose rings go from GPU to GPU by links of their routers.
constexpr bool has_router_for_each_gpu(TopologyKind kind) {
  return kind == TopologyKind::ring || kind == TopologyKind::mesh || kind == TopologyKind::torus ||
         kind == TopologyKind::hypercube || kind == TopologyKind::hybrid_cube_mesh;
}

struct LinkSpec {
  Bandwidth bandwidth;            // of one lane bundle ("a link" in data sheets), each way
  double framing_efficiency = 1;  // what FEC and CRC leave of the line rate
  Time latency;                   // of one hop, without serialisation
  std::uint32_t flit_bytes = 16;
  std::uint32_t header_flits = 1;
  double acknowledge_flits = 0.15;  // of one write; a flit is shared by those that go the same way
  std::uint32_t max_payload_bytes = 128;
  std::uint32_t credits = 64;  // packets the receiver can hold for each virtual channel
  double train = 1;            // packets, one behind the other, that each packet of the model stands for
};

enum class Arbitration : std::uint8_t { round_robin, age };

struct SwitchSpec {
  Time latency;  // input to output, unloaded
  // The following are of routers; the switches of `switched` have virtual output queues and need no allocator.
  Arbitration arbitration = Arbitration::round_robin;
  std::uint32_t speedup = 1;  // rate at which an input is read, over the rate of a lane
  // A queue for each output, behind each input and virtual channel, in the same places: who waits for a busy output
  // holds up nobody else. Else one queue.
  bool virtual_output_queues = false;
};

// Which of the shortest paths a packet takes, where there are several.
enum class PathChoice : std::uint8_t {
  deterministic,  // by destination
  ecmp,           // by a hash of source, destination and address
  spray,          // packet by packet in turn
  adaptive,       // where the fewest packets wait
};

// How routes over an irregular graph are kept free of deadlock.
enum class GraphRoutes : std::uint8_t {
  up_down,        // up*/down*: no turn from down to up
  shortest_path,  // all shortest paths, one more virtual channel with each hop
};

struct RoutingSpec {
  PathChoice choice = PathChoice::ecmp;
  GraphRoutes graph = GraphRoutes::up_down;
  // Virtual channels of each message class; 0: as many as the routes need to be free of deadlock. Fewer may deadlock.
  std::uint32_t virtual_channels = 0;
};

struct TreeSpec {
  std::uint32_t levels = 2;            // of switches: 2 or 3
  std::uint32_t radix = 0;             // ports of a switch
  std::uint32_t oversubscription = 1;  // of leaf switches: ports down (leaf_down) over ports up
  bool rails = false;                  // clusters: NIC r of all nodes on the leaf switches of rail r
  [[nodiscard]] std::uint32_t leaf_down() const { return radix / (oversubscription + 1) * oversubscription; }
};

struct DragonflySpec {
  std::uint32_t gpus_per_router = 0;
  std::uint32_t routers_per_group = 0;
  std::uint32_t global_links_per_router = 0;
};

struct GraphSpec {
  struct Node {
    std::string name;
    bool gpu = false;  // else a router; GPUs are numbered in their order
  };
  struct Link {
    std::string from, to;  // both ways
    std::uint32_t lanes = 1;
    std::optional<Bandwidth> bandwidth = {};  // where they are not those of `link`
    std::optional<Time> latency = {};
  };
  std::vector<Node> nodes;
  std::vector<Link> links;
};

// Several nodes: `topology` is that of one; beyond it, NICs behind PCIe lead into a tree of switches.
struct ClusterSpec {
  std::uint32_t gpus_per_node = 0;
  std::uint32_t nics_per_node = 0;
  LinkSpec nic_link;  // GPU to NIC
  Time nic_latency;   // through a NIC
  LinkSpec link;      // NIC to switch, and between switches
  SwitchSpec switch_;
  TreeSpec tree;
};

// A lane that does less than it should: both directions have names of their own.
struct FaultSpec {
  std::string link;   // "gpu0->switch1", or one lane of it: "gpu0->switch1.2"
  double factor = 0;  // share of the bandwidth that is left; 0: out
};

struct NetworkSpec {
  TopologyKind topology = TopologyKind::switched;
  std::uint32_t links_per_gpu = 0;        // switched, fully_connected: in all; spread evenly over switches or peers
  std::uint32_t switches = 0;             // switched: planes; with `tree`, of leaf and spine switches
  std::uint32_t lanes = 1;                // the others: of a link between routers
  std::vector<std::uint32_t> dimensions;  // mesh, torus: routers in each
  TreeSpec tree;
  DragonflySpec dragonfly;
  GraphSpec graph;
  LinkSpec link;
  std::optional<LinkSpec> injection;  // between a GPU and its router, where it is not `link`
  std::uint32_t injection_lanes = 1;  // there
  SwitchSpec switch_;
  RoutingSpec routing;
  std::optional<ClusterSpec> cluster;
  std::vector<FaultSpec> faults;
};

// Lanes to its router that a GPU keeps for each of `gpus`, so that what waits for a busy link holds up nothing else:
// where the router is its own, and those are as many as a link between routers has. 0: packets to all GPUs share them,
// as they do the lanes to a switch.
constexpr std::uint32_t lanes_for_each_gpu(const NetworkSpec& network, std::uint32_t gpus) {
  const std::uint32_t each = network.injection_lanes / gpus;
  return has_router_for_each_gpu(network.topology) && each >= network.lanes ? each : 0;
}

}  // namespace weft
