// What GPUs execute that is no kernel: collectives and copies, planned as kernels.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/config/system_config.h"
#include "cli/run/fused_outputs.h"
#include "gpu_model/collective_kernel.h"
#include "gpu_model/gpu_work.h"
#include "network/aggregation_tree.h"
#include "network/switch.h"

namespace weft {

// By GPU and operation of make_programs().
class Scripts {
 public:
  // Plans every collective of the programs: the n-th of a group on one GPU meets the n-th on all others. Throws
  // InputError when a rank is missing or they disagree.
  Scripts(const RunConfig& config, const std::vector<Program>& programs);

  [[nodiscard]] GpuWork work(std::size_t gpu) const;

  struct Collective {
    CollectivePlan plan;                                  // `ranks` are empty for a group of one
    std::vector<std::pair<std::uint32_t, OpId>> members;  // GPU and operation, ascending
  };
  [[nodiscard]] const std::vector<Collective>& collectives() const { return collectives_; }
  // The groups of collectives and their data types, by the number that their multicasts have.
  [[nodiscard]] const std::vector<MulticastGroup>& multicast_groups() const { return multicast_groups_; }
  // For people: collectives that faults keep from the switches.
  [[nodiscard]] std::vector<std::string> notes() const;
  // Those that routers sum for.
  [[nodiscard]] const std::vector<AggregationGroup>& aggregation_groups() const { return aggregation_groups_; }

 private:
  const std::vector<Program>* programs_;
  HostSpec host_;
  PrivateParts private_parts_;
  std::uint32_t flags_ = 0;
  std::uint32_t stop_flag_ = 0;  // of beside_
  std::vector<Collective> collectives_;
  std::vector<MulticastGroup> multicast_groups_;
  std::vector<AggregationGroup> aggregation_groups_;
  std::optional<FusedOutputs> fused_;
  std::map<std::string, std::uint32_t> fallen_back_;  // notes, and of how many collectives
  std::string narrow_injection_;                      // a note
  std::vector<ScriptedKernel> copies_;
  std::vector<ScriptedKernel> beside_;
  std::vector<std::vector<const ScriptedKernel*>> scripts_;  // by GPU and op
  ScriptedKernel nothing_;
};

}  // namespace weft
