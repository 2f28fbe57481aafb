// Who moves a collective: what it costs in units, HBM and link bytes, and what a kernel beside it feels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <type_traits>

#include "cli/gather.h"
#include "cli/machine.h"
#include "cli/programs.h"
#include "cli/run_config.h"
#include "sim/error.h"

namespace weft {
namespace {

constexpr std::uint32_t kGpus = 4;
constexpr std::uint32_t kUnits = 32;
constexpr std::int64_t kSize = 4 << 20;
constexpr std::int64_t kFlagBytes = 16;

// An all-reduce on GPUs with few units and an L2 far smaller than the message, so that what moves through memory shows
// as HBM bytes.
RunConfig all_reduce(const std::string& mover, const std::string& algorithm = "auto", bool registered = false) {
  const Json document{
      {"system", "hgx-h100"},
      {"gpus", kGpus},
      {"workload", {{"collective", "all_reduce"}, {"bytes", kSize}}},
      {"all_reduce", {{"algorithm", algorithm}, {"mover", mover}, {"protocol", "Simple"}, {"registered", registered}}}};
  RunConfig config = read_run_config(document, "test.json");
  config.system.gpu.compute_units = kUnits;
  // As little as can be: what is written soon goes to memory.
  config.system.gpu.hbm.bytes = std::int64_t{4} << 30;
  config.system.gpu.l2.bytes = std::int64_t{config.system.gpu.l2.slices} * config.system.gpu.l2.ways * 128;
  return config;
}

// What a run showed on GPU 0.
struct Measured {
  double sent_bytes = 0;
  double hbm_share = 0;  // HBM bytes of the collective, as a multiple of the message
  double held_units_s = 0;
  double kernel_us = 0;
  KernelLedger kernel;
  std::uint32_t channels = 0;
  std::int64_t end = 0;
};

// `beside`: a kernel of every GPU on a stream of its own; `late`: how much later the last GPU's host comes.
Measured measure_here(const RunConfig& config, const std::vector<KernelDemand>& beside, Time late) {
  std::vector<std::string> notes;
  std::vector<Program> programs = make_programs(config, notes);
  for (const KernelDemand& demand : beside) {
    for (Program& program : programs) {
      program.priorities.push_back(0);
      ProgramOp op;
      op.name = "kernel";
      op.stream = StreamId{static_cast<std::uint32_t>(program.priorities.size() - 1)};
      op.kernel = demand;
      if (late > Time(0)) op.host_delay = microseconds(60);  // what can move without the late one has moved
      program.ops.push_back(op);
    }
  }
  programs.back().ops.front().host_delay = late;
  const Scripts scripts(config, programs);
  std::vector<GpuWork> work;
  for (std::size_t g = 0; g < programs.size(); ++g) work.push_back(scripts.work(g));
  Machine machine(config.system, work, scripts.multicast_groups());
  WEFT_CHECK(machine.run(1, {}), "the run came to its end");
  const Gpu& gpu = machine.gpu(0);
  Measured measured;
  std::int64_t sent = 0;
  for (const Machine::Link& link : machine.links()) {
    if (link.name.rfind("gpu0->", 0) == 0) sent += link.statistics->payload_bytes;
  }
  measured.sent_bytes = static_cast<double>(sent);
  const std::int64_t bytes = gpu.statistics().communication_fetched_bytes + gpu.l2().communication_write_back_bytes();
  measured.hbm_share = static_cast<double>(bytes) / kSize;
  measured.held_units_s = gpu.statistics().unit_seconds_communication;
  if (gpu.times().size() > 1) {
    measured.kernel_us = to_microseconds(gpu.clock().to_time(gpu.times()[1].end - gpu.times()[1].start));
    measured.kernel = gpu.ledger(OpId{1});
  }
  measured.channels = scripts.collectives().front().plan.channels;
  measured.end = machine.end().count();
  return measured;
}

// In a child process: an engine runs once a process.
Measured measure(const RunConfig& config, const std::vector<KernelDemand>& beside = {}, Time late = Time(0)) {
  static_assert(std::is_trivially_copyable_v<Measured>);
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Measured measured = measure_here(config, beside, late);
    const bool written = write(ends[1], &measured, sizeof measured) == ssize_t{sizeof measured};
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Measured measured;
  EXPECT_EQ(read(ends[0], &measured, sizeof measured), ssize_t{sizeof measured});
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return measured;
}

constexpr double kRingShare = 2.0 * (kGpus - 1) / kGpus;  // of the message, sent by a GPU
constexpr double kCached = 0.05;                          // of the message, still in L2 at the end

TEST(MoverFormula, AnEndpointEngineReadsAndWritesTheMessageOnce) {
  const Measured ran = measure(all_reduce("endpoint_engine"));
  EXPECT_NEAR(ran.hbm_share, 2, kCached);
  EXPECT_NEAR(ran.sent_bytes, kRingShare * kSize, 0.01 * kSize);
  EXPECT_EQ(ran.held_units_s, 0);
}

TEST(MoverFormula, NearMemoryReadsEachChunkBeforeItIsAddedTo) {
  const Measured ran = measure(all_reduce("near_memory"));
  // A chunk is read by the rank that sends it on: N - 1 partial sums and the first of the complete ones from HBM; the
  // others were just written to L2, which spares what it still holds. N - 1 chunks come as updates, N - 1 as writes.
  EXPECT_GE(ran.hbm_share, 1 + kRingShare - kCached);
  EXPECT_LE(ran.hbm_share, 2 * kRingShare);
  EXPECT_EQ(ran.sent_bytes, kRingShare * kSize + static_cast<double>(kFlagBytes * ran.channels));
  EXPECT_EQ(ran.held_units_s, 0);
}

TEST(MoverFormula, CopyEnginesSendEachPartDirectlyAndUnitsOnlyAdd) {
  const Measured ran = measure(all_reduce("copy_engine"));
  EXPECT_NEAR(ran.sent_bytes, kRingShare * kSize, 0.01 * kSize);
  // At most: sent, written to the peers' memory, added up, the sum sent and written; L2 spares some reads.
  EXPECT_LE(ran.hbm_share, 1 + 1.0 / kGpus + 2 * kRingShare);
  EXPECT_GE(ran.hbm_share, 2.5);
  const Measured blocks = measure(all_reduce("compute_units", "ring"));
  EXPECT_GT(ran.held_units_s, 0);
  EXPECT_LT(ran.held_units_s, 0.3 * blocks.held_units_s);
}

TEST(MoverFormula, RegisteredBuffersNeedNoStagingInTheSwitch) {
  const Measured staged = measure(all_reduce("compute_units", "in_switch"));
  const Measured registered = measure(all_reduce("compute_units", "in_switch", true));
  const Measured engine = measure(all_reduce("endpoint_engine", "in_switch"));
  EXPECT_NEAR(registered.hbm_share, 2, kCached);
  EXPECT_NEAR(engine.hbm_share, 2, kCached);
  EXPECT_GT(staged.hbm_share, 4);
  EXPECT_LE(staged.hbm_share, 6 + kCached);
  EXPECT_LT(registered.held_units_s, 0.5 * staged.held_units_s);
  EXPECT_EQ(engine.held_units_s, 0);
  const auto flags = static_cast<double>(2 * registered.channels * kFlagBytes);
  EXPECT_EQ(registered.sent_bytes, (1 + 1.0 / kGpus) * kSize + flags);
}

TEST(MoverFormula, RegisteredRingsWriteCompleteChunksToTheirPlace) {
  const Measured staged = measure(all_reduce("compute_units", "ring"));
  const Measured registered = measure(all_reduce("compute_units", "ring", true));
  EXPECT_EQ(registered.sent_bytes, staged.sent_bytes);
  EXPECT_LT(registered.hbm_share, staged.hbm_share - 0.25);
}

TEST(Mover, RegisteredRingsOfReceiversThatReadEnd) {
  RunConfig config = all_reduce("compute_units", "ring", true);
  config.system.collectives.ring.receiver_reads = true;
  const Measured ran = measure(config);
  EXPECT_NEAR(ran.sent_bytes, kRingShare * kSize, 0.01 * kSize);
}

TEST(Mover, EnginesGatherAndBroadcastWithoutAnyUnit) {
  for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::broadcast, CollectiveKind::all_to_all}) {
    RunConfig config = all_reduce("copy_engine");
    config.workload = CollectiveWorkload{kind, Bytes(1 << 20)};
    const Measured ran = measure(config);
    const double parts = kind == CollectiveKind::all_to_all ? 1.0 / kGpus : 1;
    EXPECT_NEAR(ran.sent_bytes, (kGpus - 1) * parts * (1 << 20), 1000) << to_string(kind);
    EXPECT_EQ(ran.held_units_s, 0);
  }
}

