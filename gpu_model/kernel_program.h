// The warp program of a kernel, derived from its demand: what each of its blocks loads, computes and stores, in phases.
#pragma once

#include "gpu_model/gpu_spec.h"
#include "gpu_model/occupancy.h"
#include "gpu_model/phase.h"

namespace weft {

// An operand that a kernel does not store to its own memory: its lines leave as contributions to sums in switches
// (PTX: multimem.red), each block's its share of them. The sums of a part come to the members of a multicast group.
struct PushedOutput {
  std::uint64_t address = 0;  // of the operand
  std::uint32_t lines = 0;
  std::uint32_t parts = 1;            // as many lines each: of a reduce-scatter one a rank
  LineAddress sums = 0;               // of each part, on those that get it
  std::uint16_t multicast_group = 0;  // of the first part; those of the others follow
  std::uint32_t flag = 0;             // counts the sums that have come

  [[nodiscard]] std::uint32_t part_lines() const { return lines / parts; }
};

class KernelProgram {
 public:
  // Throws InputError when a block or a cluster does not fit, or when a block has more operands than a phase. `pushed`
  // outlives it; null: all is stored.
  KernelProgram(const KernelDemand& demand, const GpuSpec& gpu, const std::string& name,
                const PushedOutput* pushed = nullptr);

  // Of the grid that is launched.
  [[nodiscard]] std::uint64_t launched_blocks() const { return launched_; }
  // That have work, by number: those of the grid, or the pieces that blocks of a persistent kernel take.
  [[nodiscard]] std::uint64_t blocks() const { return blocks_; }
  [[nodiscard]] bool persistent() const { return blocks_ != launched_; }
  [[nodiscard]] PieceOrder piece_order() const { return piece_order_; }
  [[nodiscard]] std::uint32_t cluster_blocks() const { return cluster_blocks_; }
  [[nodiscard]] const BlockNeeds& needs() const { return needs_; }
  [[nodiscard]] std::uint32_t warps() const { return warps_; }
  // Of a block; of bulk loads, which its unit does not count, too.
  [[nodiscard]] std::uint32_t lines_in_flight() const { return lines_in_flight_; }
  [[nodiscard]] bool bulk_loads() const { return bulk_loads_; }
  [[nodiscard]] std::uint32_t phases() const { return phases_; }
  [[nodiscard]] std::uint32_t rounds() const { return rounds_; }
  [[nodiscard]] bool barrier() const { return barrier_; }
  // Phase `index` of block `block`, with its addresses. Nothing for blocks behind the last piece.
  [[nodiscard]] Phase phase(std::uint64_t block, std::uint32_t index) const;
  // Blocks [first, end) are followed, so many blocks later and at most `most`, by as many that share operands with each
  // other as these do. 0: by none so near.
  [[nodiscard]] std::uint64_t alike_after(std::uint64_t first, std::uint64_t end, std::uint64_t most) const;

 private:
  [[nodiscard]] LineStream stream(const Operand& operand, std::uint64_t block) const;
  void push(std::uint64_t block, Phase& phase) const;
  void set_work(const KernelDemand& demand, const ComputeUnitSpec& unit);

  std::vector<Operand> reads_;
  std::vector<Operand> writes_;
  const PushedOutput* pushed_;
  std::uint64_t launched_, blocks_;
  PieceOrder piece_order_;
  std::uint32_t cluster_blocks_;
  double memory_scale_;
  bool write_at_end_;
  bool barrier_;
  bool bulk_loads_;
  BlockNeeds needs_;
  std::uint32_t warps_;
  std::uint32_t lines_in_flight_;
  std::uint32_t phases_;
  Slot busiest_ = Slot::fp32;
  std::array<SubCycle, kSlotCount> work_{};  // of a round
  SubCycle latency_ = 0;                     // likewise
  std::uint32_t rounds_;
  std::uint32_t stages_;
};

}  // namespace weft
