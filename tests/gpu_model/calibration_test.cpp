// Fits of kernels to their times alone, and what runs of kernels alone do not depend on.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "gpu_model/alone.h"
#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

// Streams 2 KiB a block, in and out.
ProgramOp streaming(std::uint32_t blocks, double alone_us, std::uint64_t base = 1 << 20) {
  KernelDemand demand = grid_of(blocks, 128);
  demand.reads = {{base, 2048, 1, 0}};
  demand.writes = {{base + (std::uint64_t{blocks} << 12), 2048, 1, 0}};
  ProgramOp op = kernel_op(demand);
  op.measured_alone = microseconds(alone_us);
  return op;
}

DemandFit fit_of(const ProgramOp& op) {
  std::int64_t transactions = 0;
  const Program program = program_of({op});
  return run_kernels_alone({&program, 1}, small_gpu(), 1, {}, transactions).front().front();
}

// The same, within the tolerance.
DemandFit met(const ProgramOp& op) {
  const DemandFit fit = fit_of(op);
  EXPECT_LT(calibration_error(op, fit), kCalibrationTolerance);
  return fit;
}

TEST(Calibration, AddsCyclesToAKernelThatIsTooFast) {
  const ProgramOp op = streaming(64, 50);
  const DemandFit fit = met(op);
  EXPECT_GT(fit.extra_cycles_per_block, 0);
  EXPECT_EQ(fit.memory_scale, 1);
  EXPECT_EQ(fit.flops_scale, 1);
}

TEST(Calibration, AddsBytesToAKernelThatWaitsForMemory) {
  // 4 MiB at 128 GB/s take 33 us of 50: nothing that it computes is as long. Its bytes are a guess.
  ProgramOp op = streaming(1024, 50);
  op.kernel.origin = DemandOrigin::name;
  const DemandFit fit = met(op);
  EXPECT_EQ(fit.extra_cycles_per_block, 0);
  EXPECT_GT(fit.memory_scale, 1.1);         // with turnarounds and rows, the pins are not all there is
  op.kernel.origin = DemandOrigin::shapes;  // they are not: but 33 of 40 us are what streams reach
  op.measured_alone = microseconds(42);
  EXPECT_GT(fit_of(op).memory_scale, 1);
}

// What takes 50 us for 33 us of known bytes is held up by something else.
TEST(Calibration, LeavesBytesThatAreKnown) {
  ProgramOp op = streaming(1024, 50);
  op.kernel.origin = DemandOrigin::shapes;
  const DemandFit fit = met(op);
  EXPECT_EQ(fit.memory_scale, 1);
  EXPECT_GT(fit.extra_cycles_per_block, 0);
  EXPECT_TRUE(fit.extra_waits);
  op.kernel.reads.front().divisor = 2;  // shared between blocks: how often it comes from memory is not known
  EXPECT_GT(fit_of(op).memory_scale, 1);
}

TEST(Calibration, TakesBytesFromAKernelThatIsTooSlow) {
  // 4 MiB at 128 GB/s take 33 us.
  const ProgramOp op = streaming(1024, 17);
  const DemandFit fit = met(op);
  EXPECT_LT(fit.memory_scale, 0.8);
  EXPECT_GT(fit.memory_scale, 0.3);
}

TEST(Calibration, MeetsTimesBetweenWholeTransactions) {
  // Two lines a block: taking away bytes moves the time in few, large steps, and cycles make up for the rest.
  for (const double us : {3.1, 3.4, 3.7, 4.0}) {
    KernelDemand demand = grid_of(1024, 128);
    demand.reads = {{1 << 20, 256, 1, 0}};
    ProgramOp op = kernel_op(demand);
    op.measured_alone = microseconds(us);
    EXPECT_LT(calibration_error(op, fit_of(op)), kCalibrationTolerance) << us;
  }
}

TEST(Calibration, StopsWhereAKernelOnlyStarts) {
  const ProgramOp op = streaming(1024, 0.01);
  const DemandFit fit = fit_of(op);
  EXPECT_GT(calibration_error(op, fit), 1);
  EXPECT_EQ(fit.memory_scale, 0);
}

TEST(Calibration, AppliedFitTakesTheTimeItPromised) {
  ProgramOp op = streaming(96, 20);
  const DemandFit fit = fit_of(op);
  apply(fit, op.kernel);
  AloneGpu alone(small_gpu(), program_of({op}));
  alone.run();
  EXPECT_EQ(nanoseconds(alone.duration(0)), fit.alone);
}

Program two_iterations() {
  std::vector<ProgramOp> ops;
  for (std::uint32_t iteration = 0; iteration < 2; ++iteration) {
    for (std::uint32_t i = 0; i < 3 * kAloneChunk / 2; ++i) {
      ops.push_back(streaming(16 + i % 7, i % 5 == 0 ? 0 : 3 + 0.1 * (i % 11), (1 + i % 4) << 20));
      ops.back().iteration = iteration;
    }
  }
  Program program = program_of(std::move(ops));
  program.iterations = 2;
  return program;
}

