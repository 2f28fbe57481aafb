#include "traces/launch_position.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

// A step in which kernels are issued at once, and run from 100 us on, a gap of `gaps_us` before each but the first.
void add_step(std::uint32_t iteration, const std::vector<double>& gaps_us, TraceRank& rank) {
  double start = 1000.0 * iteration + 100;
  for (std::size_t i = 0; i <= gaps_us.size(); ++i) {
    TraceOp op;
    op.kind = TraceOpKind::kernel;
    op.name = "kernel";
    op.iteration = iteration;
    op.stream = 7;
    op.shape = LaunchShape{{static_cast<std::uint32_t>(i + 1), 1, 1}, {128, 1, 1}, 32, 0};
    op.issued = microseconds(1000.0 * iteration + static_cast<double>(i));
    if (i > 0) start += gaps_us[i - 1];
    op.start = microseconds(start);
    op.duration = microseconds(10);
    start += 10;
    rank.ops.push_back(op);
  }
}

std::optional<Time> behind_of(const TraceRank& rank, std::uint32_t blocks) {
  for (const LaunchPosition& position : launch_positions(rank)) {
    if (rank.ops[position.ops.front()].shape->grid[0] == blocks) return position.behind;
  }
  return std::nullopt;
}

TEST(LaunchPosition, KnowsHowLongAQueuedKernelStartsBehindTheOneBefore) {
  TraceRank rank;
  add_step(0, {1, 7}, rank);
  add_step(1, {2, 7}, rank);
  add_step(2, {6, 500}, rank);  // the last waited for something that is not known
  EXPECT_EQ(behind_of(rank, 1), std::nullopt);
  EXPECT_EQ(behind_of(rank, 2), microseconds(2));
  EXPECT_EQ(behind_of(rank, 3), microseconds(7));
}

TEST(LaunchPosition, AGapCountsOnlyWhereNothingElseHeldTheKernel) {
  TraceRank late;
  add_step(0, {5}, late);
  late.ops[1].issued = microseconds(108);  // 2 us before the first one ends
  EXPECT_EQ(behind_of(late, 2), std::nullopt);

  TraceRank waiting;
  add_step(0, {5}, waiting);
  waiting.ops[1].waits = {0};
  EXPECT_EQ(behind_of(waiting, 2), std::nullopt);

  TraceRank beside;
  add_step(0, {5}, beside);
  TraceOp collective;
  collective.kind = TraceOpKind::collective;
  collective.iteration = 0;
  collective.stream = 20;
  collective.start = microseconds(90);
  collective.duration = microseconds(100);
  beside.ops.push_back(collective);
  EXPECT_EQ(behind_of(beside, 2), std::nullopt);
}

}  // namespace
}  // namespace weft
