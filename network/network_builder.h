// The parts of make_network(): each adds the nodes and cables of one kind of network and its routes.
#pragma once

#include "network/network.h"

namespace weft {

class NetworkBuilder {
 public:
  NetworkBuilder(const NetworkSpec& spec, std::uint32_t gpus, const Origin& origin, std::uint32_t all);
  [[nodiscard]] std::unique_ptr<Network> build();

 private:
  // Of the GPUs [first, first + count): one node's.
  void add_node_network(std::uint32_t first, std::uint32_t count);
  void add_switched(std::uint32_t first, std::uint32_t count);
  void add_fully_connected(std::uint32_t first, std::uint32_t count);
  void add_stand_in(std::uint32_t gpu);
  void add_grid(std::uint32_t first, std::uint32_t count);
  void add_hybrid_cube_mesh(std::uint32_t first, std::uint32_t count);
  void add_dragonfly(std::uint32_t first, std::uint32_t count);
  void add_graph(std::uint32_t first, std::uint32_t count);
  void add_cluster();

  struct TreeParts {
    TreeSpec spec;
    std::vector<std::uint32_t> terminals;  // nodes, by place; kNone: nothing there
    std::uint8_t terminal_class = 0, link_class = 0;
    std::uint32_t terminal_lanes = 1, lanes = 1;
    std::uint32_t all = 0;  // places that there would be; those that are not are below other ports of the roots
    TreeLayout layout;      // how GPUs find their terminals
    std::string key;        // of the spec, for errors
  };
  void add_tree(TreeParts parts);

  std::uint32_t add_routers(std::uint32_t count, std::uint8_t level = 0);
  void attach_gpu(std::uint32_t gpu, std::uint32_t router);
  void route(std::unique_ptr<Routing> routing, std::uint32_t first, std::uint32_t count);
  // Routes that know nothing of links that are out give way to tables.
  void route_around_faults();
  void check_planes() const;
  void check_gpu_links() const;
  void expect_places(std::uint64_t places, std::uint32_t count, const std::string& key) const;
  [[noreturn]] void refuse(const std::string& key, const std::string& message) const;

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Domain {
    std::uint32_t first = 0, count = 0;  // routers
  };

  const NetworkSpec& spec_;
  std::uint32_t gpus_;
  std::uint32_t all_;  // for which they stand
  Origin origin_;
  std::unique_ptr<Network> network_;
  Topology& topology_;
  std::vector<Domain> domains_;  // by routing
  std::uint8_t link_class_ = 0, injection_class_ = 0;
};

}  // namespace weft
