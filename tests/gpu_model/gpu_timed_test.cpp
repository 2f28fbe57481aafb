// Kernels that only take the time they are given.
#include <gtest/gtest.h>

#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

constexpr SubCycle n(std::int64_t whole) { return cycles(whole); }

// Three kernels in a row, the first and the last of one kind, the one between them of another; `kinds` 0: they run.
class Timed {
 public:
  explicit Timed(std::vector<std::uint32_t> kinds) : kinds_(std::move(kinds)) {
    KernelDemand demand = grid_of(4, 256);
    demand.extra_cycles_per_block = 1000;
    program_ = program_of({kernel_op(demand), kernel_op(demand), kernel_op(demand)});
    work_.program = &program_;
    work_.scripts.assign(3, nullptr);
    work_.kinds = &kinds_;
    gpu.emplace(GpuId{0}, small_gpu(), work_, LinkPorts());
  }
  void advance(Time to) {
    gpu->advance(to);
    gpu->come_to(to);
  }
  [[nodiscard]] SubCycle duration(std::size_t op) const { return gpu->times()[op].end - gpu->times()[op].start; }

 private:
  std::vector<std::uint32_t> kinds_;
  Program program_;
  GpuWork work_;

 public:
  std::optional<Gpu> gpu;
};

TEST(GpuTimed, AKernelEndsWhenItsTimeIsKnownAndLaterOnesOfItsKindTakeAsLong) {
  Timed timed({1, 2, 1});
  timed.advance(microseconds(50));
  EXPECT_EQ(timed.gpu->untimed(), std::vector{OpId{0}});
  EXPECT_EQ(timed.gpu->timed_left(), Time::max());
  timed.gpu->set_duration(1, n(100'000));  // 100 us
  const SubCycle start = timed.gpu->times()[0].start;
  EXPECT_EQ(timed.gpu->timed_left(), timed.gpu->clock().to_time(start + n(100'000)) - microseconds(50));
  timed.gpu->set_duration(2, n(7000));
  run_alone(*timed.gpu);
  EXPECT_EQ(timed.duration(0), n(100'000));
  EXPECT_EQ(timed.duration(1), n(7000));
  EXPECT_EQ(timed.duration(2), n(100'000));
  EXPECT_EQ(timed.gpu->statistics().memory_transactions, 0);
  EXPECT_EQ(timed.gpu->statistics().unit_seconds_compute, 0);
}

TEST(GpuTimed, ATimeThatIsOverEndsItAtOnce) {
  Timed timed({1, 2, 0});
  timed.advance(microseconds(50));
  timed.gpu->set_duration(1, n(10));
  timed.gpu->set_duration(2, n(10));
  run_alone(*timed.gpu);
  EXPECT_EQ(timed.gpu->times()[0].end, n(50'000));
  EXPECT_GT(timed.duration(2), n(1000));  // it runs
}

TEST(GpuTimed, WhatIsLeftOutIsPartOfItsTime) {
  Timed timed({1, 2, 1});
  timed.gpu->set_duration(1, n(100'000));
  timed.gpu->set_duration(2, n(7000));
  timed.advance(microseconds(20));
  timed.gpu->leave_out(n(60'000));
  run_alone(*timed.gpu);
  for (const std::size_t op : {0U, 2U}) EXPECT_EQ(timed.duration(op), n(100'000));
  EXPECT_EQ(timed.duration(1), n(7000));
}

}  // namespace
}  // namespace weft
