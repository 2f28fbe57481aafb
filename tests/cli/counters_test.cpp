// Counters over time: they sum to what the run counted, and stay below what the hardware has.
#include "cli/run/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "cli/run/simulate.h"
#include "sim/time_bins.h"
#include "tests/cli/ran_machine.h"

namespace weft {
namespace {

RunResult run(const char* text) { return simulate(read_run_config(Json::parse(text), "test.json"), {}); }

const CounterTrack& counter(const RunResult& result, const std::string& name, std::uint32_t gpu) {
  for (const CounterTrack& track : result.counters) {
    if (track.name == name && track.gpu == gpu) return track;
  }
  throw InternalError("no counter " + name);
}

double area(const CounterTrack& track) {
  return std::accumulate(track.values.begin(), track.values.end(), 0.0) * track.period_s;
}

TEST(Counters, HoldTheTrafficOfTheHbm) {
  const RunResult result = run(R"({"system": "hgx-h100", "gpus": 2, "gpu": {"compute_units": 24},
      "workload": {"collective": "all_reduce", "bytes": 1048576}, "all_reduce": {"algorithm": "ring"}})");
  for (const GpuResult& gpu : result.gpus) {
    EXPECT_NEAR(area(counter(result, "HBM read", gpu.id)), static_cast<double>(gpu.hbm_read_bytes) * 1e-9, 1e-9);
    EXPECT_NEAR(area(counter(result, "HBM write", gpu.id)), static_cast<double>(gpu.hbm_write_bytes) * 1e-9, 1e-9);
    EXPECT_NEAR(area(counter(result, "HBM communication", gpu.id)),
                static_cast<double>(gpu.hbm_communication_bytes) * 1e-9, 1e-9);
    EXPECT_GT(gpu.hbm_read_bytes, 0);
    EXPECT_GT(gpu.hbm_communication_bytes, 0);
    EXPECT_EQ(counter(result, "HBM read", gpu.id).limit, 3350.0);
  }
}

TEST(Counters, ShowWhatIsAllocatedAndReachItsPeak) {
  RunConfig config = all_reduce(4096, "ring", 2);
  config.iterations = 3;
  RanMachine ran(config);
  constexpr std::int64_t kGiB = 1 << 30;
  for (Program& program : ran.programs) {
    program.memory = {{OpId{0}, MemoryClass::parameters, Bytes(kGiB), "w"},
                      {OpId{1}, MemoryClass::activations, Bytes(2 * kGiB), "a"},
                      {OpId{1}, MemoryClass::activations, Bytes(-2 * kGiB), "a"},
                      {OpId{2}, MemoryClass::activations, Bytes(kGiB), "b"}};
  }
  RunResult result;
  result.gpus.resize(2);
  for (std::uint32_t g = 0; g < 2; ++g) {
    result.gpus[g].id = g;
    result.gpus[g].peak_memory_bytes = 4 * kGiB;  // the communication library's buffers take one
  }
  gather_counters(config, ran.programs, *ran.machine, result);
  const CounterTrack& parameters = counter(result, "memory parameters", 1);
  const CounterTrack& activations = counter(result, "memory activations", 1);
  const CounterTrack& communication = counter(result, "memory communication", 1);
  EXPECT_THAT(parameters.values, ::testing::Contains(1.0));
  EXPECT_EQ(parameters.values.back(), 1.0);
  EXPECT_THAT(communication.values, ::testing::Each(1.0));
  // Allocated and freed at once: seen in the bin in which that was.
  EXPECT_EQ(std::count(activations.values.begin(), activations.values.end(), 2.0), 1);
  EXPECT_EQ(activations.values.front(), 0.0);
  EXPECT_EQ(activations.values.back(), 1.0);
  EXPECT_EQ(parameters.limit, 80.0);
}

TEST(Counters, HoldHowBusyLinksAreInBothDirections) {
  const RunResult result = run(R"({"system": "dgx-a100", "gpus": 4,
      "workload": {"collective": "all_reduce", "bytes": 1048576}, "all_reduce": {"algorithm": "ring"}})");
  std::map<std::string, std::vector<double>> shares;  // by link: of its lanes
  for (const LinkResult& lane : result.links) {
    shares[lane.name.substr(0, lane.name.find('.'))].push_back(lane.busy_fraction);
  }
  std::size_t links = 0;
  for (const CounterTrack& track : result.counters) {
    if (track.kind != CounterKind::link) continue;
    ++links;
    ASSERT_TRUE(shares.contains(track.name)) << track.name;
    const std::vector<double>& lanes = shares.at(track.name);
    const double mean = std::accumulate(lanes.begin(), lanes.end(), 0.0) / static_cast<double>(lanes.size());
    EXPECT_NEAR(area(track), 100 * mean * result.engine.simulated_s, 1e-3 * area(track)) << track.name;
    EXPECT_LE(*std::max_element(track.values.begin(), track.values.end()), 100);
    EXPECT_GT(area(track), 0);
    EXPECT_EQ(track.gpu, std::stoul(track.name.substr(track.name.find("gpu") + 3)));
  }
  EXPECT_EQ(links, shares.size());
  EXPECT_EQ(links, 2U * 4 * 6);  // six switches, both ways
}

TEST(Counters, HaveOnePeriodAndABoundedNumberOfThem) {
  const RunResult result = run(R"({"system": "hgx-h100", "gpus": 2,
      "workload": {"collective": "all_reduce", "bytes": 4096}, "iterations": 60})");
  const double period = result.counters.front().period_s;
  EXPECT_GT(period, to_seconds(kShortestTimeBin));
  EXPECT_GT(result.engine.simulated_s, period * kMostTimeBins / 2);
  for (const CounterTrack& track : result.counters) {
    EXPECT_EQ(track.period_s, period);
    EXPECT_EQ(track.values.size(), std::ceil(result.engine.simulated_s / period));
    EXPECT_LE(track.values.size(), static_cast<std::size_t>(kMostTimeBins));
  }
}

TEST(Counters, OfALargeSystemAreThoseOfTheFirstGpus) {
  const RunResult result = run(R"({"system": {"base": "hgx-h100", "max_gpus": 288, "switch_reduce": null,
      "network": {"topology": "fat_tree", "tree": {"levels": 2, "radix": 32}}}, "gpus": 288,
      "workload": {"collective": "all_reduce", "bytes": 4096},
      "all_reduce": {"algorithm": "halving_doubling", "protocol": "Simple", "channels": 1}})");
  std::map<CounterKind, std::size_t> counters;
  for (const CounterTrack& track : result.counters) ++counters[track.kind];
  EXPECT_EQ(counters[CounterKind::hbm], 3U * 64);
  EXPECT_EQ(counters[CounterKind::link], 512U);
  EXPECT_THAT(result.notes, ::testing::Contains(::testing::HasSubstr("first 64 of 288 GPUs")));
}

}  // namespace
}  // namespace weft
