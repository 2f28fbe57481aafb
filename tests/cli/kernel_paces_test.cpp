// Kernels and shifts that only take their time: how long that is, and what is made of it.
#include "cli/sampled/kernel_paces.h"

#include <gtest/gtest.h>

#include <memory>

#include "cli/config/run_config.h"
#include "cli/config/system_of.h"
#include "cli/run/scripts.h"
#include "cli/sampled/observed_regime.h"
#include "cli/sampled/regime_lab.h"
#include "cli/sampled/shift_flows.h"
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
  const std::unique_ptr<Machine> built = folded.machine(config.system, works);
  Machine& machine = *built;
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

struct Both {
  Regime sampled;
  std::unique_ptr<Machine> detail;
  std::int64_t transactions_sampled = 0, transactions_in_detail = 0;
};

Both run_both(const RunConfig& config, const Program& program) {
  const std::vector<Program> programs(config.gpus, program);
  const auto ops = static_cast<std::uint32_t>(program.ops.size());
  const Scripts scripts(config, programs);
  const HostState state{OpId{0}, ops, std::vector<SubCycle>(ops, 0), {}, 0};
  std::vector<GpuWork> work;
  for (std::size_t g = 0; g < config.gpus; ++g) work.push_back(scripts.work(g));
  for (GpuWork& one : work) one.from = &state;
  Both both;
  both.detail = std::make_unique<Machine>(config.system, work, scripts.multicast_groups());
  both.detail->run_until_asleep(1);
  RegimeLab lab(config, programs, &scripts);
  both.sampled = lab.company(state, false);
  EXPECT_TRUE(lab.timed_kernels());
  both.transactions_sampled = lab.memory_transactions();
  for (std::size_t g = 0; g < config.gpus; ++g) {
    both.transactions_in_detail += both.detail->gpu(g).statistics().memory_transactions;
  }
  return both;
}

// Of every `period`th operation from `first` on, what all take, by what they take in detail on the first GPU; or of the
// mean of all GPUs.
double share_of_detail(const Both& both, std::uint32_t first, std::uint32_t period, bool of_mean) {
  double sampled = 0;
  double detail = 0;
  for (std::uint32_t i = first; i < both.sampled.operations.size(); i += period) {
    const Regime::Operation& op = both.sampled.operations[i];
    const OpTimes& times = both.detail->gpu(0).times()[i];
    sampled += static_cast<double>(op.duration - (of_mean ? op.early : 0));
    detail += static_cast<double>(of_mean ? mean_duration(*both.detail, i) : times.end - times.start);
  }
  return sampled / detail;
}

TEST(KernelPaces, ALongRingIsAsInDetail) {
  constexpr std::uint32_t kSteps = 6;
  constexpr std::uint32_t kGpus = 4;
  const Both both = run_both(two_nodes(kGpus / 2), ring(kSteps, 16 << 20, 8 * kUnits, kGpus));
  ASSERT_EQ(both.sampled.operations.size(), 2U * kSteps);
  EXPECT_NEAR(share_of_detail(both, 1, 2, true), 1, 0.03);
  EXPECT_NEAR(share_of_detail(both, 0, 2, false), 1, 0.05);
  EXPECT_LT(static_cast<double>(both.transactions_sampled), 0.6 * static_cast<double>(both.transactions_in_detail));
  // What kernels and shifts do is counted, though none was simulated among them.
  const GpuStatistics& did = both.detail->gpu(0).statistics();
  EXPECT_NEAR(both.sampled.unit_seconds_compute / did.unit_seconds_compute, 1, 0.1);
  EXPECT_NEAR(both.sampled.unit_seconds_communication / did.unit_seconds_communication, 1, 0.1);
  std::int64_t moved = 0;
  for (const LinkLoad& link : both.sampled.links) moved += link.payload_bytes;
  std::int64_t moved_in_detail = 0;
  for (const Machine::Link& link : both.detail->links()) moved_in_detail += link.statistics->payload_bytes;
  EXPECT_NEAR(static_cast<double>(moved) * kGpus / both.sampled.gpus / static_cast<double>(moved_in_detail), 1, 0.02);
}

// As backward: gradients go on beside the kernel, which lasts longer, and keys behind it.
Program ring_of_two(std::uint32_t steps, std::int64_t keys, std::uint32_t blocks, std::uint32_t gpus) {
  Program program;
  program.priorities = {0, 1};
  for (std::uint32_t i = 0; i < steps; ++i) {
    ProgramOp gradients = shift_of(2 * keys, gpus);
    ProgramOp kernel = kernel_of(blocks);
    ProgramOp moved = shift_of(keys, gpus);
    gradients.collective.sequence = 2 * i;
    moved.collective.sequence = 2 * i + 1;
    for (std::uint64_t* at : {&gradients.collective.send_address, &gradients.collective.receive_address})
      *at += 1 << 30;
    if (i > 0) {
      gradients.waits = {OpId{3 * i - 2}};
      kernel.waits = {OpId{3 * i - 1}};
    }
    moved.waits = {OpId{3 * i + 1}};
    for (const ProgramOp& op : {gradients, kernel, moved}) program.ops.push_back(op);
  }
  return program;
}

// Who sends to the other node is ahead of who receives: a message is ready, and yet takes as long as the NIC needs.
TEST(KernelPaces, AReceiverThatComesLateWaitsForAllOfItsMessage) {
  const Both both = run_both(two_nodes(2), ring_of_two(7, 8 << 20, 28 * kUnits, 4));
  ASSERT_EQ(both.sampled.operations.size(), 21U);
  EXPECT_NEAR(share_of_detail(both, 0, 3, false), 1, 0.05);
  EXPECT_NEAR(share_of_detail(both, 1, 3, true), 1, 0.03);
  EXPECT_NEAR(share_of_detail(both, 2, 3, false), 1, 0.07);
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
  EXPECT_EQ(way.staged, 20);
  EXPECT_EQ(way.ahead, 0);
}

TEST(ShiftFlows, ANicHasAMessageReadyWhoseSenderIsThroughSooner) {
  const Transfer way = transfer_of(two_and_two(), 1, 2, true);
  EXPECT_EQ(way.takes, 100);
  EXPECT_EQ(way.staged, 90);
  EXPECT_EQ(way.sends, 20);
  EXPECT_EQ(way.ahead, 145);
}

}  // namespace
}  // namespace weft
