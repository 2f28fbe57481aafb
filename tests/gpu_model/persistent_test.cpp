// Kernels whose blocks stay and take one piece of work after the other, and who gets the places that others leave.
#include <gtest/gtest.h>

#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

constexpr double kPiece = 1'000;

// Blocks as large as a unit; of a piece `kPiece` cycles.
KernelDemand whole_units(std::uint32_t blocks, std::uint64_t pieces, PieceOrder order) {
  KernelDemand demand = grid_of(blocks);
  demand.shape.shared_memory_bytes = 64 << 10;
  demand.extra_cycles_per_block = kPiece;
  demand.pieces = pieces;
  demand.piece_order = order;
  return demand;
}

// Rounds of pieces that a kernel takes on four units, or on three where another kernel holds one.
double rounds(const KernelDemand& demand, bool one_is_held) {
  KernelDemand holds = whole_units(1, 0, PieceOrder::stride);
  holds.extra_cycles_per_block = one_is_held ? 100'000 : 1;
  AloneGpu alone(small_gpu(), program_of({kernel_op(holds), kernel_op(demand, 1)}, 2));
  alone.run();
  return alone.duration(1) / kPiece;
}

TEST(PersistentKernels, TakeAllPiecesWithTheBlocksTheyHave) {
  for (const PieceOrder order : {PieceOrder::stride, PieceOrder::claim}) {
    EXPECT_NEAR(rounds(whole_units(4, 16, order), false), 4, 0.05);
    EXPECT_NEAR(rounds(whole_units(4, 13, order), false), 4, 0.05);
    EXPECT_NEAR(rounds(whole_units(4, 2, order), false), 1, 0.05) << "two blocks have nothing to do";
  }
}

TEST(PersistentKernels, ABlockThatStartsLateStillHasItsStride) {
  EXPECT_NEAR(rounds(whole_units(4, 16, PieceOrder::stride), true), 8, 0.05);
}

// The first three take 14 pieces in 5 rounds, one of them only 4: then the late one comes, with two of its own.
TEST(PersistentKernels, WhereBlocksClaimPiecesALateOneHasTwo) {
  EXPECT_NEAR(rounds(whole_units(4, 16, PieceOrder::claim), true), 6, 0.05);
}

// Products with two blocks a unit that share its pipes: both leave together, so two that wait share a unit again.
TEST(Places, BlocksThatShareAUnitLeaveTogether) {
  const auto duration = [](bool one_is_held) {
    KernelDemand holds = whole_units(1, 0, PieceOrder::stride);
    holds.extra_cycles_per_block = one_is_held ? 1'000'000 : 1;
    KernelDemand product = grid_of(8);
    product.shape.shared_memory_bytes = 32 << 10;
    product.iterations = 64;
    product.barrier = true;
    product.extra_cycles_per_block = 6'400;
    product.reads = {{.base = 1 << 20, .bytes_per_block = 128 * 64, .modulo = 1}};
    GpuSpec spec = small_gpu();
    spec.compute_unit.policy = WarpPolicy::round_robin;
    AloneGpu alone(spec, program_of({kernel_op(holds), kernel_op(product, 1)}, 2));
    alone.run();
    return alone.duration(1);
  };
  EXPECT_NEAR(duration(true) / duration(false), 2, 0.1);
}

}  // namespace
}  // namespace weft
