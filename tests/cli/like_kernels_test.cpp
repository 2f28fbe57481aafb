// Kernels that ask for the same as one that was simulated.
#include "cli/sampled/like_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "cli/config/run_config.h"
#include "gpu_model/l2_of_addresses.h"
#include "cli/sampled/regime_lab.h"

namespace weft {
namespace {

constexpr std::uint32_t kBlocks = 2048;
constexpr std::uint64_t kSlice = 16 << 10;  // 32 MiB read by all, and as much written

RunConfig config_of() {
  return read_run_config(Json{{"system", "dgx-a100"},
                              {"gpus", 2},
                              {"workload", {{"collective", "all_reduce"}, {"bytes", 4096}}},
                              {"all_reduce", {{"algorithm", "ring"}}}},
                         "test.json");
}

ProgramOp copy_of(std::uint64_t place, std::uint64_t bytes_per_block = kSlice) {
  ProgramOp op;
  op.name = "copy";
  op.stream = StreamId{0};
  op.kernel.shape.grid = {kBlocks, 1, 1};
  op.kernel.shape.block = {256, 1, 1};
  op.kernel.reads = {{.base = 2 * place << 30, .bytes_per_block = bytes_per_block}};
  op.kernel.writes = {{.base = (2 * place + 1) << 30, .bytes_per_block = bytes_per_block}};
  return op;
}

Program program_of(const std::vector<ProgramOp>& ops) {
  Program program;
  program.priorities = {0};
  for (const ProgramOp& op : ops) program.ops.push_back(op);
  return program;
}

// It took `cycles` and moved so much.
Regime took(SubCycle cycles, std::int64_t read, std::int64_t written) {
  Regime regime;
  regime.operations.push_back({.duration = cycles * kCycle, .ledger = {}});
  regime.hbm_read_bytes = read;
  regime.hbm_write_bytes = written;
  regime.unit_seconds_compute = 1;
  return regime;
}

TEST(LikeKernels, AreLongAndComeAgain) {
  ProgramOp other_fit = copy_of(3);
  other_fit.kernel.extra_cycles_per_block = 100;
  const RunConfig config = config_of();
  const LikeKernels like(config.system.gpu,
                         program_of({copy_of(1), copy_of(2), other_fit, copy_of(4, 1 << 10), copy_of(5, 1 << 10)}));
  EXPECT_TRUE(like.worth_asking(OpId{0}));
  EXPECT_TRUE(like.worth_asking(OpId{1}));
  EXPECT_FALSE(like.worth_asking(OpId{2}));  // none other was fitted so
  EXPECT_FALSE(like.worth_asking(OpId{3}));  // short
  EXPECT_FALSE(like.worth_asking(OpId{4}));
}

TEST(LikeKernels, TakeAsLongIfTheL2LetsThroughAsMuch) {
  constexpr std::int64_t kAll = std::int64_t{kBlocks} * kSlice;
  const RunConfig config = config_of();
  LikeKernels like(config.system.gpu, program_of({copy_of(1), copy_of(2)}));
  EXPECT_FALSE(like.find(OpId{0}, {kAll, kAll}));
  // A sixth of what HBM can move at most: how much it is decides nothing.
  const double rate = static_cast<double>(config.system.gpu.hbm.bandwidth.count()) /
                      static_cast<double>(config.system.gpu.clock.count());  // bytes a cycle
  const auto cycles = static_cast<SubCycle>(12.0 * kAll / rate);
  like.add(OpId{0}, {kAll, kAll}, took(cycles, kAll, kAll));
  const std::optional<Regime> found = like.find(OpId{1}, {kAll - kAll / 20, kAll});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->operations.front().duration, cycles * kCycle);
  EXPECT_EQ(found->hbm_read_bytes, kAll - kAll / 20);
  EXPECT_EQ(found->hbm_write_bytes, kAll);
  EXPECT_EQ(found->uncertainty, std::llround(LikeKernels::kScatter * static_cast<double>(cycles * kCycle)));
  EXPECT_FALSE(like.find(OpId{1}, {kAll - kAll / 4, kAll}));
}

// Where HBM decides, a kernel takes longer as it moves more.
TEST(LikeKernels, TakeLongerByWhatMoreTheyMove) {
  constexpr std::int64_t kAll = std::int64_t{kBlocks} * kSlice;
  const RunConfig config = config_of();
  LikeKernels like(config.system.gpu, program_of({copy_of(1), copy_of(2)}));
  const double rate = static_cast<double>(config.system.gpu.hbm.bandwidth.count()) /
                      static_cast<double>(config.system.gpu.clock.count());
  const auto cycles = static_cast<SubCycle>(2.2 * kAll / rate);
  like.add(OpId{0}, {kAll, kAll}, took(cycles, kAll, kAll));
  const std::optional<Regime> found = like.find(OpId{1}, {kAll + kAll / 20, kAll});
  ASSERT_TRUE(found);
  EXPECT_NEAR(static_cast<double>(found->operations.front().duration) / static_cast<double>(cycles * kCycle), 1.025,
              1e-6);
  EXPECT_NEAR(found->unit_seconds_compute, 1.025, 1e-6);
}

// A chain of copies, each from and to memory that nobody touched: from the third on each meets an L2 that the one
// before has filled. The first of those is simulated, and the others take as long as in detail.
TEST(LikeKernels, AreNotSimulated) {
  const RunConfig config = config_of();
  const std::vector<Program> programs{program_of({copy_of(1), copy_of(2), copy_of(3), copy_of(4), copy_of(5)})};
  RegimeLab lab(config, programs, nullptr);
  std::vector<Regime> regimes;
  std::vector<std::int64_t> transactions;
  for (std::uint32_t i = 0; i < 5; ++i) {
    const std::int64_t before = lab.memory_transactions();
    regimes.push_back(lab.kernel(OpId{i}));
    transactions.push_back(lab.memory_transactions() - before);
  }
  EXPECT_GT(transactions[0], 0);
  EXPECT_GT(transactions[1], 0);  // it writes back what the first one left
  EXPECT_EQ(transactions[3], 0);
  EXPECT_EQ(transactions[4], 0);
  for (std::uint32_t i = 3; i < 5; ++i) {
    RegimeLab detail(config, programs, nullptr);
    const auto exact = static_cast<double>(detail.kernel_twice(OpId{i}).second);
    EXPECT_NEAR(static_cast<double>(regimes[i].operations.front().duration) / exact, 1, 0.02) << i;
  }
}

// Who reads what one of them wrote finds it in the L2, also what the first of many small waves did.
TEST(LikeKernels, LeaveWhatTheyWroteInTheL2) {
  for (const std::uint64_t slice : {4 << 10, 256}) {
    const auto blocks = static_cast<std::uint32_t>((8 << 20) / slice);  // 8 MiB read and as much written, of 40
    ProgramOp first = copy_of(1, slice);
    ProgramOp second = copy_of(2, slice);
    ProgramOp reader = copy_of(2, slice);
    reader.kernel.reads = reader.kernel.writes;
    reader.kernel.writes.clear();
    for (ProgramOp* op : {&first, &second, &reader}) op->kernel.shape.grid = {blocks, 1, 1};
    const RunConfig config = config_of();
    const std::vector<Program> programs{program_of({first, second, reader})};
    RegimeLab lab(config, programs, nullptr);
    EXPECT_GT(lab.kernel(OpId{0}).hbm_read_bytes, 7 << 20);
    const std::int64_t before = lab.memory_transactions();
    EXPECT_GT(lab.kernel(OpId{1}).hbm_read_bytes, 7 << 20);
    EXPECT_EQ(lab.memory_transactions(), before);
    EXPECT_LT(lab.kernel(OpId{2}).hbm_read_bytes, 1 << 20) << slice;
    EXPECT_GT(lab.memory_transactions(), before);
  }
}

// An L2 that is known is told only of what was not simulated since.
TEST(LikeKernels, LeaveTheRestOfAKnownL2) {
  const RunConfig config = config_of();
  const GpuSpec& gpu = config.system.gpu;
  const Program program = program_of({copy_of(1, 4 << 10), copy_of(2, 4 << 10), copy_of(3)});  // 16, 16 and 64 MiB
  const L2Cache::Lines of_others{.first = LineAddress{1} << 30, .count = 1024};
  const auto fetched = [](L2Cache& l2, const L2Cache::Lines& lines) {
    return l2.touch(lines, L2Cache::Use::read).fetched_bytes;
  };
  const auto reads = [&](std::uint32_t op) {
    const Operand& operand = program.ops[op].kernel.reads.front();
    return L2Cache::Lines{.first = static_cast<LineAddress>(operand.base / kLineBytes), .count = 1024};
  };
  L2Cache l2(gpu.l2, gpu.hbm, gpu.clock);
  l2.touch(of_others, L2Cache::Use::write);
  EXPECT_TRUE(touch_operations(gpu, program, OpId{0}, OpId{1}, false, l2));
  EXPECT_EQ(fetched(l2, of_others), 0);
  EXPECT_EQ(fetched(l2, reads(0)), 0);
  EXPECT_GT(fetched(l2, reads(1)), 0);
  EXPECT_FALSE(touch_operations(gpu, program, OpId{0}, OpId{3}, false, l2));  // more than twice what it holds
}

}  // namespace
}  // namespace weft
