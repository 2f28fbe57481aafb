// Minimal routes on a dragonfly (Kim et al., ISCA 2008): local, global, local, with one global link at most.
#pragma once

#include "network/port_runs.h"

namespace weft {

// Of all global links between two groups, those that make the shortest way; a port counts once for each of them that it
// leads to, so that they carry the same. Local hops in the last group have a virtual channel class of their own: local,
// global, local of the last group is the order in which channels are used, so no cycle of them closes.
class DragonflyRouting final : public Routing {
 public:
  // Over the routers [first, first + count), group by group, each with its GPUs, the first ones from 0, at its first
  // ports.
  DragonflyRouting(const Topology& topology, const DragonflySpec& spec, std::uint32_t first, std::uint32_t count);
  [[nodiscard]] Hops next(std::uint32_t node, std::uint32_t in_port, const Packet& packet) const override;
  [[nodiscard]] std::uint32_t vc_classes() const override { return 2; }
  [[nodiscard]] bool through_first() const override { return true; }
  [[nodiscard]] std::size_t bytes() const { return ports_.bytes(); }

 private:
  std::uint32_t first_;
  std::uint32_t gpus_per_router_, routers_per_group_;
  PortRuns ports_;  // by router, towards routers
};

}  // namespace weft
