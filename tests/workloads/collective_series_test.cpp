#include "workloads/collective_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/error.h"

namespace weft {
namespace {

using testing::HasSubstr;

CollectiveSeries series() { return {.bytes = Bytes(1 << 20), .type = DataType::fp16, .gpus = 8, .iterations = 3}; }

std::string refused(const CollectiveSeries& series) {
  try {
    (void)collective_series(series);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CollectiveSeries, RepeatsOneCollectiveOnAllGpus) {
  const auto programs = collective_series(series());
  ASSERT_EQ(programs.size(), 8U);
  ASSERT_EQ(programs[7].ops.size(), 3U);
  EXPECT_EQ(programs[7].ops[2].collective.sequence, 2U);
  EXPECT_EQ(programs[7].ops[2].collective.group.size(), 8U);
  EXPECT_EQ(programs[7].ops[2].collective.bytes, Bytes(1 << 20));
}

TEST(CollectiveSeries, GroupsRunByThemselvesAndSomeGpusComeLate) {
  CollectiveSeries groups = series();
  groups.groups = {{5, 4}, {0, 1, 2}};
  groups.root = 1;
  groups.start_delay_us = {0, 2.5};
  const auto programs = collective_series(groups);
  EXPECT_EQ(programs[4].ops[2].collective.group, (std::vector<GpuId>{GpuId{4}, GpuId{5}}));
  EXPECT_EQ(programs[4].ops[2].collective.root, 0U);  // GPU 4, the second of the list
  EXPECT_EQ(programs[2].ops[2].collective.root, 1U);
  EXPECT_EQ(programs[2].ops[0].collective.group.size(), 3U);
  EXPECT_TRUE(programs[3].ops.empty());
  EXPECT_EQ(programs[1].ops[2].start_delay, nanoseconds(2500));
  EXPECT_EQ(programs[2].ops[0].start_delay, Time());
}

TEST(CollectiveSeries, AShiftHasABufferForWhatComes) {
  CollectiveSeries shifted = series();
  shifted.kind = CollectiveKind::shift;
  const Program program = collective_series(shifted).front();
  const CollectiveDemand& demand = program.ops.front().collective;
  EXPECT_GE(demand.receive_address, demand.send_address + (1U << 20U));
  EXPECT_EQ(program.memory.front().bytes, Bytes(2 << 20));
}

TEST(CollectiveSeries, AShiftGoesByNumbers) {
  CollectiveSeries shifted = series();
  shifted.kind = CollectiveKind::shift;
  shifted.groups = {{4, 5, 7}, {0, 2, 1}};
  EXPECT_THAT(refused(shifted), HasSubstr("/workload/groups/1: expected ascending GPUs"));
}

TEST(CollectiveSeries, WhatMakesNoCollectiveIsRefused) {
  CollectiveSeries wrong = series();
  wrong.bytes = Bytes(3);
  EXPECT_THAT(refused(wrong), HasSubstr("/workload/bytes: expected a positive multiple of 2, got 3"));
  wrong = series();
  wrong.gpus = 1;
  EXPECT_THAT(refused(wrong), HasSubstr("/gpus"));
  wrong = series();
  wrong.iterations = 0;
  EXPECT_THAT(refused(wrong), HasSubstr("/iterations"));
  wrong = series();
  wrong.root = 8;
  EXPECT_THAT(refused(wrong), HasSubstr("/workload/root: expected a place in a group of 8, got 8"));
  wrong = series();
  wrong.start_delay_us.resize(9);
  EXPECT_THAT(refused(wrong), HasSubstr("/workload/start_delay_us: expected at most 8"));
  wrong = series();
  wrong.groups = {{0, 1}, {2}};
  EXPECT_THAT(refused(wrong), HasSubstr("/workload/groups/1: expected at least 2 GPUs, got 1"));
  wrong.groups = {{0, 8}};
  EXPECT_THAT(refused(wrong), HasSubstr("/workload/groups/0: expected GPUs below 8, got 8"));
  wrong.groups = {{0, 1}, {2, 1}};
  EXPECT_THAT(refused(wrong), HasSubstr("/workload/groups/1: expected each GPU once in one group at most, got 1"));
}

}  // namespace
}  // namespace weft
