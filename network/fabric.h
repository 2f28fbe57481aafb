// A network wired: the wires of all links and the routers between them. GPUs and reducing switches are built by who
// knows them, on the wires that are here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "network/network.h"
#include "network/router.h"
#include "sim/conductor.h"

namespace weft {

class Fabric {
 public:
  // Throws InputError as make_network(), make_aggregation_tree() and the plan's aggregators do.
  Fabric(const NetworkSpec& spec, std::uint32_t gpus, const Origin& origin = {}, const AggregationPlan& plan = {},
         std::uint32_t all = 0);

  [[nodiscard]] const Network& network() const { return *network_; }
  [[nodiscard]] const Topology& topology() const { return network_->topology; }

  // The wires and lanes of a node's port.
  [[nodiscard]] LinkWires& out(std::uint32_t node, std::uint32_t port);
  [[nodiscard]] LinkWires& in(std::uint32_t node, std::uint32_t port);
  // What each lane out of a port takes for packets; null for a lane that is out.
  [[nodiscard]] std::vector<std::shared_ptr<const LinkTiming>> lanes(std::uint32_t node, std::uint32_t port) const;

  // How busy a link was over time; null for those beyond the first kMostLoads, so that memory is bounded.
  static constexpr std::size_t kMostLoads = 512;
  [[nodiscard]] const TimeBins* load(LinkId link) const { return wires_[link.cable * 2 + link.direction].load.get(); }

  // Routers and NICs.
  [[nodiscard]] std::size_t routers() const { return routers_.size(); }
  [[nodiscard]] const Router& router(std::size_t index) const { return *routers_[index]; }
  [[nodiscard]] Router& router(std::size_t index) { return *routers_[index]; }
  // The router at a node that is one.
  [[nodiscard]] const Router& router_at(std::uint32_t node) const { return *routers_[router_of_[node]]; }

  // By group of the plan.
  [[nodiscard]] const std::vector<AggregationTree>& trees() const { return trees_; }

  // The smallest latency of a link: the engine's window.
  [[nodiscard]] Time window() const;
  // Adds the routers, and all wires; the chips of other nodes, given by `chip_at(node)`, have been added.
  void add_to(Conductor& engine, const std::function<const Chip&(std::uint32_t node)>& chip_at);

  // Packets in routers that wait for each other in a cycle, in words; empty when there is none.
  [[nodiscard]] std::string waiting_cycle() const;

 private:
  [[nodiscard]] LinkWires& wires(LinkId link) { return wires_[link.cable * 2 + link.direction]; }
  void build_routers(const NetworkSpec& spec, const AggregationPlan& plan);
  [[nodiscard]] RouterTrees trees_at(std::uint32_t node, const AggregationPlan& plan) const;

  std::unique_ptr<Network> network_;
  std::vector<LinkWires> wires_;                            // by cable and direction
  std::vector<std::shared_ptr<const LinkTiming>> timings_;  // by class of links
  mutable std::vector<std::pair<std::pair<std::uint8_t, double>, std::shared_ptr<const LinkTiming>>> degraded_;
  std::vector<AggregationTree> trees_;
  std::vector<std::unique_ptr<Router>> routers_;
  std::vector<std::uint32_t> router_of_;  // by node
};

}  // namespace weft