// One kernel that comes again, with these times; before, it fills the L2, which is cold only once.
Program launches_of_one_kernel(const std::vector<double>& alone_us) {
  std::vector<ProgramOp> ops{streaming(64, 0)};
  for (const double us : alone_us) ops.push_back(streaming(64, us));
  return program_of(std::move(ops));
}

struct Fitted {
  std::vector<DemandFit> fits;
  std::int64_t transactions = 0;
};
Fitted fits_of(const Program& program, std::uint32_t threads = 1) {
  Fitted fitted;
  fitted.fits = run_kernels_alone({&program, 1}, small_gpu(), threads, {}, fitted.transactions).front();
  for (std::size_t i = 0; i < fitted.fits.size(); ++i) {
    if (program.ops[i].measured_alone == Time(0)) continue;
    EXPECT_LE(calibration_error(program.ops[i], fitted.fits[i]), kCalibrationTolerance) << i;
  }
  return fitted;
}

std::set<double> distinct_cycles(const Fitted& fitted) {
  std::set<double> cycles;
  for (const DemandFit& fit : fitted.fits) {
    if (fit.extra_cycles_per_block > 0) cycles.insert(fit.extra_cycles_per_block);
  }
  return cycles;
}

TEST(RepeatedKernels, ShareADemandWhereTheirTimesDifferByNoise) {
  const Fitted fitted = fits_of(launches_of_one_kernel({50, 50.2, 49.8, 50.1, 49.7, 50.3}));
  EXPECT_EQ(distinct_cycles(fitted).size(), 1U);
}

TEST(RepeatedKernels, ShareADemandForEachOfTheTimesTheyGatherAround) {
  std::vector<double> times;
  for (int i = 0; i < 20; ++i) times.push_back(i % 3 == 0 ? 58 + 0.01 * i : 50 - 0.01 * i);
  EXPECT_EQ(distinct_cycles(fits_of(launches_of_one_kernel(times))).size(), 2U);
}

TEST(RepeatedKernels, AreHeldAgainstTheirOwnTimes) {
  std::vector<double> times;
  for (int i = 0; i < 30; ++i) times.push_back(50 * std::pow(1.005, i));  // each near the one before
  const Fitted fitted = fits_of(launches_of_one_kernel(times));           // all within the tolerance
  EXPECT_LT(distinct_cycles(fitted).size(), 15U);
}

TEST(RepeatedKernels, OfTheSameTimeDifferWhereTheL2HoldsSomethingElse) {
  // 32 KiB that the kernel before has left in the L2, or has not: memory is most of these 1.5 us.
  std::vector<ProgramOp> ops;
  for (int i = 0; i < 12; ++i) {
    if (i % 2 == 0) ops.push_back(streaming(256, 40, 1 << 28));
    ops.push_back(streaming(8, 1.5));
  }
  const Program program = program_of(ops);
  const Fitted fitted = fits_of(program);
  std::set<double> cycles;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].measured_alone == microseconds(1.5)) cycles.insert(fitted.fits[i].extra_cycles_per_block);
  }
  EXPECT_EQ(cycles.size(), 2U);
}

TEST(RepeatedKernels, ShareAcrossChunksWhateverTheNumberOfThreads) {
  std::vector<double> times;
  for (std::size_t i = 0; i < 9 * kAloneChunk; ++i) times.push_back(50 + 0.05 * static_cast<double>(i % 7));
  const Program program = launches_of_one_kernel(times);
  const Fitted one = fits_of(program, 1);
  const Fitted three = fits_of(program, 3);
  EXPECT_EQ(distinct_cycles(one).size(), 1U);
  EXPECT_EQ(one.fits, three.fits);
  EXPECT_EQ(one.transactions, three.transactions);
}

TEST(RepeatedKernels, AreRunOnceWhereTheDemandIsKnown) {
  const std::int64_t once = fits_of(launches_of_one_kernel({50})).transactions;
  std::vector<double> times(40, 50.0);
  for (std::size_t i = 0; i < times.size(); ++i) times[i] += 0.01 * static_cast<double>(i);
  EXPECT_LT(fits_of(launches_of_one_kernel(times)).transactions, once + 40 * 2 * 64 * 2048 / 128);
}

TEST(KernelsAlone, AreTheSameForAnyNumberOfThreads) {
  const Program program = two_iterations();
  std::int64_t one = 0;
  std::int64_t three = 0;
  EXPECT_EQ(run_kernels_alone({&program, 1}, small_gpu(), 1, {}, one),
            run_kernels_alone({&program, 1}, small_gpu(), 3, {}, three));
  EXPECT_EQ(one, three);
}

