// A program stretch by stretch, against every GPU in detail.
#include "cli/sampled/sampled_timeline.h"

#include <gtest/gtest.h>

#include "cli/config/run_config.h"
#include "cli/run/scripts.h"
#include "workloads/address_plan.h"

namespace weft {
namespace {

constexpr std::int64_t kBucket = 5 << 20;

RunConfig two_gpus() {
  const Json system{{"base", "hgx-h100"}, {"gpu", {{"compute_units", 24}}}, {"max_gpus", 2}};
  return read_run_config(
      Json{{"system", system}, {"gpus", 2}, {"workload", {{"collective", "all_reduce"}, {"bytes", 4096}}}},
      "test.json");
}

ProgramOp kernel(std::vector<OpId> waits = {}) {
  ProgramOp op;
  op.kernel.shape.grid = {16, 1, 1};
  op.kernel.shape.block = {128, 1, 1};
  op.kernel.reads = {{.base = std::uint64_t{1} << 30, .bytes_per_block = 4096}};
  op.kernel.extra_cycles_per_block = 3660;  // 2 us
  op.stream = StreamId{0};
  op.waits = std::move(waits);
  return op;
}

ProgramOp bucket(std::uint32_t number, OpId after) {
  ProgramOp op;
  op.kind = ProgramOpKind::collective;
  op.stream = StreamId{1};
  op.waits = {after};
  const std::uint64_t address = kFirstAddress + std::uint64_t{number} * kBucket;
  op.collective = {.kind = CollectiveKind::all_reduce,
                   .bytes = Bytes(kBucket),
                   .group = GpuGroup::first(2),
                   .sequence = number,
                   .send_address = address,
                   .receive_address = address};
  return op;
}

// Backward overtakes the first bucket; then they go one after the other, and the optimizer waits for the last.
std::vector<Program> overtaking() {
  Program program;
  program.priorities = {0, 1};
  program.ops = {kernel(), bucket(0, OpId{0}), kernel(), bucket(1, OpId{2}),
                 kernel(), bucket(2, OpId{4}), kernel(), kernel({OpId{5}})};
  return std::vector<Program>(2, program);
}

TEST(SampledTimeline, GoesOnBucketByBucketWhereBackwardHasOvertakenThem) {
  const RunConfig config = two_gpus();
  const std::vector<Program> programs = overtaking();
  const Scripts scripts(config, programs);
  Machine machine(config.system, {scripts.work(0), scripts.work(1)}, scripts.multicast_groups());
  machine.run_until_asleep(1);

  RegimeMemory memory(std::nullopt);
  const auto run = [&] {
    RegimeLab lab(config, programs, &scripts);
    SampledTimeline timeline(config, programs.front(), true, memory, lab);
    timeline.run({});
    return std::pair(timeline.times(), lab.memory_transactions());
  };
  const auto [times, transactions] = run();
  for (std::size_t op = 0; op < times.size(); ++op) {
    const OpTimes& real = machine.gpu(0).times()[op];
    EXPECT_NEAR(static_cast<double>(times[op].end) / static_cast<double>(real.end), 1, 0.03) << op;
  }
  EXPECT_LT(times[6].end, times[3].start);  // it has overtaken them
  // What overlaps; the second bucket, of which the third one is a copy; the last kernel.
  EXPECT_EQ(memory.simulated(), 4);
  EXPECT_EQ(memory.reused(), 1);
  const auto [again, nothing] = run();
  EXPECT_EQ(nothing, 0);
  EXPECT_GT(transactions, 0);
  for (std::size_t op = 0; op < times.size(); ++op) {
    EXPECT_EQ(again[op].start, times[op].start);
    EXPECT_EQ(again[op].end, times[op].end);
  }
}

// Of 16 waves, which leave no room for the other one, and of a stretch that is remembered.
TEST(SampledTimeline, AKernelBeginsWithItsFirstBlock) {
  const RunConfig config = two_gpus();
  Program program;
  program.priorities = {0, 0};
  ProgramOp large = kernel();
  large.kernel.shape.grid[0] = 16 * 24;
  large.kernel.shape.block[0] = 1024;
  large.kernel.shape.registers_per_thread = 64;
  ProgramOp behind = kernel();
  behind.stream = StreamId{1};
  ProgramOp last = kernel({OpId{0}, OpId{1}});
  for (int i = 0; i < 2; ++i) {
    for (const ProgramOp& op : {large, behind, last}) program.ops.push_back(op);
    last.waits = {OpId{3}, OpId{4}};
  }
  program.ops.edit()[3].waits = {OpId{2}};
  program.ops.edit()[4].waits = {OpId{2}};
  const std::vector<Program> programs(2, program);
  const Scripts scripts(config, programs);
  Machine machine(config.system, {scripts.work(0), scripts.work(1)}, scripts.multicast_groups());
  machine.run_until_asleep(1);
  RegimeMemory memory(std::nullopt);
  RegimeLab lab(config, programs, &scripts);
  SampledTimeline timeline(config, program, true, memory, lab);
  timeline.run({});
  for (const std::size_t op : {1, 4}) {
    const OpTimes& real = machine.gpu(0).times()[op];
    const auto waited = static_cast<double>(real.began() - real.start);
    EXPECT_GT(waited, static_cast<double>(machine.gpu(0).times()[op - 1].end - real.start) / 2);
    const OpTimes& times = timeline.times()[op];
    EXPECT_NEAR(static_cast<double>(times.began() - times.start), waited, 0.02 * waited);
  }
}

// A kernel's loads are ahead of its stores, so it leaves more dirty lines than the order of its rounds says.
TEST(SampledTimeline, WhatComesFirstBesideACollectiveMeetsTheL2OfTheQuietRun) {
  const RunConfig config = read_run_config(Json::parse(R"({"system": "dgx1-v100", "gpus": 2,
    "workload": {"collective": "all_reduce", "bytes": 4096}})"),
                                           "test.json");
  Program program;
  program.priorities = {0, 1};
  ProgramOp widen = kernel();
  widen.kernel.shape.grid[0] = 4096;
  widen.kernel.reads = {{.base = kFirstAddress + (1 << 28), .bytes_per_block = 2048}};
  widen.kernel.writes = {{.base = kFirstAddress + (1 << 29), .bytes_per_block = 4096}};
  program.ops = {widen, bucket(0, OpId{0}), kernel({OpId{1}})};
  const std::vector<Program> programs(2, program);
  const Scripts scripts(config, programs);
  Machine machine(config.system, {scripts.work(0), scripts.work(1)}, scripts.multicast_groups());
  machine.run_until_asleep(1);
  RegimeMemory memory(std::nullopt);
  RegimeLab quiet(config, programs, nullptr);
  SampledTimeline(config, program, false, memory, quiet).run({});
  RegimeLab lab(config, programs, &scripts, &quiet);
  SampledTimeline timeline(config, program, true, memory, lab);
  timeline.run({});
  const auto written = static_cast<double>(timeline.sum().hbm_write_bytes);
  EXPECT_NEAR(written / static_cast<double>(machine.gpu(0).hbm_bytes().written), 1, 0.02);  // guessed: 0.92
}

}  // namespace
}  // namespace weft
