// A network as data: nodes, and cables of lanes between their ports. Memory is linear in nodes and cables.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "network/network_spec.h"

namespace weft {

enum class TopologyNodeKind : std::uint8_t { gpu, hub, router, nic };  // a hub is a switch of `switched`: it may reduce

struct TopologyNode {
  TopologyNodeKind kind = TopologyNodeKind::router;
  std::uint8_t level = 0;    // distance from the roots of a tree turned round: a link to a higher level goes up
  std::uint32_t number = 0;  // among its kind; of a GPU its id
  std::uint32_t ports = 0;
};

// Both directions between port `port_a` of node `a` and port `port_b` of node `b`. Direction 0 goes from a to b.
struct Cable {
  std::uint32_t a = 0, b = 0;
  std::uint16_t port_a = 0, port_b = 0;
  std::uint8_t link_class = 0;
  std::uint8_t lanes = 1;
};

// One direction of a cable.
struct LinkId {
  std::uint32_t cable = 0;
  std::uint32_t direction = 0;
  bool operator==(const LinkId&) const = default;
};

// Where a network was described: for errors.
struct Origin {
  std::string file;
  std::string path = "/network";
};

class Topology {
 public:
  std::uint32_t add_node(TopologyNodeKind kind, std::uint8_t level = 0, const std::string& name = {});
  // Ports are numbered in the order of connect().
  void connect(std::uint32_t a, std::uint32_t b, std::uint8_t link_class, std::uint32_t lanes);
  // A port of `node` whose link comes back to it: direction 0 of the cable, and there is no other.
  void loop(std::uint32_t node, std::uint8_t link_class, std::uint32_t lanes);
  std::uint8_t add_class(const LinkSpec& spec);
  // Call once after the last connect().
  void index_ports();

  [[nodiscard]] const std::vector<TopologyNode>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<Cable>& cables() const { return cables_; }
  [[nodiscard]] const std::vector<LinkSpec>& classes() const { return classes_; }
  [[nodiscard]] std::uint32_t count(TopologyNodeKind kind) const { return counts_[static_cast<std::size_t>(kind)]; }

  // The link that leaves `node` by `port`.
  [[nodiscard]] LinkId out(std::uint32_t node, std::uint32_t port) const { return ports_[first_port_[node] + port]; }
  // Whether links come back to this node, or to its router: it stands for all.
  [[nodiscard]] bool loops(std::uint32_t node) const;
  // The one that comes in there.
  [[nodiscard]] LinkId in(std::uint32_t node, std::uint32_t port) const;
  [[nodiscard]] std::uint32_t neighbour(std::uint32_t node, std::uint32_t port) const;
  [[nodiscard]] std::uint32_t from(LinkId link) const;
  [[nodiscard]] std::uint32_t to(LinkId link) const;
  [[nodiscard]] std::string name(std::uint32_t node) const;
  [[nodiscard]] std::string name(LinkId link) const;

  // What is left of a lane's bandwidth: 1 where nothing is wrong.
  [[nodiscard]] double lane_factor(LinkId link, std::uint32_t lane) const;
  // Whether all lanes of a link are out.
  [[nodiscard]] bool out_of_order(LinkId link) const;
  [[nodiscard]] bool any_out_of_order() const;
  // Throws InputError for a link or lane that does not exist.
  void set_faults(const std::vector<FaultSpec>& faults, const Origin& origin);

 private:
  struct LaneFault {
    std::uint32_t link = 0;  // cable * 2 + direction
    std::uint32_t lane = 0;
    double factor = 1;
  };

  std::vector<TopologyNode> nodes_;
  std::vector<std::string> names_;  // of graphs only
  std::vector<Cable> cables_;
  std::vector<LinkSpec> classes_;
  std::vector<std::uint32_t> first_port_;
  std::vector<LinkId> ports_;
  std::vector<LaneFault> faults_;
  std::array<std::uint32_t, 4> counts_{};
};

}  // namespace weft
