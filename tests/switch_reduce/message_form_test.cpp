// An all-reduce in chunks through routers that sum: what a window gives, slots that are used again, packets that get
// lost, pools that are too small. Everybody gets the sum of every chunk, once.
#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/switch_reduce/message_bench.h"

namespace weft {
namespace {

// One router for all GPUs.
NetworkSpec star_of(std::uint32_t gpus, std::uint32_t credits = 256) {
  NetworkSpec spec = fabric_of(TopologyKind::graph, credits);
  spec.graph.nodes.push_back({"switch", false});
  for (std::uint32_t g = 0; g < gpus; ++g) {
    const std::string name = "gpu" + std::to_string(g);
    spec.graph.nodes.push_back({name, true});
    spec.graph.links.push_back({.from = name, .to = "switch"});
  }
  return spec;
}

// Leaves of 4 GPUs, two levels.
NetworkSpec tree_of(std::uint32_t radix = 8) {
  NetworkSpec spec = fabric_of(TopologyKind::fat_tree, 256);
  spec.tree.radix = radix;
  return spec;
}

constexpr Time kChunk = kFlit * 5;  // a header and 128 B

// A chunk there and back through one router that sums, with adder and latency.
Time round_trip() { return (kHop + kChunk) * 2 + kRouter + nanoseconds(1) + nanoseconds(10); }

TEST(MessageForm, AllGetTheSumOfEveryChunk) {
  MessageBench bench(star_of(4), small_pool(64, 16), {group_of_all(4)}, 4);
  for (const auto& end : bench.ends) end->post(1000, Time(0));
  bench.run(microseconds(200));
  EXPECT_TRUE(bench.all_came(1000));
  EXPECT_FALSE(bench.holds_packets());
  EXPECT_EQ(bench.pools().reduced_bytes, 1000 * kLineBytes);
  EXPECT_EQ(bench.pools().duplicates, 0);
  EXPECT_EQ(bench.retransmissions(), 0);
}

TEST(MessageForm, ThroughputIsAWindowARoundTripOrTheLink) {
  const std::uint32_t chunks = 1000;
  for (const std::uint32_t window : {1U, 4U, 8U, 64U}) {
    MessageBench bench(star_of(4), small_pool(256, window), {group_of_all(4)}, 4);
    for (const auto& end : bench.ends) end->post(chunks, Time(0));
    ASSERT_TRUE(bench.finish(chunks)) << window;
    const double a_chunk = static_cast<double>(bench.ends[0]->last.count()) / chunks;
    const double expected =
        std::max(static_cast<double>(kChunk.count()), static_cast<double>(round_trip().count()) / window);
    EXPECT_NEAR(a_chunk / expected, 1, 0.02) << window;
    EXPECT_LE(bench.pools().high_water, window);
  }
}

TEST(MessageForm, TwoLevelsSendOneSumUpALeaf) {
  const NetworkSpec network = tree_of();
  MessageBench bench(network, small_pool(256, 64), {group_of_all(16)}, 16);
  for (const auto& end : bench.ends) end->post(500, Time(0));
  bench.run(microseconds(200));
  EXPECT_TRUE(bench.all_came(500));
  std::int64_t up = 0;  // packets of leaves to the level above
  for (std::size_t r = 0; r < bench.fabric.routers(); ++r) {
    const Router& router = bench.fabric.router(r);
    for (std::uint32_t p = 0; p < bench.fabric.topology().nodes()[router.node()].ports; ++p) {
      const std::uint32_t to = bench.fabric.topology().neighbour(router.node(), p);
      if (bench.fabric.topology().nodes()[to].level > bench.fabric.topology().nodes()[router.node()].level) {
        up += router.statistics(p, 0).packets;
      }
    }
  }
  EXPECT_EQ(up, 4 * 500);
  EXPECT_EQ(bench.pools().reduced_bytes, (4 + 1) * 500 * kLineBytes);
}

TEST(MessageForm, SlotsAreUsedAgain) {
  MessageBench bench(star_of(3), small_pool(8, 4), {group_of_all(3)}, 3);
  for (const auto& end : bench.ends) end->post(100, Time(0));
  bench.run(microseconds(100));
  EXPECT_TRUE(bench.all_came(100));
  EXPECT_LE(bench.pools().high_water, 8);
  EXPECT_EQ(bench.pools().stalled_packets, 0);
}

TEST(MessageForm, APoolBelowTheWindowStallsAndFinishes) {
  for (const std::uint32_t gpus : {4U, 16U}) {
    const NetworkSpec network = gpus == 4 ? star_of(4, 8) : tree_of();
    AggregationSpec spec = small_pool(3, 64);
    spec.latency = nanoseconds(100);
    MessageBench bench(network, spec, {group_of_all(gpus)}, gpus);
    for (const auto& end : bench.ends) end->post(200, Time(0));
    EXPECT_TRUE(bench.finish(200)) << gpus;
    EXPECT_EQ(bench.pools().high_water, 3);
    EXPECT_GT(bench.pools().stalled_packets, 0);
    EXPECT_GT(bench.pools().stalled, Time(0));
    EXPECT_FALSE(bench.holds_packets());
  }
}

TEST(MessageForm, ALateMemberHoldsTheWindowOfAll) {
  MessageBench bench(star_of(3), small_pool(16, 8), {group_of_all(3)}, 3);
  bench.ends[0]->post(50, Time(0));
  bench.ends[1]->post(50, Time(0));
  bench.run(microseconds(20));
  EXPECT_EQ(bench.ends[0]->sums.size(), 0U);
  EXPECT_EQ(bench.pools().high_water, 8);
  bench.ends[2]->post(50, bench.now);
  bench.run(microseconds(60));
  EXPECT_TRUE(bench.all_came(50));
}

TEST(MessageForm, LostPacketsAreSentAgainAndCountOnce) {
  for (const std::uint32_t gpus : {4U, 16U}) {
    AggregationSpec spec = small_pool(64, 16);
    spec.loss = 0.02;
    spec.timeout = microseconds(5);
    MessageBench bench(gpus == 4 ? star_of(4) : tree_of(), spec, {group_of_all(gpus)}, gpus);
    for (const auto& end : bench.ends) end->post(200, Time(0));
    EXPECT_TRUE(bench.finish(200)) << gpus;
    EXPECT_GT(bench.lost(), 0);
    EXPECT_GT(bench.retransmissions(), 0);
    EXPECT_GT(bench.pools().duplicates, 0);
    EXPECT_FALSE(bench.holds_packets());
  }
}

TEST(MessageForm, ALossCostsATimeout) {
  AggregationSpec spec = small_pool(64, 1);
  MessageBench without(star_of(2), spec, {group_of_all(2)}, 2);
  for (const auto& end : without.ends) end->post(200, Time(0));
  spec.loss = 0.01;
  spec.timeout = microseconds(10);
  MessageBench with(star_of(2), spec, {group_of_all(2)}, 2);
  for (const auto& end : with.ends) end->post(200, Time(0));
  ASSERT_TRUE(without.finish(200));
  ASSERT_TRUE(with.finish(200));
  const Time added = with.ends[0]->last - without.ends[0]->last;
  EXPECT_GE(added, spec.timeout);
  EXPECT_LE(added, (spec.timeout + round_trip()) * static_cast<std::int64_t>(with.lost()));
}

TEST(MessageForm, ATimeoutTooShortOnlyMakesDuplicates) {
  AggregationSpec spec = small_pool(64, 4);
  spec.timeout = nanoseconds(60);  // less than a round trip
  MessageBench bench(star_of(3), spec, {group_of_all(3)}, 3);
  for (const auto& end : bench.ends) end->post(50, Time(0));
  bench.run(microseconds(100));
  EXPECT_TRUE(bench.all_came(50));
  EXPECT_GT(bench.pools().duplicates, 0);
}

TEST(MessageForm, GroupsHaveSlotsOfTheirOwn) {
  const AggregationGroup low{{GpuId{0}, GpuId{1}}, DataType::fp32, 1};
  const AggregationGroup high{{GpuId{2}, GpuId{3}}, DataType::fp16, 1};
  MessageBench bench(star_of(4), small_pool(16, 4), {low, high}, 4);
  for (std::uint16_t g = 0; g < 4; ++g) bench.ends[g]->post(100, Time(0), g / 2);
  bench.run(microseconds(100));
  EXPECT_TRUE(bench.all_came(100));
  EXPECT_LE(bench.pools().high_water, 8);
}

TEST(MessageForm, LossesNeedTwoWindowsOfSlots) {
  AggregationSpec spec = small_pool(31, 16);
  spec.loss = 0.01;
  EXPECT_THROW(MessageBench(star_of(2), spec, {group_of_all(2)}, 2), InputError);
  spec.slots = 32;
  EXPECT_NO_THROW(MessageBench(star_of(2), spec, {group_of_all(2)}, 2));
}

TEST(MessageForm, GpusWithoutACommonRouterHaveNoTree) {
  NetworkSpec spec = fabric_of(TopologyKind::fully_connected);
  spec.links_per_gpu = 1;
  EXPECT_THROW(MessageBench(spec, small_pool(8, 4), {group_of_all(2)}, 2), InputError);
}

}  // namespace
}  // namespace weft
