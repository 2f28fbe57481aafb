#include "network/send_channels.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;

CollectiveSpec library() {
  CollectiveSpec spec;
  spec.ring.channels = 24;
  return spec;
}

SendQuery to_one_of(std::uint32_t ranks, std::int64_t bytes, std::uint32_t nodes = 1) {
  return {.bytes = bytes, .ranks = ranks, .links_per_gpu = 18, .nodes = nodes};
}

std::uint32_t simple(const SendQuery& query) { return channels_to_peer(library(), query, CollectiveProtocol::simple); }

// NCCL's log on 8 H100: "24 coll channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer".
TEST(SendChannels, ArePowersOfTwo) {
  EXPECT_EQ(channels_of_sends(library(), to_one_of(8, kMiB)), 32U);
  SendQuery query = to_one_of(8, kMiB);
  query.channels = 6;
  EXPECT_EQ(channels_of_sends(library(), query), 4U);
  CollectiveSpec own = library();
  own.sends.channels = 64;
  EXPECT_EQ(channels_of_sends(own, to_one_of(8, kMiB)), 64U);
}

TEST(SendChannels, OfOneMessageAreFewUntilPartsExceed16MiB) {
  EXPECT_EQ(simple(to_one_of(8, 64 * kKiB)), 1U);  // parts of 64 KiB at least
  EXPECT_EQ(simple(to_one_of(8, 129 * kKiB)), 3U);
  EXPECT_EQ(simple(to_one_of(8, kMiB)), 4U);
  EXPECT_EQ(simple(to_one_of(4, kMiB)), 8U);
  EXPECT_EQ(simple(to_one_of(2, kMiB)), 16U);
  EXPECT_EQ(simple(to_one_of(8, 64 * kMiB)), 4U);
  EXPECT_EQ(simple(to_one_of(8, 128 * kMiB)), 8U);
  EXPECT_EQ(simple(to_one_of(8, 256 * kMiB)), 16U);
  EXPECT_EQ(simple(to_one_of(8, 1024 * kMiB)), 32U);
}

TEST(SendChannels, BetweenNodesAreTwoAtMost) {
  EXPECT_EQ(simple(to_one_of(16, 64 * kKiB, 2)), 1U);
  EXPECT_EQ(simple(to_one_of(16, 1024 * kMiB, 2)), 2U);
  EXPECT_EQ(simple(to_one_of(64, 128 * kKiB, 8)), 1U);  // 64 sends of two have no room on 32 channels
  EXPECT_EQ(simple(to_one_of(64, 129 * kKiB, 8)), 2U);
}

TEST(SendChannels, TheConfigurationMayLimitThem) {
  CollectiveSpec own = library();
  own.sends.channels_to_peer = 2;
  EXPECT_EQ(channels_to_peer(own, to_one_of(8, 1024 * kMiB), CollectiveProtocol::simple), 2U);
  EXPECT_EQ(protocol_of_sends(own, to_one_of(8, 32 * kKiB)), CollectiveProtocol::ll);
  EXPECT_EQ(protocol_of_sends(own, to_one_of(8, 33 * kKiB)), CollectiveProtocol::simple);
}

TEST(SendChannels, LlHasSmallerParts) {
  const auto ll = [](std::int64_t bytes) {
    return channels_to_peer(library(), to_one_of(8, bytes), CollectiveProtocol::ll);
  };
  EXPECT_EQ(ll(8 * kKiB), 1U);
  EXPECT_EQ(ll(9 * kKiB), 2U);
  EXPECT_EQ(ll(512 * kKiB), 4U);
}

}  // namespace
}  // namespace weft
