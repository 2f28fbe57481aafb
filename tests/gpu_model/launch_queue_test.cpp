// Where the host waits for a place in a stream's queue of launches.
#include <gtest/gtest.h>

#include "tests/gpu_model/frontend_host.h"

namespace weft {
namespace {

// Of each stream by itself: the host cannot reach the launch for another one behind it.
TEST(LaunchQueue, WaitsForAPlaceInTheQueueOfAStream) {
  LaunchSpec launch = small_gpu().launch;
  launch.queue_depth = 2;
  Host host({op_on(0), op_on(0), op_on(0), op_on(1), op_on(1)}, {}, 2, launch);
  EXPECT_EQ(host.issue_all(n(1000)), std::vector<std::uint32_t>{0});
  EXPECT_EQ(host.frontend.issued(), 2U);
  EXPECT_EQ(host.complete(0, n(9000)), std::vector<std::uint32_t>{1});
  EXPECT_TRUE(host.host_goes_on);
  EXPECT_EQ(host.issue_all(n(11000)), std::vector<std::uint32_t>{3});
  EXPECT_EQ(host.frontend.issued(), 5U);
  EXPECT_EQ(host.frontend.times(OpId{2}).called, n(10000));
  EXPECT_EQ(host.complete(1, n(12000)), std::vector<std::uint32_t>{2});
  EXPECT_FALSE(host.host_goes_on);  // it has nothing left to issue
}

// Up to 1338 operations of a stream had been issued and not begun in hta_v100_rank1of2, but never more than 1038
// kernels.
TEST(LaunchQueue, MemsetsAndCopiesTakeNoPlaceInTheQueue) {
  LaunchSpec launch = small_gpu().launch;
  launch.queue_depth = 2;
  ProgramOp memset = op_on(0);
  memset.memory_operation = true;
  ProgramOp copy = op_on(0);
  copy.kind = ProgramOpKind::copy;
  Host host({op_on(0), memset, copy, op_on(0), memset, op_on(0), op_on(0)}, {}, 1, launch);
  host.issue_all(n(1000));
  EXPECT_EQ(host.frontend.issued(), 5U);
  for (const std::uint32_t op : {0U, 1U, 2U}) host.complete(op, n(9000) + n(op));
  host.issue_all(n(20000));
  EXPECT_EQ(host.frontend.issued(), 6U);
}

TEST(LaunchQueue, AGraphTakesOnePlaceInTheQueue) {
  LaunchSpec launch = small_gpu().launch;
  launch.queue_depth = 1;
  Host host({op_on(0), op_on(0), op_on(0)}, {.cuda_graph = true}, 2, launch);
  host.issue_all(n(1000));
  EXPECT_EQ(host.frontend.issued(), 3U);
}

TEST(LaunchQueue, GoesOnInTheMiddleWithWhatIsQueued) {
  LaunchSpec launch = small_gpu().launch;
  launch.queue_depth = 2;
  const Program program = program_of({op_on(0), op_on(0), op_on(0), op_on(0)}, 1);
  const HostState from{.first = OpId{1}, .issued = 3, .arrivals = {0, 0}, .next_step = std::nullopt, .end = 0};
  Frontend frontend(program, launch, {}, ClockDomain(megahertz(1000)), &from);
  std::vector<OpId> ready;
  EXPECT_TRUE(frontend.completed(OpId{1}, n(100), ready));
  EXPECT_TRUE(frontend.step(n(2100)).has_value());
}

}  // namespace
}  // namespace weft
