// Loops of the in-switch all-reduce.
#include "network/in_switch_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace weft {
namespace {

TEST(InSwitchSchedule, CoversEveryByteOnce) {
  for (const std::uint32_t ranks : {2U, 3U, 8U, 17U}) {
    for (const std::uint32_t channels : {1U, 3U, 16U}) {
      for (const std::int64_t bytes : {1LL, 4'096LL, 1'000'003LL, 9LL << 20, (20LL << 20) + 12}) {
        SCOPED_TRACE(testing::Message() << ranks << " ranks, " << channels << " channels, " << bytes << " B");
        std::vector<std::pair<std::int64_t, std::int64_t>> covered;
        for (std::uint32_t channel = 0; channel < channels; ++channel) {
          const InSwitchSchedule schedule(bytes, ranks, channels);
          for (std::uint32_t l = 0; l < schedule.loops(); ++l) {
            const InSwitchLoop loop = schedule.loop(channel, l);
            EXPECT_GE(loop.bytes, 0);
            EXPECT_LE(loop.bytes, loop.piece * ranks);
            EXPECT_LE(loop.piece, 128 << 10);
            if (loop.bytes > 0) covered.emplace_back(loop.offset, loop.offset + loop.bytes);
          }
        }
        std::sort(covered.begin(), covered.end());
        std::int64_t at = 0;
        for (const auto& [begin, end] : covered) {
          ASSERT_EQ(begin, at);
          at = end;
        }
        EXPECT_EQ(at, bytes);
      }
    }
  }
}

// 16 channels of 8 ranks, as NCCL cuts them on 8 H100.
TEST(InSwitchSchedule, ChunksGrowWithTheMessage) {
  const auto piece = [](std::int64_t bytes) { return InSwitchSchedule(bytes, 8, 16).loop(0, 0).piece; };
  constexpr std::int64_t kMiB = 1 << 20;
  EXPECT_EQ(piece(4 * kMiB), 16 << 10);
  EXPECT_EQ(piece(8 * kMiB - 4), 16 << 10);
  EXPECT_EQ(piece(8 * kMiB), 32 << 10);
  EXPECT_EQ(piece(64 * kMiB), 64 << 10);
  EXPECT_EQ(piece(1024 * kMiB), 128 << 10);
}

// Of four nodes and more, chunks stay smaller.
TEST(InSwitchSchedule, ChunksOfSeveralNodesAreThoseOfNvlsTree) {
  const auto piece = [](std::int64_t bytes, std::uint32_t nodes) {
    return InSwitchSchedule(bytes, 8, 16, nodes).loop(0, 0).piece;
  };
  constexpr std::int64_t kMiB = 1 << 20;
  EXPECT_EQ(piece(4 * kMiB, 2), 32 << 10);
  EXPECT_EQ(piece(32 * kMiB, 2), 64 << 10);
  EXPECT_EQ(piece(256 * kMiB, 2), 128 << 10);
  EXPECT_EQ(piece(256 * kMiB, 4), 64 << 10);
}

}  // namespace
}  // namespace weft
