// Ranks that one of them may stand for: alike to the last share of a message, not only where it begins.
#include "gpu_model/folded_programs.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr std::uint32_t kRanks = 4;
constexpr std::uint32_t kPhases = 1000;  // more than are compared on all ranks

// Each sends 8 lines a phase to the next rank, and some in the last phase, by rank.
std::vector<ScriptedKernel> ring(const std::array<std::uint32_t, kRanks>& last_lines) {
  std::vector<ScriptedKernel> ranks;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    WarpScript script;
    for (std::uint32_t i = 0; i < kPhases; ++i) {
      Phase phase;
      const std::uint32_t lines = i + 1 < kPhases ? 8 : last_lines.at(rank);
      const auto next = static_cast<std::uint16_t>((rank + 1) % kRanks);
      phase.store({.first = 8 * i, .lines = lines, .gpu = next, .target = Target::remote});
      script.phases.push_back(phase);
    }
    ranks.emplace_back().programs =
        std::make_shared<WrittenPrograms>(std::vector<std::vector<WarpScript>>{{std::move(script)}});
  }
  return ranks;
}

const RankSymmetry kOneNode{.ranks = kRanks, .per_node = kRanks};
const RankSymmetry kTwoNodes{.ranks = kRanks, .per_node = 2};

TEST(FoldedPrograms, OneRankStandsForAllThatDoTheSame) {
  const auto folded = fold_ranks(ring({5, 5, 5, 5}), kOneNode);
  ASSERT_TRUE(folded);
  EXPECT_EQ(folded->kernels.size(), 1U);
}

TEST(FoldedPrograms, NoRankStandsForAllWhereTheLastSharesDiffer) {
  EXPECT_FALSE(fold_ranks(ring({5, 4, 5, 5}), kOneNode));
  EXPECT_FALSE(fold_ranks(ring({5, 5, 5, 4}), kOneNode));
  EXPECT_FALSE(fold_ranks(ring({5, 5, 4, 5}), kTwoNodes));
}

}  // namespace
}  // namespace weft
