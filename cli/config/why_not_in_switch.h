// Why a collective is not reduced by switches or routers, in words.
#pragma once

#include <cstddef>
#include <string>

#include "cli/config/system_config.h"
#include "gpu_model/collective_kernel.h"
#include "network/network.h"

namespace weft {

// Whether sums in switches are those of loads, in one table: neither pushed nor over two levels.
[[nodiscard]] bool pulls_on_one_level(const RunConfig& config);

// Of one whose multicast groups would begin with this number; empty: switches can reduce it, if nothing is broken.
[[nodiscard]] std::string why_not_in_switch(const RunConfig& config, const CollectiveDemand& demand,
                                            std::size_t first_group);

// The same of sums that a kernel pushes as it stores. Of a reduce-scatter each rank's is a group.
[[nodiscard]] std::string why_not_fused(const RunConfig& config, const CollectiveDemand& demand,
                                        std::size_t first_group);

// The links that are out and leave its GPUs, or a part of them that reduces by itself, no lane in common; empty: there
// is one. `network` is that of the run, whose switches reduce.
[[nodiscard]] std::string switch_fault(const RunConfig& config, const Network& network, const CollectiveDemand& demand);

// The same of a sum over one group of GPUs, of any run.
[[nodiscard]] std::string fault_of_group(const RunConfig& config, const std::vector<std::uint32_t>& gpus);

// For notes: what is done in its place.
[[nodiscard]] std::string fallen_back(const CollectiveDemand& demand, const CollectivePlan& plan,
                                      const std::string& fault);

// The same of routers.
[[nodiscard]] std::string why_not_in_network(const SystemSpec& system, const CollectiveDemand& demand);

}  // namespace weft
