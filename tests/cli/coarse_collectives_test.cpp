// Long collectives by themselves, in samples: told in coarser lines, they are what they are in cycle.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/sampled/coarse_system.h"
#include "network/network.h"
#include "tests/cli/run_weft.h"

namespace weft {
namespace {

class CoarseCollectives : public testing::TestWithParam<const char*> {
 protected:
  CoarseCollectives() { setenv("WEFT_REGIMES", "", 1); }
  Json run(const std::string& config, const std::string& options) {
    folder_.write("e.json", config);
    const Ran ran = weft("run e.json --json " + options, folder_);
    EXPECT_EQ(ran.code, 0) << ran.errors;
    return parse_json(ran.output, "result");
  }
  static double at(const Json& result, const char* path) { return result.at(Json::json_pointer(path)).get<double>(); }

  TemporaryFolder folder_;
};

TEST_P(CoarseCollectives, TakeAsLongAndMoveAsMuchAsInCycle) {
  const Json cycle = run(GetParam(), "--fidelity cycle");
  const Json sampled = run(GetParam(), "--fidelity sampled");
  const auto expect_near = [&](const char* path, double share) {
    EXPECT_NEAR(at(sampled, path) / at(cycle, path), 1, share) << path;
  };
  expect_near("/collectives/0/end_s", 0.02);
  ASSERT_EQ(sampled.at("links").size(), cycle.at("links").size());
  double carried[2] = {0, 0};
  for (std::size_t i = 0; i < cycle.at("links").size(); ++i) {
    carried[0] += cycle.at("links")[i].at("bytes").get<double>();
    carried[1] += sampled.at("links")[i].at("bytes").get<double>();
    EXPECT_EQ(sampled.at("links")[i].at("name"), cycle.at("links")[i].at("name"));
  }
  EXPECT_NEAR(carried[1] / carried[0], 1, 0.005);  // equal shares are a little more
  expect_near("/links/0/bytes", 0.02);
  expect_near("/links/0/wire_bytes", 0.02);
  expect_near("/links/0/busy_fraction", 0.04);
  const double moved = at(cycle, "/gpus/0/hbm_read_bytes") + at(cycle, "/gpus/0/hbm_write_bytes");
  for (const char* path : {"/gpus/0/hbm_read_bytes", "/gpus/0/hbm_write_bytes"}) {
    EXPECT_NEAR(at(sampled, path), at(cycle, path), 0.05 * moved) << path;
  }
  ASSERT_EQ(sampled.at("switches").size(), cycle.at("switches").size());
  for (std::size_t s = 0; s < cycle.at("switches").size(); ++s) {
    const std::string reduced = "/switches/" + std::to_string(s) + "/reduced_bytes";
    if (at(cycle, reduced.c_str()) > 0) expect_near(reduced.c_str(), 0.02);
  }
  // Of all GPUs each transaction stands for 4 or 8.
  const double all = at(cycle, "/engine/memory_transactions") / static_cast<double>(cycle.at("gpus").size());
  EXPECT_LT(at(sampled, "/engine/memory_transactions"), all / 3.5);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, CoarseCollectives,
    testing::Values(
        R"({"system": "dgx-a100", "gpus": 4, "workload": {"collective": "all_reduce", "bytes": 16777216},
            "all_reduce": {"algorithm": "ring", "protocol": "Simple"}})",
        R"({"system": "hgx-h100", "gpus": 4, "workload": {"collective": "all_reduce", "bytes": 16777216},
            "all_reduce": {"algorithm": "in_switch"}})",
        R"({"system": "hgx-h100", "gpus": 4, "workload": {"collective": "all_gather", "bytes": 16777216},
            "all_reduce": {"protocol": "Simple"}})"));

NetworkSpec switched(std::uint32_t links, std::uint32_t switches) {
  NetworkSpec network;
  network.links_per_gpu = links;
  network.switches = switches;
  network.link.bandwidth = gigabytes_per_second(25);
  network.link.credits = 128;
  return network;
}

TEST(CoarseSystem, LanesSideBySideBecomeOne) {
  SystemSpec system;
  system.gpu.l2.slices = 32;
  system.gpu.hbm.channels = 32;
  system.network = switched(18, 4);
  const SystemSpec told = coarse(system, 8, 8);
  EXPECT_EQ(told.network.links_per_gpu, 4U);
  const double rate = static_cast<double>(told.network.link.bandwidth.count()) * 4 * 8;
  EXPECT_NEAR(rate, 25e9 * 18, 100);
  EXPECT_EQ(told.network.link.credits, 72U);
  EXPECT_DOUBLE_EQ(told.network.link.train, 8 / 4.5);
  SystemSpec reducing = system;
  reducing.switch_reduce.emplace();
  EXPECT_EQ(coarse(reducing, 8, 8).network.link.credits, 86U);   // a fifth more
  EXPECT_EQ(coarse(reducing, 8, 4).network.link.credits, 144U);  // where no train is longer than a packet, no more
  SystemSpec faulty = system;
  faulty.network.faults.push_back({"gpu0->switch1", 0.5});
  EXPECT_EQ(coarse(faulty, 8, 8).network.links_per_gpu, 18U);
}

TEST(CoarseSystem, WhatLanesCarriedIsSpreadOverThoseThereAre) {
  const auto real = make_network(switched(18, 4), 2);
  const auto told = make_network(switched(4, 4), 2);
  Regime regime;
  regime.hbm_read_bytes = 100;
  for (std::uint32_t link = 0; link < 16; ++link) {  // 2 GPUs x 4 switches, both ways
    regime.links.push_back({.payload_bytes = 1800, .packets = 18, .busy = 700, .queue_high_water = 9});
  }
  regime.switches.resize(4);
  for (SwitchLoad& load : regime.switches) {
    load.reduced_bytes = 900;
    load.stalled_by_table = {5, 6};
  }
  tell_finely(told->topology, real->topology, 8, regime);
  EXPECT_EQ(regime.hbm_read_bytes, 800);
  ASSERT_EQ(regime.links.size(), 2U * 18 * 2);
  for (const LinkLoad& load : regime.links) {
    EXPECT_EQ(load.payload_bytes, 1800 * 8 / 4.5);
    EXPECT_EQ(load.packets, 18 * 8 / 4.5);
    EXPECT_EQ(load.busy, 700);
    EXPECT_EQ(load.queue_high_water, 16);
  }
  EXPECT_EQ(regime.switches[0].reduced_bytes, 900 * 8 * 5 / 4.5);  // 5, 5, 4 and 4 lanes
  EXPECT_EQ(regime.switches[3].reduced_bytes, 900 * 8 * 4 / 4.5);
  EXPECT_EQ(regime.switches[0].stalled_by_table, (std::vector<std::int64_t>{5, 5, 5, 5, 5, 6, 6, 6, 6, 6}));
}

}  // namespace
}  // namespace weft
