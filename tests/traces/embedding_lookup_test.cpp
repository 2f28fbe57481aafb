#include "traces/embedding_lookup.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "traces/kernel_demand.h"

namespace weft {
namespace {

const char* const kByBlocks =
    "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<float, float, float, 5ul>";
const char* const kByWarps =
    "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_warp_per_row_1<float, float, float, 5ul>";

LaunchShape shape(std::uint32_t blocks, std::uint32_t warps) {
  LaunchShape s;
  s.grid = {blocks, 1, 1};
  s.block = {32, warps, 1};
  return s;
}

OperatorInput vector_of(std::int64_t size, std::uint32_t bytes) { return {bytes, {size}}; }

// As FBGEMM's: weights on the host, the device, in unified memory, cached; placements, offsets, columns of the tables;
// ...; indices, offsets.
OperatorCall forward(std::int64_t tables, std::int64_t samples, std::int64_t indices, std::int64_t weights) {
  return {"fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function",
          {vector_of(0, 4),
           vector_of(weights, 4),
           vector_of(0, 4),
           {4, {0, 0}},
           vector_of(tables, 4),
           vector_of(tables, 8),
           vector_of(tables + 1, 4),
           {},
           {},
           vector_of(tables + 1, 8),
           {},
           vector_of(indices, 8),
           vector_of(tables * samples + 1, 8),
           {}}};
}
OperatorCall backward(std::int64_t samples, std::int64_t columns) {
  return {"torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>", {{4, {samples, columns}}}};
}

TEST(EmbeddingLookup, IsReadFromTheForwardOperator) {
  const auto lookup = embedding_lookup(forward(485, 2048, 15'405'380, 29'823'476));
  ASSERT_TRUE(lookup);
  EXPECT_EQ(lookup->indices, 15'405'380U);
  EXPECT_EQ(lookup->bags, 485U * 2048);
  EXPECT_EQ(lookup->weights, 29'823'476U);
  EXPECT_FALSE(embedding_lookup(backward(2048, 34'340)));
  OperatorCall cut = forward(485, 2048, 15'405'380, 29'823'476);
  cut.inputs.resize(12);  // without offsets
  EXPECT_FALSE(embedding_lookup(cut));
}

// 10 tables of 100 rows of 64, each row 64 times: more than a warp takes.
TEST(EmbeddingLookup, RowsThatOccurOftenAreTheBlocks) {
  const EmbeddingLookup lookup = *embedding_lookup(forward(10, 512, 64'000, 64'000));
  const OperatorCall call = backward(512, 640);
  const auto by_blocks = embedding_update(kByBlocks, shape(63, 16), &call, {{lookup}});  // 64000 / 1024
  ASSERT_TRUE(by_blocks);
  EXPECT_DOUBLE_EQ(by_blocks->gathered, 64'000.0 * (64 * 4 + 16));
  EXPECT_DOUBLE_EQ(by_blocks->updated, 1000.0 * 64 * 4);
  EXPECT_DOUBLE_EQ(by_blocks->one_by_one, (8 + 64.0 / 16) * 1000 / 63);
  EXPECT_EQ(by_blocks->blocks_of_a_table, 7U);
  EXPECT_EQ(by_blocks->tables, 9U);
  const auto by_warps = embedding_update(kByWarps, shape(4000, 16), &call, {{lookup}});
  ASSERT_TRUE(by_warps);
  EXPECT_EQ(by_warps->gathered, 0);
  EXPECT_FALSE(embedding_update(kByBlocks, shape(62, 16), &call, {{lookup}}));  // of another lookup
  EXPECT_FALSE(embedding_update(kByBlocks, shape(63, 16), nullptr, {{lookup}}));
}

TEST(EmbeddingLookup, RowsThatOccurSeldomAreTheWarps) {
  const EmbeddingLookup lookup = *embedding_lookup(forward(3, 128, 768, 640'649'648));
  const OperatorCall call = backward(128, 48);
  const auto by_warps = embedding_update(kByWarps, shape(12, 64), &call, {{lookup}});
  ASSERT_TRUE(by_warps);
  EXPECT_DOUBLE_EQ(by_warps->gathered, 768.0 * (16 * 4 + 16));
  EXPECT_DOUBLE_EQ(by_warps->updated, 768.0 * 16 * 4);  // no more rows than indices
  EXPECT_DOUBLE_EQ(by_warps->one_by_one, 8 + 1);
  EXPECT_EQ(embedding_update(kByBlocks, shape(1, 32), &call, {{lookup}})->gathered, 0);
}

TEST(EmbeddingLookup, IsTheDemandOfTheBackwardKernels) {
  const std::vector<EmbeddingLookup> lookups{*embedding_lookup(forward(10, 512, 64'000, 64'000))};
  const OperatorCall call = backward(512, 640);
  const KernelGuess guess = guess_kernel_demand(kByBlocks, shape(63, 16), {.call = &call, .lookups = lookups});
  EXPECT_EQ(guess.node.origin, DemandOrigin::shapes);
  ASSERT_EQ(guess.node.reads.size(), 2U);
  EXPECT_EQ(guess.node.reads[1].bytes_per_block, std::ceil(64'000.0 * 272 / 63));
  EXPECT_EQ(guess.node.writes.at(0).tensor, guess.node.reads[0].tensor);
  EXPECT_EQ(guess.node.iterations, std::ceil(12.0 * 1000 / 63));
  EXPECT_EQ(guess.node.stages, 1U);
  const KernelGuess unknown = guess_kernel_demand(kByBlocks, shape(63, 16), {.call = &call});
  EXPECT_EQ(unknown.node.origin, DemandOrigin::name);
}

TEST(EmbeddingLookup, AnySizesGiveADemand) {
  std::mt19937_64 random{7};
  const auto up_to = [&](unsigned bits) {
    return static_cast<std::int64_t>(random() >> (64 - 1 - random() % bits)) + 1;
  };
  int gathering = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t samples = up_to(20);
    const std::int64_t indices = up_to(40);
    const std::vector<EmbeddingLookup> lookups{{static_cast<std::uint64_t>(indices),
                                                static_cast<std::uint64_t>(samples * up_to(18)),
                                                static_cast<std::uint64_t>(up_to(40))}};
    const OperatorCall call = backward(samples, up_to(40));
    const bool by_blocks = i % 2 == 0;
    const std::int64_t a_block = by_blocks ? 1024 : 16;
    const auto blocks = static_cast<std::uint64_t>((indices + a_block - 1) / a_block);
    if (blocks >= std::uint64_t{1} << 31U) continue;
    const KernelGuess guess =
        guess_kernel_demand(by_blocks ? kByBlocks : kByWarps, shape(static_cast<std::uint32_t>(blocks), 16),
                            {.call = &call, .lookups = lookups});
    ASSERT_GE(guess.node.iterations, 1U) << i;
    ASSERT_LE(guess.node.iterations, 1024U) << i;
    for (const TensorUse& use : guess.node.reads) {
      ASSERT_GE(use.bytes_per_block, 1U) << i;
      ASSERT_GE(use.divisor, 1U) << i;
      const std::uint64_t parts = (blocks + use.divisor - 1) / use.divisor;
      ASSERT_LE(use.bytes_per_block * parts, static_cast<std::uint64_t>(guess.tensors[use.tensor.value].count())) << i;
    }
    gathering += guess.node.reads.size() == 2 ? 1 : 0;
  }
  EXPECT_GT(gathering, 1000);
}

}  // namespace
}  // namespace weft
