// Power, and the clock that it leaves, against formulas.
#include "gpu_model/power_governor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

constexpr double kIdle = 20, kUnit = 5, kTensor = 160;  // W; busy: 20 + 4 * 5 + 160
constexpr double kLowestVoltage = 0.6;

GpuSpec powered_gpu(double limit_W) {
  GpuSpec gpu = small_gpu();
  PowerSpec power;
  power.limit_W = limit_W;
  power.idle_W = kIdle;
  power.unit_W = kUnit;
  power.slots_W[static_cast<std::size_t>(Slot::tensor)] = kTensor;
  power.lowest_clock = megahertz(200);
  power.clock_step = megahertz(10);
  power.lowest_voltage = kLowestVoltage;
  power.window = microseconds(50);
  gpu.power = power;
  return gpu;
}

// All tensor pipes busy for so many microseconds at the full clock, but for how blocks begin and end.
KernelDemand computing(double us) {
  KernelDemand demand = grid_of(4 * 8);
  demand.iterations = static_cast<std::uint32_t>(us / 4);  // rounds of half a microsecond: a window has many
  demand.flops[static_cast<std::size_t>(Pipe::tensor_fp16)] = us * 1000 * 4 * 512;
  return demand;
}

// 20 MB each way through an L2 of 64 KiB.
KernelDemand streaming() {
  KernelDemand demand = grid_of(1280);
  demand.iterations = 4;
  demand.reads = {{.base = 1 << 20, .bytes_per_block = 1 << 14}};
  return demand;
}

PowerUse use_of(const Gpu& gpu) { return *gpu.power_use(gpu.clock().to_time(gpu.times().back().end)); }

double voltage(double share) { return kLowestVoltage + (1 - kLowestVoltage) * (share - 0.2) / 0.8; }
double busy_power(double share) { return kIdle + (4 * kUnit + kTensor) * share * voltage(share) * voltage(share); }
// The highest step at which a GPU that computes stays within the limit.
double steady_share(double limit_W) {
  double share = 1;
  while (share > 0.2 && busy_power(share) > limit_W) share -= 0.01;
  return share;
}

TEST(Power, AStretchIsByTheShareOfTheClockHoweverLongTheTime) {
  EXPECT_EQ(Stretch()(12345), 12345);
  EXPECT_EQ(Stretch(0.5)(12345), 24690);
  constexpr SubCycle kLong = cycles(std::int64_t{1} << 40);  // 18 minutes at 1 GHz
  EXPECT_EQ(Stretch(1.0 / 64)(kLong), 64 * kLong);
}

TEST(Power, ChangesNoTimeWithinTheLimit) {
  for (const KernelDemand& demand : {computing(200), streaming()}) {
    AloneGpu without(small_gpu(), program_of({kernel_op(demand)}));
    AloneGpu with(powered_gpu(1000), program_of({kernel_op(demand)}));
    EXPECT_FALSE(without.run().power_use(microseconds(1)));
    const Gpu& gpu = with.run();
    EXPECT_EQ(with.duration(0), without.duration(0));
    EXPECT_EQ(use_of(gpu).lowest_clock_Hz, 1e9);
    EXPECT_NEAR(use_of(gpu).mean_clock_Hz, 1e9, 1);
  }
}

TEST(Power, EnergyIsThatOfWhatWasDone) {
  AloneGpu computes(powered_gpu(1000), program_of({kernel_op(computing(200))}));
  const Gpu& gpu = computes.run();
  const double seconds = to_seconds(gpu.clock().to_time(gpu.times()[0].end));
  const double held = gpu.statistics().unit_seconds_compute;
  EXPECT_NEAR(held, 4 * 200e-6, 4 * 2e-6);
  const double expected = kIdle * seconds + kUnit * held + kTensor * 200e-6;
  EXPECT_NEAR(use_of(gpu).joules, expected, expected * 1e-3);
  EXPECT_NEAR(use_of(gpu).mean_W, expected / seconds, expected / seconds * 0.01);
  EXPECT_NEAR(use_of(gpu).highest_W, 200, 1);

  GpuSpec spec = powered_gpu(1000);
  spec.power->unit_W = 0;
  spec.power->l2_pJ_per_byte = 100;
  spec.power->hbm_pJ_per_byte = 1000;
  AloneGpu streams(spec, program_of({kernel_op(streaming())}));
  const Gpu& memory = streams.run();
  const double bytes = 1280 << 14;
  const double rest = kIdle * to_seconds(memory.clock().to_time(memory.times()[0].end));
  EXPECT_NEAR(use_of(memory).joules - rest, bytes * 1100e-12, bytes * 1100e-12 * 0.01);
}