TEST(Mover, RefusesWhatAnEngineCannotDo) {
  const auto error = [](const RunConfig& config) {
    std::vector<std::string> notes;
    try {
      Scripts(config, make_programs(config, notes));
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  RunConfig gather = all_reduce("near_memory");
  gather.workload = CollectiveWorkload{CollectiveKind::all_gather, Bytes(1 << 20)};
  EXPECT_THAT(error(gather), testing::HasSubstr("expected an all_reduce"));
  RunConfig none = all_reduce("endpoint_engine");
  none.system.gpu.engines.reset();
  EXPECT_THAT(error(none), testing::HasSubstr("gpu.engines"));
  EXPECT_THAT(error(all_reduce("copy_engine", "in_switch")), testing::HasSubstr("in_switch"));
}

// Blocks of which one fills a unit, busy for `us` without touching memory.
KernelDemand unit_blocks(std::uint32_t blocks, double us) {
  KernelDemand demand;
  demand.shape.grid = {blocks, 1, 1};
  demand.shape.block = {1024, 1, 1};
  demand.shape.registers_per_thread = 64;
  demand.extra_cycles_per_block = us * 1830;
  return demand;
}

TEST(Mover, AKernelAsWideAsTheGpuGetsASecondWaveOnlyBesideBlocksThatHoldUnits) {
  const double alone = 10;
  RunConfig config = all_reduce("compute_units", "ring");
  config.collective.channels = 8;
  EXPECT_NEAR(measure(config, {unit_blocks(kUnits, alone)}).kernel_us, 2 * alone, 0.2);
  EXPECT_NEAR(measure(config, {unit_blocks(kUnits - 8, alone)}).kernel_us, alone, 0.2);
  for (const char* mover : {"copy_engine", "endpoint_engine", "near_memory"}) {
    RunConfig engines = all_reduce(mover);
    engines.system.gpu.engines->copy_engine.reduce_blocks = 4;
    const double with_engine = measure(engines, {unit_blocks(kUnits, alone)}).kernel_us;
    EXPECT_NEAR(with_engine, alone, 0.2) << mover;
  }
}

// Streams from memory on the units that a collective of 8 channels leaves free.
KernelDemand streaming() {
  KernelDemand demand = unit_blocks(kUnits - 8, 0);
  demand.reads = {{.base = 1 << 28, .bytes_per_block = 1 << 20}};
  demand.iterations = 64;
  demand.stages = 8;
  return demand;
}

TEST(Mover, ACollectiveThatWaitsTakesUnitsAndOneThatMovesTakesMemoryToo) {
  RunConfig config = all_reduce("compute_units", "ring");
  config.collective.channels = 8;
  config.system.gpu.hbm.bandwidth = gigabytes_per_second(600);
  const Time late = microseconds(400);
  const std::vector<KernelDemand> kernels{streaming()};
  RunConfig quiet = config;
  quiet.workload = CollectiveWorkload{CollectiveKind::all_reduce, Bytes(128)};
  quiet.collective.mover = Mover::endpoint_engine;
  const Measured alone = measure(quiet, kernels);
  const Measured waits = measure(config, kernels, late);
  const Measured moves = measure(config, kernels);
  ASSERT_LT(alone.kernel_us, 100);  // it has ended when the late one comes
  EXPECT_NEAR(waits.kernel_us / alone.kernel_us, 1, 0.01);
  EXPECT_GT(moves.kernel_us / alone.kernel_us, 1.05);
  const double added = moves.kernel_us - alone.kernel_us;
  const SlowdownByCause causes = attribute(moves.kernel, ClockDomain(config.system.gpu.clock), added);
  EXPECT_GT(causes.hbm + causes.cache, 0.9 * added);
  // As wide as the GPU, the waiting collective costs a wave of units, and memory nothing.
  KernelDemand wide = unit_blocks(kUnits, 10);
  const Measured wide_alone = measure(quiet, {wide});
  const Measured wide_waits = measure(config, {wide}, late);
  const double wave = wide_waits.kernel_us - wide_alone.kernel_us;
  EXPECT_NEAR(wave, 10, 0.3);
  const SlowdownByCause lost = attribute(wide_waits.kernel, ClockDomain(config.system.gpu.clock), wave);
  EXPECT_NEAR(lost.compute_units, wave, 0.05 * wave);
}

// What sharing a part costs is what goes when communication has that part for itself.
TEST(Mover, WhatIsBookedToAPartGoesWithAPrivateOne) {
  RunConfig config = all_reduce("compute_units", "ring");
  config.collective.channels = 8;
  config.system.gpu.hbm.bandwidth = gigabytes_per_second(600);
  RunConfig quiet = config;
  quiet.workload = CollectiveWorkload{CollectiveKind::all_reduce, Bytes(128)};
  quiet.collective.mover = Mover::endpoint_engine;
  const ClockDomain clock(config.system.gpu.clock);

  const double alone = measure(quiet, {streaming()}).kernel_us;
  const Measured shared = measure(config, {streaming()});
  const double added = shared.kernel_us - alone;
  const SlowdownByCause causes = attribute(shared.kernel, clock, added);
  EXPECT_GT(causes.hbm, 0.5 * added);
  config.private_parts = {.hbm = true};
  const double without_hbm = shared.kernel_us - measure(config, {streaming()}).kernel_us;
  EXPECT_NEAR(without_hbm, causes.hbm, 0.2 * added);
  config.private_parts = {.compute_units = true};
  EXPECT_NEAR(measure(config, {streaming()}).kernel_us, shared.kernel_us, 0.1 * added);
  config.private_parts = {.compute_units = true, .cache = true, .hbm = true};
  EXPECT_NEAR(measure(config, {streaming()}).kernel_us, alone, 0.02 * alone);

  // Two waves beside blocks that hold units, one without.
  config.private_parts = {};
  const Measured wide = measure(config, {unit_blocks(kUnits, 10)});
  EXPECT_NEAR(attribute(wide.kernel, clock, wide.kernel_us - 10).compute_units, 10, 0.3);
  config.private_parts = {.compute_units = true};
  EXPECT_NEAR(measure(config, {unit_blocks(kUnits, 10)}).kernel_us, 10, 0.3);
}

TEST(Mover, TheFenceAtAKernelsEndWaitsForStoresToOtherGpus) {
  RunConfig config = all_reduce("compute_units", "ring");
  config.collective.channels = 8;
  const std::vector<KernelDemand> small{unit_blocks(1, 20)};  // ends while data moves
  config.system.gpu.sync_domains = 4;
  const double alone = measure(config, small).kernel_us;
  EXPECT_NEAR(alone, 20, 0.1);
  config.system.gpu.sync_domains = 1;
  const Measured fenced = measure(config, small);
  EXPECT_GT(fenced.kernel_us, alone + 0.5);  // a way to another GPU and back
  EXPECT_LT(fenced.kernel_us, alone + 5);
  EXPECT_NEAR(attribute(fenced.kernel, ClockDomain(config.system.gpu.clock), fenced.kernel_us - alone).links,
              fenced.kernel_us - alone, 0.05);
  config.private_parts = {.links = true};
  EXPECT_NEAR(measure(config, small).kernel_us, alone, 0.01);
  // While the collective waits for a late rank, nothing is under way.
  config.private_parts = {};
  EXPECT_NEAR(measure(config, {unit_blocks(1, 100)}, microseconds(400)).kernel_us, 100, 0.1);
}

TEST(Mover, RunsTheSameTwice) {
  for (const char* mover : {"copy_engine", "endpoint_engine", "near_memory"}) {
    EXPECT_EQ(measure(all_reduce(mover)).end, measure(all_reduce(mover)).end) << mover;
  }
}

}  // namespace
}  // namespace weft
