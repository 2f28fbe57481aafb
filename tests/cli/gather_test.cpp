// What a run found: causes that sum, rows of collectives.
#include "cli/run/gather.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cli/config/run_config.h"
#include "cli/run/simulate.h"

namespace weft {
namespace {

double sum(const SlowdownByCause& causes) { return causes.compute_units + causes.hbm + causes.cache + causes.links; }

constexpr ClockDomain kClock(megahertz(1000));  // a cycle is a nanosecond
double subcycles(double us) { return us * 1e3 * static_cast<double>(kCycle); }

KernelLedger ledger(std::mt19937& random) {
  const auto some = [&] { return random() % 3 == 0 ? 0.0 : static_cast<double>(random() % 1'000'000); };
  return {some(), some(), some(), some(), some(), some(), some(), some(), random() % 2 == 0};
}

TEST(Attribute, CausesSumToTheAddedTimeWhateverTheLedger) {
  std::mt19937 random(11);
  for (int i = 0; i < 10'000; ++i) {
    const double added = (static_cast<double>(random() % 2000) - 500) * 1e-7;
    const SlowdownByCause causes = attribute(ledger(random), kClock, added);
    ASSERT_NEAR(sum(causes), added, 1e-12 * std::abs(added) + 1e-300);
    ASSERT_TRUE(causes.compute_units == 0 ||
                std::abs(causes.compute_units) > 1e-15 * std::abs(added));  // rounding is none
    if (added < 0) continue;
    for (const double share : {causes.compute_units, causes.hbm, causes.cache, causes.links}) {
      ASSERT_GE(share, -1e-12 * added);
    }
  }
}

TEST(Attribute, MemoryIsTheShareOfTheStallsThatLinesWaitedForCommunication) {
  KernelLedger memory{.latency = 1000, .held_by_cache = 100, .held_by_hbm = 300, .stall = subcycles(10)};
  EXPECT_NEAR(attribute(memory, kClock, 4e-6).hbm, 3e-6, 1e-10);
  EXPECT_NEAR(attribute(memory, kClock, 4e-6).cache, 1e-6, 1e-10);
  EXPECT_NEAR(attribute(memory, kClock, 2e-6).hbm, 1.5e-6, 1e-10);
  // What the kernel took longer than that, it took for want of places, if it found some taken.
  memory.displaced = true;
  EXPECT_NEAR(attribute(memory, kClock, 14e-6).compute_units, 10e-6, 1e-9);
  EXPECT_NEAR(attribute(memory, kClock, 14e-6).hbm, 3e-6, 1e-9);
}

TEST(Attribute, APipeSharedWithCommunicationIsComputeUnits) {
  const KernelLedger pipe{.latency = 1000, .held_by_hbm = 100, .stall = subcycles(10), .held_by_pipe = subcycles(3)};
  EXPECT_NEAR(attribute(pipe, kClock, 4e-6).compute_units, 3e-6, 1e-9);
  EXPECT_NEAR(attribute(pipe, kClock, 4e-6).hbm, 1e-6, 1e-9);
}

TEST(Attribute, AFenceThatWaitsForCommunicationIsLinks) {
  const KernelLedger fence{.latency = 1000, .stall = subcycles(10), .held_by_links = subcycles(1.5)};
  EXPECT_NEAR(attribute(fence, kClock, 1.5e-6).links, 1.5e-6, 1e-10);
}

TEST(Attribute, ALowerClockThanWithoutCommunicationIsTheUnits) {
  KernelLedger slow;
  slow.slow_clock = subcycles(3);
  slow.latency = slow.stall = subcycles(1);
  slow.held_by_hbm = subcycles(1);
  EXPECT_NEAR(attribute(slow, kClock, 2e-6, subcycles(2)).compute_units, 1e-6, 1e-10);
  EXPECT_NEAR(attribute(slow, kClock, 2e-6, subcycles(2)).hbm, 1e-6, 1e-10);
  EXPECT_NEAR(attribute(slow, kClock, 2e-6, subcycles(4)).hbm, 2e-6, 1e-10);  // it was lower still without
}

TEST(Attribute, NothingAddedHasNoCauses) { EXPECT_EQ(sum(attribute({}, kClock, 0)), 0); }

TEST(Gather, ReportsACollectiveAsNcclTestsDoes) {
  const Json document{{"system", "hgx-h100"},
                      {"gpus", 4},
                      {"workload", {{"collective", "all_reduce"}, {"bytes", 1 << 20}}},
                      {"all_reduce", {{"algorithm", "ring"}}},
                      {"iterations", 2}};
  const RunResult result = simulate(read_run_config(document, "test.json"), {});
  EXPECT_EQ(result.status, "ok");
  ASSERT_EQ(result.collectives.size(), 2U);
  double before = -1;
  for (const CollectiveResult& row : result.collectives) {
    EXPECT_EQ(row.kind, "all_reduce");
    EXPECT_EQ(row.algorithm, "ring");
    EXPECT_EQ(row.bytes, 1 << 20);
    EXPECT_EQ(row.ranks, 4U);
    EXPECT_GT(row.start_s, before);  // a GPU that is through with the first begins the next before the others end
    EXPECT_NEAR(row.algbw_GBps, (1 << 20) * 1e-9 / (row.end_s - row.start_s), 1e-6);
    EXPECT_NEAR(row.busbw_GBps, row.algbw_GBps * 1.5, 1e-6);  // 2 (n-1) / n
    before = row.start_s;
  }
  ASSERT_EQ(result.gpus.size(), 4U);
  EXPECT_EQ(result.operations.size(), 8U);
  EXPECT_EQ(result.links.size(), 2U * 4 * 18);
  for (const LinkResult& link : result.links) {
    EXPECT_GT(link.bytes, 0) << link.name;
    EXPECT_GT(link.wire_bytes, link.bytes) << link.name;
    EXPECT_LE(link.busy_fraction, 1) << link.name;
    EXPECT_LE(link.busy_fraction, link.peak_fraction + 1e-9) << link.name;
    EXPECT_LE(link.stall_s + link.busy_fraction * result.engine.simulated_s, result.engine.simulated_s) << link.name;
  }
  EXPECT_GT(result.engine.packets, 0);
  EXPECT_GT(result.engine.memory_transactions, 0);
}

TEST(Gather, ReportsLinksThatWaitForCredits) {
  const RunResult result =
      simulate(read_run_config(Json::parse(R"({"system": "hgx-h100", "gpus": 2, "network": {"link": {"credits": 2}},
        "workload": {"collective": "all_reduce", "bytes": 262144},
        "all_reduce": {"algorithm": "ring", "protocol": "Simple"}})"),
                               "test.json"),
               {});
  double stalled = 0;
  std::int64_t waited = 0;
  for (const LinkResult& link : result.links) {
    stalled = std::max(stalled, link.stall_s / result.engine.simulated_s);
    waited = std::max(waited, link.queue_high_water_packets);
  }
  EXPECT_GT(stalled, 0.1);
  EXPECT_GT(waited, 4);
}

}  // namespace
}  // namespace weft
