// Which GPUs of a run stand for the group of a recorded collective.
#pragma once

#include <string>
#include <vector>

#include "workloads/graph.h"

namespace weft {

// Groups of one recorded collective as seen by each GPU. `path` names the node for messages.
// Throws InputError as replay() describes.
class ReplayGroups {
 public:
  // `world`: ranks of the recorded run; 0: as many as the largest group of the graph.
  ReplayGroups(const Graph& graph, std::uint32_t gpus);

  [[nodiscard]] std::vector<GpuId> group_of(GpuId gpu, const CollectiveNode& collective, const std::string& path) const;
  void check(const CollectiveNode& collective, const std::string& path) const;

 private:
  [[nodiscard]] bool whole_world(const CollectiveNode& collective) const;

  std::string source_;
  std::uint32_t gpus_;
  std::uint32_t world_;
};

}  // namespace weft
