#include "workloads/kernel_demand.h"

#include <gtest/gtest.h>

#include <set>

namespace weft {
namespace {

constexpr std::uint32_t kUnits = 108;

std::uint64_t slice_of(const TensorUse& use, std::uint64_t block) {
  const std::uint64_t index = block / use.divisor;
  return use.modulo == 0 ? index : index % use.modulo;
}

TEST(GemmPlan, TakesTheLargestTileThatFillsTheMachine) {
  const GemmPlan large = plan_gemm({8192, 4096, 1024}, GemmKind::forward, Pipe::tensor_fp16, 2, kUnits);
  EXPECT_EQ(large.tile_name(), "256x128");
  EXPECT_EQ(large.shape.blocks(), 32U * 32U);
  EXPECT_EQ(large.tile_k, 32U);
  EXPECT_EQ(large.rounds, 32U);
  EXPECT_EQ(large.k_split, 1U);
  // 32 tiles of 256x128 would leave most of 108 units idle; 128 of 128x64 do not.
  const GemmPlan small = plan_gemm({1024, 1024, 1024}, GemmKind::forward, Pipe::tensor_fp16, 2, kUnits);
  EXPECT_EQ(small.tile_name(), "128x64");
  EXPECT_GE(small.shape.blocks(), kUnits);
}

TEST(GemmPlan, DependsOnTheNumberOfUnits) {
  const GemmShape shape{2048, 1024, 512};
  EXPECT_EQ(plan_gemm(shape, GemmKind::forward, Pipe::tensor_fp16, 2, 60).tile_name(), "256x128");
  EXPECT_EQ(plan_gemm(shape, GemmKind::forward, Pipe::tensor_fp16, 2, 120).tile_name(), "128x128");
}

TEST(GemmPlan, HasAsManyStagesAsSharedMemoryHolds) {
  const GemmShape shape{8192, 4096, 1024};
  const GemmPlan whole = plan_gemm(shape, GemmKind::forward, Pipe::tensor_fp16, 2, kUnits, 80 * 1024);
  EXPECT_EQ(whole.stages, 3U);
  const GemmPlan cdna = plan_gemm(shape, GemmKind::forward, Pipe::tensor_fp16, 2, kUnits, 64 * 1024);
  EXPECT_EQ(cdna.tile_name(), "256x128");
  EXPECT_EQ(cdna.stages, 2U);
  EXPECT_EQ(cdna.shape.shared_memory_bytes, 49152U);
  const GemmPlan little = plan_gemm(shape, GemmKind::forward, Pipe::tensor_fp16, 2, kUnits, 36 * 1024);
  EXPECT_EQ(little.tile_name(), "128x128");
  EXPECT_EQ(little.stages, 2U);
}

TEST(GemmPlan, SplitsALongKSoThatTheGridFillsTheUnits) {
  const GemmPlan plan = plan_gemm({64, 64, 200704}, GemmKind::weight_gradient, Pipe::tensor_tf32, 4, kUnits);
  EXPECT_EQ(plan.tile_name(), "64x64");
  EXPECT_EQ(plan.k_split, kUnits);
  EXPECT_EQ(plan.shape.blocks(), kUnits);
  EXPECT_EQ(plan.rounds, (200704 / 16 + kUnits - 1) / kUnits);
}

// What a head's output gives back to 1024 tokens is a sum over the vocabulary.
TEST(GemmPlan, SplitsLongSumsOverLargeTiles) {
  const GemmPlan plan = plan_gemm({1024, 768, 50257}, GemmKind::forward, Pipe::tensor_fp16, 2, kUnits);
  EXPECT_EQ(plan.tile_name(), "256x128");
  EXPECT_EQ(plan.shape.blocks(), 24U * plan.k_split);
  EXPECT_EQ(plan.k_split, kUnits / 24);
}

TEST(GemmPlan, DoesNotSplitKIntoLessThanEightRounds) {
  const GemmPlan plan = plan_gemm({64, 64, 512}, GemmKind::weight_gradient, Pipe::tensor_fp16, 2, kUnits);
  EXPECT_EQ(plan.k_split, 2U);  // 16 rounds of 32
}

TEST(GemmPlan, SharesAPanelBetweenTheTilesOfARowOrColumn) {
  const GemmShape shape{512, 384, 1024};
  const GemmPlan plan = plan_gemm(shape, GemmKind::forward, Pipe::tensor_fp16, 2, 4);
  ASSERT_EQ(plan.rows, 2U);
  ASSERT_EQ(plan.columns, 3U);
  const TensorUse a = row_panels(plan, TensorId{0}, 512 * 1024 * 2);
  const TensorUse b = column_panels(plan, TensorId{1}, 1024 * 384 * 2);
  for (std::uint64_t block = 0; block < 6; ++block) {
    EXPECT_EQ(slice_of(a, block), block / 3);
    EXPECT_EQ(slice_of(b, block), block % 3);
  }
  EXPECT_EQ(a.bytes_per_block, 256U * 1024 * 2);
  EXPECT_EQ(b.bytes_per_block, 128U * 1024 * 2);
  EXPECT_EQ(output_tiles(plan, TensorId{2}, 512 * 384 * 2).bytes_per_block, 256U * 128 * 2);
}

TEST(GemmPlan, ReadsEachPanelOfASplitGemmEquallyOften) {
  const GemmPlan plan = plan_gemm({512, 256, 65536}, GemmKind::weight_gradient, Pipe::tensor_fp16, 2, kUnits);
  ASSERT_GT(plan.k_split, 1U);
  const TensorUse b = column_panels(plan, TensorId{0}, 256 * 65536 * 2);
  std::multiset<std::uint64_t> touched;
  for (std::uint64_t block = 0; block < plan.shape.blocks(); ++block) touched.insert(slice_of(b, block));
  for (std::uint64_t panel = 0; panel < std::uint64_t{plan.columns} * plan.slices; ++panel) {
    EXPECT_EQ(touched.count(panel), plan.rows);
  }
}

TEST(GemmPlan, MergesRoundsThatWouldMoveLessThanAKibibyte) {
  const GemmShape shape{64, 64, 6400};
  const GemmPlan plan = plan_gemm(shape, GemmKind::forward, Pipe::tensor_fp16, 2, 1);
  const KernelNode kernel = gemm_kernel(plan, shape, Pipe::tensor_fp16, {{TensorId{0}, 0, 50 * 1024, 1, 1}}, {});
  EXPECT_EQ(plan.rounds, 200U);
  EXPECT_EQ(kernel.iterations, 50U);
  EXPECT_DOUBLE_EQ(kernel.flops[static_cast<std::size_t>(Pipe::tensor_fp16)], 2.0 * 64 * 64 * 6400);
}

TEST(StreamKernel, CutsItsTensorsEvenly) {
  const KernelNode kernel = stream_kernel(elementwise_launch(5120), {{TensorId{0}, 20480}}, {{TensorId{1}, 10240}}, 7);
  EXPECT_EQ(kernel.shape.blocks(), 10U);
  EXPECT_EQ(kernel.shape.threads_per_block(), 128U);
  EXPECT_EQ(kernel.reads[0].bytes_per_block, 2048U);
  EXPECT_EQ(kernel.writes[0].bytes_per_block, 1024U);
}

TEST(StreamKernel, SharesSectorsOfATensorSmallerThanItsGrid) {
  const TensorUse use = sliced(TensorId{0}, 0, 128, 1000);
  EXPECT_EQ(use.bytes_per_block, 32U);
  EXPECT_EQ(use.modulo, 4U);
  EXPECT_EQ(sliced(TensorId{0}, 0, 4, 1000).bytes_per_block, 4U);
}

}  // namespace
}  // namespace weft