TEST(Power, AComputingKernelSettlesAtTheClockThatTheLimitLeaves) {
  for (const double limit : {150.0, 100.0, 60.0}) {
    const double share = steady_share(limit);
    AloneGpu alone(powered_gpu(limit), program_of({kernel_op(computing(2000))}));
    const Gpu& gpu = alone.run();
    const PowerUse use = use_of(gpu);
    ASSERT_GT(use.window_W.size(), 40U);
    const auto mean = [](const std::vector<double>& windows) {
      return std::accumulate(windows.begin() + 20, windows.begin() + 40, 0.0) / 20;
    };
    EXPECT_NEAR(mean(use.window_Hz), share * 1e9, 1e7) << limit;
    EXPECT_NEAR(mean(use.window_W), busy_power(share), limit * 0.02) << limit;
    EXPECT_NEAR(alone.duration(0), 2000e3 / share, 2000e3 / share * 0.02) << limit;
    // Less energy than at the full clock, though it takes longer: the voltage is lower.
    EXPECT_LT(use.joules - kIdle * alone.duration(0) * 1e-9, 180 * 2000e-6);
    EXPECT_NEAR(gpu.ledger(OpId{0}).slow_clock / static_cast<double>(kCycle), alone.duration(0) - 2000e3,
                alone.duration(0) * 0.03);
  }
}

TEST(Power, AStreamingKernelHardlyFeelsTheClock) {
  GpuSpec spec = powered_gpu(1000);
  spec.hbm.bandwidth = gigabytes_per_second(32);
  spec.power->unit_W = 0;
  spec.power->hbm_pJ_per_byte = 1000;
  spec.power->l2_pJ_per_byte = 2000;
  AloneGpu fast(spec, program_of({kernel_op(streaming())}));
  fast.run();
  spec.power->limit_W = 90;
  AloneGpu slow(spec, program_of({kernel_op(streaming())}));
  const PowerUse use = use_of(slow.run());
  EXPECT_LT(use.window_Hz[8], 0.9e9);
  EXPECT_NEAR(use.window_W[8], 90, 2);  // reached, though the work does not slow with the clock
  EXPECT_NEAR(slow.duration(0) / fast.duration(0), 1, 0.02);
}

TEST(Power, TheFullClockIsBackAfterAPause) {
  ProgramOp wait = kernel_op(computing(500));
  wait.host_delay = microseconds(2000);  // the host comes to it long after the first has ended
  AloneGpu alone(powered_gpu(100), program_of({kernel_op(computing(500)), wait}));
  const PowerUse use = use_of(alone.run());
  EXPECT_EQ(alone.duration(0), alone.duration(1));
  EXPECT_LT(use.lowest_clock_Hz, 0.9e9);
  EXPECT_GT(use.mean_clock_Hz, use.lowest_clock_Hz);
}

TEST(Power, NoClockIsBelowTheLowest) {
  PowerGovernor governor(*powered_gpu(21).power, powered_gpu(21));
  PoweredWork done;
  for (int window = 1; window < 50; ++window) {
    done.unit_s += 4 * 10e-6;
    done.slot_s[static_cast<std::size_t>(Slot::tensor)] += 4 * 4 * 10e-6;
    governor.end_window(done, 0);
    EXPECT_GE(governor.clock_share(), 0.2);
  }
  EXPECT_NEAR(governor.clock_share(), 0.2, 1e-12);
  governor.end_window(done, 3);
  EXPECT_EQ(governor.clock_share(), 1);
  EXPECT_EQ(governor.windows().size(), 49U + 1 + 3);
}

}  // namespace
}  // namespace weft
