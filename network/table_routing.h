// Routing over any graph: shortest paths, or shortest up*/down* paths, around links that are out.
#pragma once

#include "network/port_runs.h"

namespace weft {

// Tables of runs: GPUs of consecutive ids whose packets leave a router by the same ports. Trees take a run a port.
//
// up_down: routers are ranked by their level in a tree, else by their distance from the one with most links; a packet
// goes up first, then down, never up again (Schroeder et al., Autonet, 1991), which needs no virtual channels.
// shortest_path: one virtual channel class more with each hop, so as many as the longest route has hops.
class TableRouting final : public Routing {
 public:
  // Over the routers [first, first + count). Throws InputError where a GPU cannot be reached from a router that has
  // one.
  TableRouting(const Topology& topology, GraphRoutes routes, std::uint32_t first, std::uint32_t count,
               const Origin& origin);
  [[nodiscard]] Hops next(std::uint32_t node, std::uint32_t in_port, const Packet& packet) const override;
  [[nodiscard]] std::uint32_t vc_classes() const override { return vc_classes_; }
  [[nodiscard]] std::size_t bytes() const { return ports_.bytes(); }

 private:
  enum class Arrival : std::uint8_t { terminal, up, down };

  [[nodiscard]] bool routes_over(std::uint32_t node) const { return node >= first_ && node < first_ + count_; }
  [[nodiscard]] bool goes_up(std::uint32_t from, std::uint32_t to) const;
  void rank_routers(const Topology& topology);
  void measure(const Topology& topology, std::uint32_t target);

  GraphRoutes routes_;
  std::uint32_t first_;
  std::uint32_t count_;
  std::uint32_t vc_classes_ = 1;
  std::vector<std::uint32_t> rank_;        // by router: a smaller one is nearer to the root
  std::vector<std::uint32_t> first_port_;  // by router, into arrivals_
  std::vector<Arrival> arrivals_;          // by router and port it came by
  PortRuns ports_;                         // by router and phase (may still go up, or only down), towards GPUs
  std::vector<std::uint32_t> distance_;    // to the target at hand, by router and phase
  std::vector<std::uint32_t> queue_;
};

}  // namespace weft
