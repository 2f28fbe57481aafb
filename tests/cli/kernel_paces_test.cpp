// Kernels and shifts that only take their time: how long that is, and what is made of it.
#include "cli/sampled/kernel_paces.h"

#include <gtest/gtest.h>

#include "cli/run_config.h"
#include "cli/sampled/observed_regime.h"
#include "cli/sampled/regime_lab.h"
#include "cli/sampled/shift_flows.h"
#include "cli/scripts.h"
#include "cli/system_of.h"
#include "sim/error.h"
#include "workloads/address_plan.h"

namespace weft {
namespace {

constexpr std::uint32_t kUnits = 24;
constexpr std::uint32_t kChannels = 8;

RunConfig two_nodes(std::uint32_t of = 1) {
  const Json cluster{{"gpus_per_node", of}, {"nics_per_node", of}};
  const Json system{{"base", "hgx-h100-cluster"},
                    {"gpu", {{"compute_units", kUnits}}},
                    {"max_gpus", 2 * of},
                    {"network", {{"cluster", cluster}}}};
  RunConfig config = read_run_config(
      Json{{"system", system}, {"gpus", 2 * of}, {"workload", {{"collective", "all_reduce"}, {"bytes", 4096}}}},
      "test.json");
  config.collective.channels = kChannels;
  return config;
}

ProgramOp shift_of(std::int64_t bytes, std::uint32_t gpus) {
  ProgramOp op;
  op.kind = ProgramOpKind::collective;
  op.stream = StreamId{1};
  op.collective = {.kind = CollectiveKind::shift,
                   .bytes = Bytes(bytes),
                   .group = GpuGroup::first(gpus),
                   .send_address = kFirstAddress,
                   .receive_address = kFirstAddress + static_cast<std::uint64_t>(bytes)};
  return op;
}

// Blocks of which one fills a unit for 10 us.
ProgramOp kernel_of(std::uint32_t blocks) {
  ProgramOp op;
  op.kernel.shape.grid = {blocks, 1, 1};
  op.kernel.shape.block = {1024, 1, 1};
  op.kernel.shape.registers_per_thread = 64;
  op.kernel.iterations = 4;
  op.kernel.extra_cycles_per_block = 10 * 1830;
  op.stream = StreamId{0};
  return op;
}

// In streams of their own.
std::vector<Program> programs_of(std::int64_t bytes, std::uint32_t blocks) {
  Program program;
  program.priorities = {0, 1};
  program.ops.push_back(shift_of(bytes, 2));
  program.ops.push_back(kernel_of(blocks));
  return std::vector<Program>(2, program);
}

PaceBeside pace_of(std::int64_t bytes, std::uint32_t blocks) {
  const RunConfig config = two_nodes();
  const std::vector<Program> programs = programs_of(bytes, blocks);
  const FoldedMachine folded(config, programs);
  EXPECT_EQ(folded.why_not(), "");
  const GpuSpec& gpu = config.system.gpu;
  return pace_beside(config, folded, programs.front(), OpId{1}, OpId{0}, L2Cache(gpu.l2, gpu.hbm, gpu.clock));
}

TEST(PaceBeside, UnitsThatACollectiveHoldsAreMissing) {
  constexpr std::uint32_t kLeft = kUnits - kChannels;
  EXPECT_NEAR(pace_of(64 << 20, kLeft * kUnits / 2).times_longer, 1.5, 0.02);  // whole waves either way
  EXPECT_NEAR(pace_of(64 << 20, kLeft).times_longer, 1, 0.02);                 // finds room
}

TEST(PaceBeside, ALongKernelIsLookedAtForAMillisecond) {
  const PaceBeside found = pace_of(256 << 20, 24 * 1000);
  EXPECT_NEAR(found.times_longer, 1.5, 0.02);
  EXPECT_NEAR(to_seconds(found.simulated), 1e-3, 20e-6);
  EXPECT_TRUE(found.ledger.displaced);
}

TEST(PaceBeside, OnlyWhileTheCollectiveIsThere) {
  const PaceBeside found = pace_of(1 << 20, 24 * 100);
  EXPECT_GT(found.times_longer, 1.2);
  EXPECT_LT(to_seconds(found.simulated), 200e-6);
}

TEST(KernelPaces, AKernelIsLongerByWhatItHasCompanyFor) {
  const RunConfig config = two_nodes();
  const std::vector<Program> programs = programs_of(4 << 20, 16);
  const FoldedMachine folded(config, programs);
  const HostState start{OpId{0}, 2, {0, 0}, std::nullopt, 0};
  std::vector<GpuWork> works;
  for (std::uint32_t g = 0; g < folded.standing(); ++g) {
    works.push_back(folded.work(g));
    works.back().from = &start;
    works.back().kernels_timed = true;
  }
  Machine machine(config.system, works, folded.multicast_groups(), CarriedValues(), {}, 1, config.gpus);
  const ClockDomain& clock = machine.gpu(0).clock();
  const SubCycle alone = clock.to_subcycles(microseconds(300));
  PaceBeside beside;
  beside.times_longer = 3;
  beside.ledger.stall = 7;
  KernelPaces paces(
      machine, programs.front(),
      {.alone = [&](OpId) { return alone; }, .beside = [&](OpId, OpId) -> const PaceBeside& { return beside; }});
  machine.run_until_quiet({}, 1, [&](Time now) { paces.look(now); });
  const OpTimes& shift = machine.gpu(0).times()[0];
  const OpTimes& kernel = machine.gpu(0).times()[1];
  const SubCycle company = shift.end - kernel.start;
  ASSERT_GT(company, clock.to_subcycles(microseconds(50)));
  // Of the company's time, a third counts.
  EXPECT_NEAR(to_seconds(clock.to_time(kernel.end - kernel.start)),
              to_seconds(clock.to_time(company + alone - company / 3)), 3e-6);
  EXPECT_EQ(paces.ledger(OpId{1}).stall, 7);
}

// Steps of a shift and a kernel, which waits for the shift before; the next shift for both.
Program ring(std::uint32_t steps, std::int64_t bytes, std::uint32_t blocks, std::uint32_t gpus) {
  Program program;
  program.priorities = {0, 1};
  for (std::uint32_t i = 0; i < steps; ++i) {
    ProgramOp shift = shift_of(bytes, gpus);
    shift.collective.sequence = i;
    if (i % 2 == 1) std::swap(shift.collective.send_address, shift.collective.receive_address);
    ProgramOp kernel = kernel_of(blocks);
    if (i > 0) {
      shift.waits = {OpId{2 * i - 1}};
      kernel.waits = {OpId{2 * i - 2}};
    }
    program.ops.push_back(shift);
    program.ops.push_back(kernel);
  }
  return program;
}

TEST(KernelPaces, ALongRingInCoarserLinesIsAsInDetail) {
  constexpr std::uint32_t kSteps = 6;
  constexpr std::uint32_t kGpus = 4;
  const RunConfig config = two_nodes(kGpus / 2);
  const std::vector<Program> programs(kGpus, ring(kSteps, 16 << 20, 8 * kUnits, kGpus));
  const Scripts scripts(config, programs);
  const HostState state{OpId{0}, 2 * kSteps, std::vector<SubCycle>(std::size_t{2} * kSteps, 0), {}, 0};
  std::vector<GpuWork> work;
  for (std::size_t g = 0; g < kGpus; ++g) work.push_back(scripts.work(g));
  for (GpuWork& one : work) one.from = &state;
  Machine machine(config.system, work, scripts.multicast_groups());
  machine.run_until_asleep(1);
  RegimeLab lab(config, programs, &scripts);
  const Regime regime = lab.company(state, false);
  ASSERT_TRUE(lab.timed_kernels());
  ASSERT_EQ(regime.operations.size(), 2U * kSteps);
  double kernels = 0;
  double shifts = 0;
  double kernels_in_detail = 0;
  double shifts_in_detail = 0;
  for (std::uint32_t i = 0; i < 2 * kSteps; ++i) {
    const Regime::Operation& op = regime.operations[i];
    (i % 2 == 0 ? shifts : kernels) += static_cast<double>(op.duration - (i % 2 == 0 ? 0 : op.early));
    const OpTimes& first = machine.gpu(0).times()[i];
    (i % 2 == 0 ? shifts_in_detail : kernels_in_detail) +=
        static_cast<double>(i % 2 == 0 ? first.end - first.start : mean_duration(machine, i));
  }
  EXPECT_NEAR(kernels / kernels_in_detail, 1, 0.03);
  EXPECT_NEAR(shifts / shifts_in_detail, 1, 0.05);
  std::int64_t transactions = 0;
  for (std::size_t g = 0; g < kGpus; ++g) transactions += machine.gpu(g).statistics().memory_transactions;
  EXPECT_LT(static_cast<double>(lab.memory_transactions()), 0.6 * static_cast<double>(transactions));
  // What kernels do is counted, though none was simulated among them.
  EXPECT_NEAR(regime.unit_seconds_compute / machine.gpu(0).statistics().unit_seconds_compute, 1, 0.1);
  EXPECT_NEAR(regime.unit_seconds_communication / machine.gpu(0).statistics().unit_seconds_communication, 1, 0.1);
  std::int64_t moved = 0;
  for (const LinkLoad& link : regime.links) moved += link.payload_bytes;
  std::int64_t moved_in_detail = 0;
  for (const Machine::Link& link : machine.links()) moved_in_detail += link.statistics->payload_bytes;
  EXPECT_NEAR(static_cast<double>(moved) * kGpus / regime.gpus / static_cast<double>(moved_in_detail), 1, 0.02);
}

// Both GPUs of a node, from where a shift begins: what goes by the NIC comes at 100, between them at 20.
ShiftByItself two_and_two() {
  ShiftByItself shift;
  shift.first = {100, 20, 100, 25};
  shift.both = {190, 45, 190, 50};
  shift.shifts = 2;
  return shift;
}

TEST(ShiftFlows, ATransferWithinANodeTakesWhatTheOneTakesThatWaitsForNoNic) {
  const Transfer way = transfer_of(two_and_two(), 0, 1, false);
  EXPECT_EQ(way.takes, 20);
  EXPECT_EQ(way.follows, 0);
  EXPECT_EQ(way.ahead, 0);
}

TEST(ShiftFlows, ANicGoesOnBehindTheMessageBeforeAndItsSenderIsThroughSooner) {
  const Transfer way = transfer_of(two_and_two(), 1, 2, true);
  EXPECT_EQ(way.takes, 100);
  EXPECT_EQ(way.follows, 90);
  EXPECT_EQ(way.quick, 20);
  EXPECT_EQ(way.sends, 20);
  EXPECT_EQ(way.ahead, 145);
}

}  // namespace
}  // namespace weft