TEST(KernelsAlone, OfTheFirstIterationDoNotDependOnLaterOnes) {
  const Program both = two_iterations();
  Program first = both;
  first.ops.edit().resize(both.ops.size() / 2);
  first.iterations = 1;
  std::int64_t transactions = 0;
  const auto all = run_kernels_alone({&both, 1}, small_gpu(), 1, {}, transactions).front();
  const auto some = run_kernels_alone({&first, 1}, small_gpu(), 1, {}, transactions).front();
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
}

// Each reads what one twenty before it wrote, which the L2 still holds: behind the start of a chunk, too.
TEST(KernelsAlone, MeetWhatALargeL2HoldsOfLongBefore) {
  std::vector<ProgramOp> ops;
  for (std::uint64_t k = 0; k < kAloneChunk + 4; ++k) {
    KernelDemand demand = grid_of(8, 128);
    const auto region = [](std::uint64_t of) { return (1 << 20) + (of << 16); };
    demand.reads = {{region(k), 2048, 1, 0}};
    demand.writes = {{region(k + 20), 2048, 1, 0}};
    ops.push_back(kernel_op(demand));
  }
  const Program program = program_of(ops);
  std::int64_t transactions = 0;
  GpuSpec gpu = small_gpu();
  gpu.l2.bytes = 4 << 20;
  const auto fits = run_kernels_alone({&program, 1}, gpu, 1, {}, transactions).front();
  EXPECT_GT(fits[0].alone.count(), fits[40].alone.count() * 11 / 10);  // from memory
  for (std::size_t k = 21; k < ops.size(); ++k) {
    EXPECT_NEAR(to_seconds(fits[k].alone), to_seconds(fits[40].alone), 2e-2 * to_seconds(fits[40].alone)) << k;
  }
}

TEST(KernelsAlone, OfSeveralProgramsAreWhatEachFinds) {
  const std::vector<Program> programs{program_of({streaming(64, 50)}), program_of({streaming(64, 40)})};
  std::int64_t transactions = 0;
  const auto together = run_kernels_alone(programs, small_gpu(), 2, {}, transactions);
  ASSERT_EQ(together.size(), 2U);
  for (std::size_t p = 0; p < programs.size(); ++p) {
    const auto apart = run_kernels_alone({&programs[p], 1}, small_gpu(), 1, {}, transactions).front();
    ASSERT_EQ(together[p].size(), apart.size());
    for (std::size_t i = 0; i < apart.size(); ++i) {
      EXPECT_LT(calibration_error(programs[p].ops[i], together[p][i]), kCalibrationTolerance) << p << " " << i;
      EXPECT_NEAR(to_seconds(together[p][i].alone), to_seconds(apart[i].alone), 0.01 * to_seconds(apart[i].alone));
    }
  }
}

TEST(KernelsAlone, ArePassedOnceWhereAllGpusHaveTheSame) {
  std::vector<Program> programs{two_iterations(), two_iterations()};
  programs[1].ops.edit().front().start_delay = microseconds(3);  // late, but with the same kernels
  EXPECT_EQ(distinct_kernels(programs).size(), 1U);
  programs[1].ops.edit().front().measured_alone += microseconds(1);
  EXPECT_EQ(distinct_kernels(programs).size(), 2U);
}

TEST(KernelsAlone, SummaryCountsWhatWasMissed) {
  Program program = program_of({streaming(64, 50), streaming(64, 0), streaming(1024, 0.01)});
  program.ops.edit()[2].name = "the worst";
  std::int64_t transactions = 0;
  const CalibrationSummary summary =
      summarise({&program, 1}, run_kernels_alone({&program, 1}, small_gpu(), 1, {}, transactions));
  EXPECT_EQ(summary.calibrated, 2U);
  EXPECT_EQ(summary.uncalibrated, 1U);
  EXPECT_EQ(summary.missed, 1U);
  EXPECT_EQ(summary.missed_twice, 1U);
  EXPECT_EQ(summary.worst, "the worst");
}

TEST(KernelsAlone, PassOnWhatIsWrongWithAKernel) {
  Program program = program_of({streaming(4, 5)});
  program.ops.edit().front().kernel.shape.registers_per_thread = 1 << 20;
  std::int64_t transactions = 0;
  EXPECT_THROW(static_cast<void>(run_kernels_alone({&program, 1}, small_gpu(), 2, {}, transactions)),
               std::runtime_error);
}

// What was fitted on another GPU stays as it is.
TEST(Calibration, AFitThatAddsNothingChangesNothing) {
  KernelDemand demand;
  demand.flops[0] = 100;
  apply({.extra_cycles_per_block = 40, .extra_waits = true, .memory_scale = 0.5, .flops_scale = 0.25, .alone = {}},
        demand);
  const KernelDemand fitted = demand;
  apply({}, demand);
  EXPECT_EQ(demand.extra_cycles_per_block, 40);
  EXPECT_TRUE(demand.extra_waits);
  EXPECT_EQ(demand.memory_scale, fitted.memory_scale);
  EXPECT_EQ(demand.flops, fitted.flops);
}

}  // namespace
}  // namespace weft
