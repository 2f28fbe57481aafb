// The warp program of a kernel, derived from its demand: what each of its blocks loads, computes and stores, in phases.
#pragma once

#include "gpu_model/gpu_spec.h"
#include "gpu_model/occupancy.h"
#include "gpu_model/phase.h"

namespace weft {

class KernelProgram {
 public:
  // Throws InputError when a block or a cluster does not fit, or when a block has more operands than a phase.
  KernelProgram(const KernelDemand& demand, const GpuSpec& gpu, const std::string& name);

  [[nodiscard]] std::uint64_t blocks() const { return blocks_; }
  [[nodiscard]] std::uint32_t cluster_blocks() const { return cluster_blocks_; }
  [[nodiscard]] const BlockNeeds& needs() const { return needs_; }
  [[nodiscard]] std::uint32_t warps() const { return warps_; }
  [[nodiscard]] std::uint32_t lines_in_flight() const { return lines_in_flight_; }
  [[nodiscard]] std::uint32_t phases() const { return phases_; }
  // Phase `index` of block `block`, with its addresses.
  [[nodiscard]] Phase phase(std::uint64_t block, std::uint32_t index) const;

 private:
  [[nodiscard]] LineStream stream(const Operand& operand, std::uint64_t block) const;
  void set_work(const KernelDemand& demand, const ComputeUnitSpec& unit);

  std::vector<Operand> reads_;
  std::vector<Operand> writes_;
  std::uint64_t blocks_;
  std::uint32_t cluster_blocks_;
  double memory_scale_;
  bool write_at_end_;
  bool barrier_;
  BlockNeeds needs_;
  std::uint32_t warps_;
  std::uint32_t lines_in_flight_;
  std::uint32_t phases_;
  Slot busiest_ = Slot::fp32;
  std::array<SubCycle, kSlotCount> work_{};  // of a round
  std::uint32_t rounds_;
  std::uint32_t stages_;
};

}  // namespace weft
