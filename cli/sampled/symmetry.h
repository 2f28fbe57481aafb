// GPUs that do the same at the same time: found out, not assumed.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/machine.h"
#include "cli/run/scripts.h"
#include "gpu_model/rank_symmetry.h"

namespace weft {

// Some GPUs for all, with their part of the collectives: one for all of a node behind switches; of a cluster of such
// nodes, one or those of the first nodes; of a fat tree, those of its first branch (gpu_model/rank_symmetry.h). All
// ranks must have the same share of a message: it is cut into equal chunks, where the library's leave some ranks or
// channels less to do, and is rounded up.
class FoldedMachine {
 public:
  // `programs` are the same. `only`: of all collectives, this one alone will run. Throws nothing that Scripts does not.
  FoldedMachine(const RunConfig& config, const std::vector<Program>& programs, std::optional<OpId> only = std::nullopt);

  // Why GPUs must be simulated one by one, in words; empty: some are enough.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  // The GPUs that stand for all.
  [[nodiscard]] std::uint32_t standing() const { return standing_; }
  [[nodiscard]] GpuWork work(std::uint32_t gpu) const;
  // They in such a system, one for each of `works`.
  [[nodiscard]] std::unique_ptr<Machine> machine(const SystemSpec& system, const std::vector<GpuWork>& works) const;
  // Some collectives go by trees in which all nodes are alike (network/binary_tree.h), not by the library's.
  [[nodiscard]] bool has_alike_trees() const { return has_alike_trees_; }
  // How far collectives of the operations [from, end) may be off because some GPUs stand for others, one standard
  // deviation as a share of the time.
  [[nodiscard]] double scatter(std::uint32_t from, std::uint32_t end) const;
  [[nodiscard]] const Scripts& scripts() const { return *scripts_; }

 private:
  void keep_collectives();
  void round_messages(const std::vector<RankSymmetry>& ways);
  void fold_collectives();

  RunConfig config_;  // scripts point into it
  std::vector<Program> programs_;
  std::optional<Scripts> scripts_;
  std::deque<ScriptedKernel> kernels_;
  std::uint32_t per_node_ = 0;  // behind the same switches; 0: in a tree of them, or none
  bool has_groups_ = false;     // collectives of some GPUs
  std::uint32_t standing_ = 1;
  bool has_alike_trees_ = false;
  std::vector<RankSymmetry> ways_;                          // by collective
  std::vector<double> scatters_;                            // likewise
  std::vector<std::vector<const ScriptedKernel*>> folded_;  // by GPU and op
  std::vector<MulticastGroup> multicast_groups_;
  std::string why_not_;
};

}  // namespace weft
