// Who moves a collective: what it costs in units, HBM and link bytes.
#include <gmock/gmock.h>

#include "tests/cli/measured_mover.h"

namespace weft {
namespace {

using testing::all_reduce;
using testing::kFlagBytes;
using testing::kGpus;
using testing::kSize;
using testing::measure;
using testing::Measured;

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
  EXPECT_THAT(error(gather), ::testing::HasSubstr("expected an all_reduce"));
  RunConfig none = all_reduce("endpoint_engine");
  none.system.gpu.engines.reset();
  EXPECT_THAT(error(none), ::testing::HasSubstr("gpu.engines"));
  EXPECT_THAT(error(all_reduce("copy_engine", "in_switch")), ::testing::HasSubstr("in_switch"));
}

TEST(Mover, RunsTheSameTwice) {
  for (const char* mover : {"copy_engine", "endpoint_engine", "near_memory"}) {
    EXPECT_EQ(measure(all_reduce(mover)).end, measure(all_reduce(mover)).end) << mover;
  }
}

}  // namespace
}  // namespace weft
