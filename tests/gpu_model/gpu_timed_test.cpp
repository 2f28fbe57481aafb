// Kernels that only take the time they are given.
#include <gtest/gtest.h>

#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

constexpr SubCycle n(std::int64_t whole) { return cycles(whole); }

// Three kernels in a row, of which those that push nothing only take their time.
class Timed {
 public:
  Timed() {
    KernelDemand demand = grid_of(4, 256);
    demand.extra_cycles_per_block = 1000;
    program_ = program_of({kernel_op(demand), kernel_op(demand), kernel_op(demand)});
    work_.program = &program_;
    work_.scripts.assign(3, nullptr);
    work_.kernels_timed = true;
    gpu.emplace(GpuId{0}, small_gpu(), work_, LinkPorts());
  }
  void advance(Time to) {
    gpu->advance(to);
    gpu->come_to(to);
  }
  // Each ends so long after its beginning.
  void run(std::initializer_list<SubCycle> lasts) {
    std::uint32_t op = 0;
    for (const SubCycle time : lasts) {
      while (gpu->timed().empty()) advance(gpu->next_activity() + nanoseconds(1));
      EXPECT_EQ(gpu->timed().front().op, OpId{op});
      gpu->set_end(OpId{op++}, gpu->timed().front().start + time);
      while (!gpu->timed().empty()) advance(gpu->next_activity() + nanoseconds(1));
    }
  }
  [[nodiscard]] SubCycle duration(std::size_t op) const { return gpu->times()[op].end - gpu->times()[op].start; }

 private:
  Program program_;
  GpuWork work_;

 public:
  std::optional<Gpu> gpu;
};

TEST(GpuTimed, AKernelEndsWhenItIsSaidTo) {
  Timed timed;
  timed.advance(microseconds(50));
  ASSERT_EQ(timed.gpu->timed().size(), 1U);
  EXPECT_EQ(timed.gpu->timed().front().end, TimedKernel::kNotKnown);
  EXPECT_EQ(timed.gpu->timed_left(), Time::max());
  const SubCycle start = timed.gpu->times()[0].start;
  timed.gpu->set_end(OpId{0}, start + n(100'000));  // 100 us
  EXPECT_EQ(timed.gpu->timed_left(), timed.gpu->clock().to_time(start + n(100'000)) - microseconds(50));
  timed.run({n(100'000), n(7000), n(100'000)});
  EXPECT_TRUE(timed.gpu->done());
  EXPECT_EQ(timed.duration(0), n(100'000));
  EXPECT_EQ(timed.duration(1), n(7000));
  EXPECT_EQ(timed.duration(2), n(100'000));
  EXPECT_EQ(timed.gpu->statistics().memory_transactions, 0);
  EXPECT_EQ(timed.gpu->statistics().unit_seconds_compute, 0);
}

TEST(GpuTimed, TheLastWordCountsAlsoIfItIsSoonerOrLater) {
  Timed timed;
  timed.advance(microseconds(20));
  const SubCycle start = timed.gpu->times()[0].start;
  timed.gpu->set_end(OpId{0}, start + n(30'000));
  timed.gpu->set_end(OpId{0}, start + n(90'000));
  timed.advance(microseconds(60));
  EXPECT_LT(timed.gpu->times()[0].end, 0);
  timed.gpu->set_end(OpId{0}, start + n(70'000));
  timed.advance(microseconds(85));
  EXPECT_EQ(timed.duration(0), n(70'000));
}

TEST(GpuTimed, ATimeThatIsOverEndsItAtOnce) {
  Timed timed;
  timed.advance(microseconds(50));
  timed.gpu->set_end(OpId{0}, n(10));
  timed.advance(microseconds(51));
  EXPECT_EQ(timed.gpu->times()[0].end, n(50'000));
}

TEST(GpuTimed, WhatIsLeftOutIsPartOfItsTime) {
  Timed timed;
  timed.advance(microseconds(20));
  timed.gpu->set_end(OpId{0}, timed.gpu->times()[0].start + n(100'000));
  timed.gpu->leave_out(n(60'000));
  timed.run({n(100'000), n(7000), n(5000)});
  EXPECT_EQ(timed.duration(0), n(100'000));
  EXPECT_EQ(timed.duration(1), n(7000));
}

}  // namespace
}  // namespace weft
