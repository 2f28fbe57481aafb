// Host and streams: order, waits, delays, issue times.
#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/gpu_model/frontend_host.h"

namespace weft {
namespace {

TEST(Frontend, IssuesOneOperationAfterAnother) {
  Host host({op_on(0), op_on(0), op_on(1)});
  EXPECT_EQ(host.frontend.first_step(), n(1000));
  const auto first = host.frontend.step(n(1000));
  ASSERT_TRUE(first && first->op);
  EXPECT_EQ(first->op->value, 0U);
  EXPECT_EQ(first->arrives, n(3000));
  EXPECT_EQ(first->next_step, n(2000));
  EXPECT_EQ(host.frontend.all_times()[0].called, 0);
  host.frontend.step(n(2000));
  const auto last = host.frontend.step(n(3000));
  EXPECT_EQ(last->op->value, 2U);
  EXPECT_EQ(last->next_step, std::nullopt);
  EXPECT_EQ(host.frontend.step(n(4000)), std::nullopt);
}

TEST(Frontend, AStreamRunsInOrderAndStreamsBesideEachOther) {
  Host host({op_on(0), op_on(0), op_on(1)});
  EXPECT_EQ(host.issue_all(n(1000)), (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(host.complete(2, n(5000)), std::vector<std::uint32_t>{});
  EXPECT_EQ(host.complete(0, n(6000)), std::vector<std::uint32_t>{1});
  EXPECT_EQ(host.frontend.all_times()[1].unblocked, n(6000));
  EXPECT_FALSE(host.frontend.done());
  host.complete(1, n(7000));
  EXPECT_TRUE(host.frontend.done());
}

TEST(Frontend, EventWaitsHoldOtherStreamsBack) {
  Host host({op_on(0), op_on(1, {OpId{0}}), op_on(1), op_on(0, {OpId{1}, OpId{0}})});
  EXPECT_EQ(host.issue_all(n(1000)), (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(host.complete(0, n(5000)), std::vector<std::uint32_t>{1});
  EXPECT_EQ(host.complete(1, n(6000)), (std::vector<std::uint32_t>{2, 3}));
}

TEST(Frontend, AnOperationStartsNotBeforeItArrived) {
  Host host({op_on(0), op_on(0)});
  host.frontend.step(n(1000));
  EXPECT_TRUE(host.frontend.arrived(OpId{0}));
  EXPECT_EQ(host.complete(0, n(1500)), std::vector<std::uint32_t>{});
  host.frontend.step(n(2000));
  EXPECT_TRUE(host.frontend.arrived(OpId{1}));
}

TEST(Frontend, AHostWaitStopsTheHost) {
  Host host({op_on(0), op_on(1), host_wait({OpId{0}, OpId{1}}), op_on(0)});
  EXPECT_EQ(host.issue_all(n(1000)), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(host.now, n(2000));  // it comes to the wait with its last launch
  host.complete(1, n(5000));
  EXPECT_FALSE(host.host_goes_on);
  host.complete(0, n(9000));
  EXPECT_TRUE(host.host_goes_on);
  EXPECT_EQ(host.issue_all(n(11'000)), (std::vector<std::uint32_t>{3}));
  EXPECT_EQ(host.frontend.all_times()[2].end, n(11'000));
  EXPECT_EQ(host.frontend.all_times()[3].called, n(11'000));
}

TEST(Frontend, AHostWaitForWhatIsOverCostsNothing) {
  Host host({op_on(0), host_wait({OpId{0}}), op_on(0)});
  host.frontend.step(n(1000));
  static_cast<void>(host.frontend.arrived(OpId{0}));
  host.complete(0, n(1500));
  EXPECT_FALSE(host.host_goes_on);
  EXPECT_EQ(host.issue_all(n(2000)), (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(host.now, n(3000));
}

TEST(Frontend, HostDelaysContainTheLaunch) {
  std::vector<ProgramOp> ops = {op_on(0), op_on(0), op_on(0)};
  ops[0].host_delay = nanoseconds(400);  // shorter than a launch
  ops[1].host_delay = nanoseconds(5000);
  Host host(ops);
  EXPECT_EQ(host.frontend.first_step(), n(1000));
  EXPECT_EQ(host.frontend.step(n(1000))->next_step, n(6000));
  EXPECT_EQ(host.frontend.step(n(6000))->next_step, n(7000));
  EXPECT_EQ(host.frontend.all_times()[1].called, n(5000));
}

TEST(Frontend, CollectivesTakeTheHostForEachGpuOfItsProcess) {
  std::vector<ProgramOp> ops = {op_on(0), op_on(1)};
  ops[1].kind = ProgramOpKind::collective;
  Host one(ops);
  EXPECT_EQ(one.frontend.step(n(1000))->next_step, n(1000 + 3000));
  Host eight(ops, {.gpus_per_process = 8});
  EXPECT_EQ(eight.frontend.step(n(1000))->next_step, n(1000 + 8 * 3000));
  eight.frontend.step(n(25'000));
  EXPECT_EQ(eight.frontend.all_times()[1].called, n(1000));
}

TEST(Frontend, AGraphIsLaunchedOnceAnIterationAndBetweenHostWaits) {
  std::vector<ProgramOp> ops = {op_on(0), op_on(1), op_on(0), host_wait({OpId{2}}), op_on(0), op_on(0), op_on(0)};
  ops[1].kind = ProgramOpKind::collective;
  ops[2].host_delay = nanoseconds(5000);  // of a host that now launches all at once
  ops[6].iteration = 1;
  Host host(ops, {.cuda_graph = true});
  EXPECT_EQ(host.frontend.step(n(1000))->next_step, n(1000));
  EXPECT_EQ(host.frontend.step(n(1000))->arrives, n(3000));
  EXPECT_EQ(host.frontend.step(n(1000))->next_step, n(1000));  // to the host's wait
  const std::vector<bool> follows{false, true, true, false, false, true, false};
  for (std::uint32_t i = 0; i < follows.size(); ++i) {
    EXPECT_EQ(host.frontend.follows_in_graph(OpId{i}), follows[i]) << i;
    EXPECT_FALSE(Host(ops).frontend.follows_in_graph(OpId{i}));
  }
}

TEST(Frontend, RefusesProgramsThatWaitForLaterOperations) {
  EXPECT_THROW(Host({op_on(0, {OpId{1}}), op_on(0)}), InternalError);
  EXPECT_THROW(Host({op_on(2)}), InternalError);
}

TEST(Frontend, AnEmptyProgramIsDone) {
  Host host({});
  EXPECT_EQ(host.frontend.first_step(), std::nullopt);
  EXPECT_TRUE(host.frontend.done());
}

// Two kernels on the first stream, each with a collective of the second one behind it; another kernel waits for both.
std::vector<ProgramOp> overtaken() {
  return {op_on(0), op_on(1, {OpId{0}}), op_on(0), op_on(1, {OpId{2}}), op_on(0, {OpId{3}})};
}

TEST(Frontend, IsAtAPlaceWhereOneStreamHasBeenOvertaken) {
  Host host(overtaken());
  host.issue_all(0);
  EXPECT_EQ(host.frontend.place(), (ProgramPlace{0, 0}));
  host.complete(0, n(10000));
  EXPECT_EQ(host.frontend.place(), (ProgramPlace{1, 1}));
  host.complete(2, n(20000));
  EXPECT_EQ(host.frontend.place(), (ProgramPlace{1, 3}));
  host.complete(1, n(30000));
  EXPECT_EQ(host.frontend.place(), (ProgramPlace{3, 3}));
  // Of two other streams, both behind what has ended.
  Host two({op_on(0), op_on(1), op_on(2)}, {}, 3);
  two.issue_all(0);
  two.complete(2, n(10000));
  EXPECT_EQ(two.frontend.place(), std::nullopt);
}

TEST(Frontend, GoesOnFromWhereOneStreamHasBeenOvertaken) {
  Host host(overtaken());
  const HostState from{OpId{1}, 5, {0, 0, 0, 0}, {}, 3};
  for (const std::uint32_t op : {0U, 2U}) EXPECT_TRUE(had_ended(host.program, from, op));
  for (const std::uint32_t op : {1U, 3U, 4U}) EXPECT_FALSE(had_ended(host.program, from, op));
  Frontend frontend(host.program, small_gpu().launch, {}, ClockDomain(megahertz(1000)), &from);
  EXPECT_EQ(frontend.place(), (ProgramPlace{1, 3}));
  EXPECT_TRUE(frontend.arrived(OpId{1}));
  EXPECT_FALSE(frontend.arrived(OpId{3}));  // behind the first one on its stream, and behind nothing else
  EXPECT_FALSE(frontend.arrived(OpId{4}));
  std::vector<OpId> ready;
  frontend.completed(OpId{1}, n(1000), ready);
  EXPECT_EQ(ready, std::vector{OpId{3}});
  EXPECT_EQ(frontend.place(), (ProgramPlace{3, 3}));
  frontend.completed(OpId{3}, n(2000), ready);
  EXPECT_EQ(ready.back(), OpId{4});
  EXPECT_FALSE(frontend.done());
  frontend.completed(OpId{4}, n(3000), ready);
  EXPECT_TRUE(frontend.done());
}

// Steps of two operations, on a stream each; the second one waits for the first one of its step and of the one before.
std::vector<ProgramOp> steps(std::uint32_t count) {
  std::vector<ProgramOp> ops;
  for (std::uint32_t i = 0; i < count; ++i) {
    ops.push_back(op_on(0));
    ops.push_back(op_on(1, i == 0 ? std::vector<OpId>{OpId{0}} : std::vector<OpId>{OpId{2 * i - 2}, OpId{2 * i}}));
  }
  return ops;
}

TEST(Frontend, WhoWaitsForWhatIsLeftOutWaitsForTheOneBeforeIt) {
  std::vector<ProgramOp> ops = steps(6);
  ops.push_back(host_wait({OpId{11}}));
  Host host(ops);
  EXPECT_EQ(host.issue_all(0), std::vector<std::uint32_t>{0});
  host.frontend.times(OpId{0}).start = n(5000);
  EXPECT_EQ(host.complete(0, n(6000)), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(host.complete(1, n(7000)), std::vector<std::uint32_t>{});
  std::vector<OpId> ready;
  const RepeatedOps left{.first = OpId{4}, .count = 6, .like = OpId{0}, .period = 2};  // steps 2 to 4
  EXPECT_FALSE(host.frontend.leave_out(left, ready));
  EXPECT_TRUE(ready.empty());
  EXPECT_EQ(host.frontend.times(OpId{8}).start, n(5000));
  EXPECT_EQ(host.frontend.times(OpId{8}).end, n(6000));
  EXPECT_EQ(host.frontend.times(OpId{9}).end, n(7000));
  // The last step waits for the second one as the third one would have.
  EXPECT_EQ(host.complete(2, n(8000)), (std::vector<std::uint32_t>{3, 10}));
  EXPECT_EQ(host.complete(10, n(9000)), std::vector<std::uint32_t>{});
  EXPECT_EQ(host.complete(3, n(10000)), std::vector<std::uint32_t>{11});
  EXPECT_FALSE(host.host_goes_on);
  host.complete(11, n(11000));
  EXPECT_TRUE(host.host_goes_on);
  host.issue_all(n(12000));
  EXPECT_TRUE(host.frontend.done());
}

// What has not been issued is not issued any more, and what has leaves its place in the queue.
TEST(Frontend, TheHostPassesOverWhatIsLeftOut) {
  LaunchSpec launch = small_gpu().launch;
  launch.queue_depth = 3;
  Host host(steps(6), {}, 2, launch);
  host.issue_all(0);
  EXPECT_EQ(host.frontend.issued(), 6U);
  host.complete(0, n(10000));
  host.complete(1, n(11000));
  host.issue_all(n(12000));
  EXPECT_EQ(host.frontend.issued(), 8U);
  std::vector<OpId> ready;
  EXPECT_TRUE(host.frontend.leave_out({.first = OpId{4}, .count = 6, .like = OpId{0}, .period = 2}, ready));
  EXPECT_EQ(host.issue_all(n(13000)), std::vector<std::uint32_t>{});
  EXPECT_EQ(host.frontend.issued(), 12U);
  EXPECT_FALSE(host.frontend.arrived(OpId{7}));  // it was under way
  EXPECT_EQ(host.complete(2, n(14000)), (std::vector<std::uint32_t>{3, 10}));
}

}  // namespace
}  // namespace weft
