// Thread-block clusters: so many neighbouring blocks, all placed at once on units of one GPC, or none.
#include "gpu_model/gpu.h"

namespace weft {

// Breadth first: one block a unit and pass, as for single blocks.
bool Gpu::place_cluster(std::uint32_t slot, std::uint32_t gpc) {
  const std::uint32_t wanted = running_[slot].cluster_blocks;
  const BlockNeeds needs = running_[slot].needs;
  order_.of_cluster.clear();
  for (bool found = true; found && order_.of_cluster.size() < wanted;) {
    found = false;
    for (std::uint32_t u = order_.gpc_units[gpc]; u < order_.gpc_units[gpc + 1] && order_.of_cluster.size() < wanted;
         ++u) {
      if (!units_[u].slots.fits(needs)) {
        if (units_[u].communication_blocks > 0) ledgers_[running_[slot].op.value].displaced = true;
        continue;
      }
      units_[u].slots.take(needs);
      order_.of_cluster.push_back(u);
      found = true;
    }
  }
  for (const std::uint32_t u : order_.of_cluster) units_[u].slots.release(needs);
  if (order_.of_cluster.size() < wanted) return false;
  for (const std::uint32_t u : order_.of_cluster) place_block(slot, u);
  return true;
}

// One cluster a GPC and pass, as long as one fits anywhere.
void Gpu::dispatch_clusters(std::uint32_t slot) {
  const RunningKernel& kernel = running_[slot];
  for (bool placed = true; placed && kernel.has_to_place();) {
    placed = false;
    for (std::uint32_t i = 0; i < spec_.gpcs && kernel.has_to_place(); ++i) {
      const std::uint32_t gpc = order_.next_gpc;
      order_.next_gpc = order_.next_gpc + 1 == spec_.gpcs ? 0 : order_.next_gpc + 1;
      placed = place_cluster(slot, gpc) || placed;
    }
  }
}

}  // namespace weft
