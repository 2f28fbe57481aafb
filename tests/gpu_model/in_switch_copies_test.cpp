// What the groups of warps of the in-switch all-reduce do.
#include <gtest/gtest.h>

#include "gpu_model/in_switch_programs.h"
#include "gpu_model/phase_lines.h"

namespace weft {
namespace {

constexpr std::int64_t kPiece = 16 << 10;
enum : std::uint32_t { kStageIn, kReduce, kStageOut };

// Two loops of eight pieces, on one channel.
InSwitchPlace place(std::int64_t bytes) {
  InSwitchPlace place;
  place.bytes = bytes;
  place.spec.channels = 1;
  place.spec.reduce_warps = 5;
  place.spec.copy_warps = 7;
  place.ranks = 8;
  for (std::uint32_t g = 0; g < 8; ++g) place.group.push_back(GpuId{g});
  place.fence = cycles(std::int64_t{100});
  place.poll = cycles(std::int64_t{50});
  return place;
}

std::vector<Phase> phases(std::uint32_t group, std::int64_t bytes = 16 * kPiece) {
  const auto programs = in_switch_programs(place(bytes), 3);
  const auto cursor = programs->start(0, group);
  std::vector<Phase> all;
  for (Phase phase; cursor->next(phase);) all.push_back(phase);
  return all;
}

TEST(InSwitchPrograms, CopiesGoPieceByPieceAndTheLastOneSignals) {
  for (const std::uint32_t group : {kStageIn, kStageOut}) {
    const std::vector<Phase> copies = phases(group);
    ASSERT_EQ(copies.size(), 2U * 8);
    for (std::size_t i = 0; i < copies.size(); ++i) {
      EXPECT_EQ(copies[i].loads[0].lines, kPiece / kLineBytes);
      EXPECT_EQ(copies[i].stores[0].lines, kPiece / kLineBytes);
      // In the user's buffer the pieces of all loops follow each other.
      const auto user = [&](std::size_t p) {
        return group == kStageIn ? copies[p].loads[0].first : copies[p].stores[0].first;
      };
      EXPECT_EQ(user(i) - user(0), i * kPiece / kLineBytes);
      EXPECT_EQ(copies[i].rounds, kPiece / kLineBytes / 16);
      EXPECT_EQ(copies[i].post_count, i % 8 == 7 ? 1 : 0);
      EXPECT_EQ(copies[i].wait_count, group == kStageOut && i % 8 == 0 ? 1 : 0);
    }
  }
}

TEST(InSwitchPrograms, AMessageThatEndsWithinALoopLeavesPiecesEmpty) {
  const std::vector<Phase> copies = phases(kStageIn, 3 * 128);
  ASSERT_EQ(copies.size(), 8U);
  EXPECT_EQ(copies[2].loads[0].lines, 1U);
  for (std::size_t i = 3; i < 8; ++i) EXPECT_EQ(copies[i].load_count, 0);
  EXPECT_EQ(copies[7].post_count, 1);
}

TEST(InSwitchPrograms, WhoSendsHasAWarpThatFencesAndPosts) {
  EXPECT_EQ(phases(kStageIn)[0].stages, 6U);
  EXPECT_EQ(phases(kReduce)[0].stages, 4U);
  EXPECT_EQ(phases(kStageOut)[0].stages, 7U);
}

TEST(InSwitchPrograms, ReduceAsksAllRanksThroughTheSwitchBeforeItLoads) {
  const std::vector<Phase> reduces = phases(kReduce);
  ASSERT_EQ(reduces.size(), 2U);
  for (const Phase& phase : reduces) {
    EXPECT_EQ(phase.delay, cycles(std::int64_t{50}));
    EXPECT_EQ(phase.loads[0].target, Target::multicast);
  }
  EXPECT_EQ(phases(kStageIn)[0].delay, 0);
}

}  // namespace
}  // namespace weft
