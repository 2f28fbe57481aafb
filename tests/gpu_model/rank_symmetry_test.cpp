// Renamings of ranks and blocks under which the collectives of a cluster stay what they are.
#include "gpu_model/rank_symmetry.h"

#include <gtest/gtest.h>

#include "network/group_rings.h"
#include "network/schedule_generators.h"

namespace weft {
namespace {

constexpr std::uint32_t kPerNode = 4;
constexpr std::uint32_t kNodes = 6;
constexpr std::uint32_t kRanks = kPerNode * kNodes;
constexpr std::uint32_t kBlocks = 8;

RankSymmetry symmetry(std::uint32_t standing, bool alternating) {
  return {.ranks = kRanks, .per_node = kPerNode, .standing = standing, .alternating = alternating};
}

TEST(RankSymmetry, TurnsTheRankThatStandsForAllIntoEachOther) {
  for (const bool alternating : {false, true}) {
    const RankSymmetry by = symmetry(1, alternating);
    for (std::uint32_t r = 0; r < kRanks; ++r) EXPECT_EQ(Renaming(by, r).rank(0), r);
  }
  for (std::uint32_t r = 0; r < kRanks; ++r) {
    EXPECT_EQ(Renaming(symmetry(kPerNode, false), r).rank(r % kPerNode), r);
    EXPECT_EQ(Renaming(symmetry(2 * kPerNode, false), r).rank(r % (2 * kPerNode)), r);
  }
}

TEST(RankSymmetry, IsUndone) {
  for (const RankSymmetry& by : {symmetry(1, false), symmetry(1, true), symmetry(2 * kPerNode, false)}) {
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      const Renaming renaming(by, r);
      for (std::uint32_t x = 0; x < kRanks; ++x) EXPECT_EQ(renaming.rank_before(renaming.rank(x)), x);
      for (std::uint32_t b = 0; b < kBlocks; ++b) EXPECT_EQ(renaming.block_before(renaming.block(b)), b);
    }
  }
}

// Who is above whom in the tree of a block stays so.
void expect_trees_are_kept(std::uint32_t nodes) {
  const std::uint32_t ranks = nodes * kPerNode;
  constexpr std::uint32_t kChannels = 4 * kPerNode;
  const RankSymmetry by{.ranks = ranks, .per_node = kPerNode, .two_trees = true, .trees_of_places = true};
  ScheduleRequest request;
  request.kind = CollectiveKind::all_reduce;
  request.ranks = ranks;
  request.alike_trees = true;
  request.ranks_per_node = kPerNode;
  request.channels = kChannels;
  request.bytes = 1 << 20;
  const auto trees = make_double_binary_tree(request);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    const Renaming renaming(by, r);
    EXPECT_EQ(renaming.rank(0), r);
    for (std::uint32_t x = 0; x < ranks; ++x) {
      EXPECT_EQ(renaming.rank_before(renaming.rank(x)), x);
      for (std::uint32_t b = 0; b < kChannels; ++b) {
        EXPECT_EQ(renaming.block_before(renaming.block(b)), b);
        for (std::uint32_t group = 0; group < 2; ++group) {
          std::vector<std::uint32_t> renamed = trees->sends_to(x, b, group);
          for (std::uint32_t& peer : renamed) peer = renaming.rank(peer);
          EXPECT_EQ(renamed, trees->sends_to(renaming.rank(x), renaming.block(b), group))
              << "renaming of " << r << ", rank " << x << ", block " << b << ", group " << group;
        }
      }
    }
  }
}

TEST(RankSymmetry, KeepsTheTwoTreesOverTwoNodes) { expect_trees_are_kept(2); }
TEST(RankSymmetry, KeepsTreesInWhichAllNodesAreAlike) {
  expect_trees_are_kept(4);
  expect_trees_are_kept(6);
}

// Who follows whom on the ring of a block stays so when both ranks and the block get other names.
TEST(RankSymmetry, KeepsRingsThatGoThroughEverySecondNodeBackwards) {
  NetworkSpec network;
  network.cluster = ClusterSpec{};
  network.cluster->gpus_per_node = network.cluster->nics_per_node = kPerNode;
  const auto orders = rings_of_group(network, kRanks, GpuGroup::first(kRanks));
  ASSERT_EQ(orders->cycles(), kPerNode);
  for (std::uint32_t r = 0; r < kRanks; ++r) {
    const Renaming renaming(symmetry(1, true), r);
    for (std::uint32_t x = 0; x < kRanks; ++x) {
      for (std::uint32_t b = 0; b < kBlocks; ++b) {
        EXPECT_EQ(renaming.rank(orders->after(b, x, 1)), orders->after(renaming.block(b), renaming.rank(x), 1))
            << "renaming of " << r << ", rank " << x << ", block " << b;
      }
    }
  }
}

// Each block's ring by itself: as rank 0 stands in it, so does each other one, and the renamings are a group.
TEST(RankSymmetry, KeepsEachRingOfDirectLinks) {
  for (const TopologyKind topology : {TopologyKind::fully_connected, TopologyKind::hybrid_cube_mesh}) {
    constexpr std::uint32_t kGpus = 8;
    NetworkSpec network;
    network.topology = topology;
    network.links_per_gpu = kGpus - 1;
    const auto rings = rings_of_group(network, kGpus, GpuGroup::first(kGpus));
    ASSERT_GT(rings->cycles(), 1U);
    const RankSymmetry by{.ranks = kGpus, .per_node = kGpus, .rings = rings};
    for (std::uint32_t r = 0; r < kGpus; ++r) {
      for (std::uint32_t b = 0; b < 2 * rings->cycles(); ++b) {
        const Renaming renaming(by, r, b);
        EXPECT_EQ(renaming.rank(0), r);
        EXPECT_EQ(renaming.block(b), b);
        for (std::uint32_t x = 0; x < kGpus; ++x) {
          EXPECT_EQ(renaming.rank(rings->after(b, x, 1)), rings->after(b, renaming.rank(x), 1));
          EXPECT_EQ(renaming.rank_before(renaming.rank(x)), x);
          const Renaming other(by, x, b);
          EXPECT_EQ(Renaming(by, renaming.rank(x), b).rank(3), renaming.rank(other.rank(3)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft
