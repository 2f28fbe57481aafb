// Every scheme's programs, carried out on numbers: forward and all gradients are those of one GPU.
#include <gtest/gtest.h>

#include "sim/error.h"
#include "workloads/single_sample/attention_check.h"

namespace weft {
namespace {

constexpr double kClose = 1e-5;

AttentionGeometry geometry(std::int64_t tokens, std::int64_t heads, bool causal = false, std::int64_t key_heads = 0,
                           std::int64_t batch = 1) {
  return {tokens, batch, heads, key_heads == 0 ? heads : key_heads, 4, causal};
}

void expect_right(const AttentionGeometry& g, const SampleSplit& split, std::uint32_t ranks) {
  for (const auto& [name, error] : check_attention(g, split, ranks, 7)) {
    EXPECT_LT(error, kClose) << name << " of " << ranks << " ranks and " << g.tokens << " tokens";
  }
}

class SampleValues : public ::testing::TestWithParam<SampleScheme> {};

TEST_P(SampleValues, AreThoseOfOneGpu) {
  for (const std::uint32_t ranks : {1, 2, 3, 4, 8}) {
    const std::int64_t heads = ranks == 3 ? 3 : 8;
    SampleSplit split{.scheme = GetParam(), .ulysses_gpus = ranks % 2 == 0 ? 2U : 1U};
    for (const std::int64_t tokens : {24, 19, 2}) expect_right(geometry(tokens, heads), split, ranks);
  }
}

TEST_P(SampleValues, UnderACausalMaskHoweverTheSequenceIsSplit) {
  for (const auto order : {SequenceSplit::plain, SequenceSplit::zigzag, SequenceSplit::striped}) {
    for (const std::uint32_t ranks : {2, 4}) {
      for (const std::int64_t tokens : {24, 21}) {
        expect_right(geometry(tokens, 4, true), {.scheme = GetParam(), .split = order, .ulysses_gpus = 2}, ranks);
      }
    }
  }
}

TEST_P(SampleValues, OfGroupedHeadsAndSeveralSamples) {
  expect_right(geometry(13, 8, true, 4, 3), {.scheme = GetParam(), .ulysses_gpus = 2}, 4);
  expect_right(geometry(12, 8, false, 4), {.scheme = GetParam(), .ulysses_gpus = 2}, 2);
}

INSTANTIATE_TEST_SUITE_P(Schemes, SampleValues,
                         ::testing::Values(SampleScheme::single_sample, SampleScheme::ring_self_attention,
                                           SampleScheme::ring_attention, SampleScheme::context_parallel,
                                           SampleScheme::ulysses, SampleScheme::ulysses_ring, SampleScheme::megatron));

TEST(DistributedProductValues, WhateverTheOffset) {
  for (const std::int64_t offset : {1, 2, 3, 5, 100}) {
    for (const bool overlap : {false, true}) {
      for (const auto sums : {PartialSum::all_reduce, PartialSum::reduce_scatter}) {
        expect_right(geometry(22, 2),
                     {.scheme = SampleScheme::single_sample, .offset = offset, .sums = sums, .overlap = overlap}, 3);
      }
    }
  }
}

TEST(RingSelfAttentionValues, WithGradientsThatAreScattered) {
  expect_right(geometry(22, 2), {.scheme = SampleScheme::ring_self_attention, .sums = PartialSum::reduce_scatter}, 3);
}

// By sums that kernels push as they store, and with all rows on all ranks.
TEST(MegatronValues, HoweverRowsAreSummed) {
  for (const bool rows : {true, false}) {
    for (const bool fused : {true, false}) {
      const SampleSplit split{.scheme = SampleScheme::megatron, .sequence_parallel = rows, .fused = fused};
      expect_right(geometry(24, 4), split, 4);
      expect_right(geometry(13, 8, true, 4, 3), split, 2);
    }
  }
}

TEST(SampleSplitErrors, SayWhatASchemeCannotTake) {
  const auto message = [](const AttentionGeometry& g, SampleSplit split, std::uint32_t ranks) -> std::string {
    for (std::uint32_t r = 0; r < ranks; ++r) split.gpus.push_back(r);
    try {
      validate(split, g);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message(geometry(3, 4), {.scheme = SampleScheme::ring_attention}, 4).find("/workload/sequence"),
            std::string::npos);
  EXPECT_NE(message(geometry(64, 4), {.scheme = SampleScheme::ulysses}, 8).find("4 heads"), std::string::npos);
  EXPECT_NE(message(geometry(64, 4), {.scheme = SampleScheme::megatron}, 3).find("4 heads"), std::string::npos);
  EXPECT_NE(message(geometry(64, 4), {.scheme = SampleScheme::ulysses_ring, .ulysses_gpus = 3}, 4).find("ulysses_gpus"),
            std::string::npos);
  EXPECT_NE(message(geometry(64, 4, false, 3), {.scheme = SampleScheme::ring_attention}, 2).find("key_heads"),
            std::string::npos);
  EXPECT_EQ(message(geometry(64, 4), {.scheme = SampleScheme::ring_attention}, 4), "");
}

}  // namespace
}  // namespace weft
