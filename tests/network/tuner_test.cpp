// What the communication library would choose, and the sizes of its protocols.
#include "network/tuner.h"

#include <gtest/gtest.h>

#include <string>

#include "network/protocol.h"
#include "sim/error.h"

namespace weft {
namespace {

constexpr std::int64_t kKiB = 1 << 10;
constexpr std::int64_t kMiB = 1 << 20;

CollectiveSpec hopper() {
  CollectiveSpec library;
  library.ring.channels = 24;
  library.tuner.link_GBps = 20.6;
  library.tuner.in_switch_head_GBps = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
  return library;
}

TunerChoice on_8_hopper(std::int64_t bytes, CollectiveProtocol protocol = CollectiveProtocol::automatic,
                        bool in_switch = true) {
  const TunerQuery query{.bytes = bytes, .ranks = 8, .links_per_gpu = 18, .link_GBps = 25, .in_switch = in_switch};
  return choose(hopper(), query, AllReduceAlgorithm::automatic, protocol, 0);
}

TEST(Tuner, TakesARingWithLlUpTo1MiBAndTheSwitchFrom2MiBOnEightHopper) {
  for (std::int64_t bytes = kKiB; bytes <= 1024 * kMiB; bytes *= 2) {
    const TunerChoice choice = on_8_hopper(bytes);
    const bool small = bytes <= kMiB;
    EXPECT_EQ(choice.algorithm, small ? AllReduceAlgorithm::ring : AllReduceAlgorithm::in_switch) << bytes;
    EXPECT_EQ(choice.protocol, small ? CollectiveProtocol::ll : CollectiveProtocol::simple) << bytes;
  }
}

// Four heads of at most 60 GB/s are less than a ring, five of 60 more. Measured on four of eight H100, NCCL 2.26: 356
// GB/s of 1 GiB, a ring's.
TEST(Tuner, TakesARingOfFourHopperAndTheSwitchOfMore) {
  const auto on = [](std::uint32_t ranks, std::int64_t bytes) {
    const TunerQuery query{.bytes = bytes, .ranks = ranks, .links_per_gpu = 18, .link_GBps = 25, .in_switch = true};
    return choose(hopper(), query, AllReduceAlgorithm::automatic, CollectiveProtocol::automatic, 0);
  };
  for (std::int64_t bytes = kKiB; bytes <= 1024 * kMiB; bytes *= 2) {
    const TunerChoice choice = on(4, bytes);
    EXPECT_EQ(choice.algorithm, AllReduceAlgorithm::ring) << bytes;
    EXPECT_EQ(choice.protocol, bytes <= 2 * kMiB   ? CollectiveProtocol::ll
                               : bytes <= 8 * kMiB ? CollectiveProtocol::ll128
                                                   : CollectiveProtocol::simple)
        << bytes;
  }
  for (const std::uint32_t ranks : {5U, 6U, 7U, 8U}) {
    EXPECT_EQ(on(ranks, 64 * kMiB).algorithm, AllReduceAlgorithm::in_switch) << ranks;
  }
}

TunerQuery gather_of(std::uint32_t ranks, std::int64_t bytes) {
  return {.kind = CollectiveKind::all_gather,
          .bytes = bytes,
          .ranks = ranks,
          .links_per_gpu = 18,
          .link_GBps = 25,
          .in_switch = true};
}

// NVIDIA/nccl issues 1083 and 1506: a gather through the switch moves more in its one direction than a ring in each.
TEST(Tuner, TakesARingForGathersOfEightAndTheSwitchForMiddleOnesOfSixteen) {
  const auto algorithm = [](std::uint32_t ranks, std::int64_t bytes) {
    return choose(hopper(), gather_of(ranks, bytes), AllReduceAlgorithm::automatic, CollectiveProtocol::automatic, 0)
        .algorithm;
  };
  for (std::int64_t bytes = kKiB; bytes <= 1024 * kMiB; bytes *= 2) {
    EXPECT_EQ(algorithm(8, bytes), AllReduceAlgorithm::ring) << bytes;
    const bool middle = bytes >= 4 * kMiB && bytes <= 8 * kMiB;
    EXPECT_EQ(algorithm(16, bytes), middle ? AllReduceAlgorithm::in_switch : AllReduceAlgorithm::ring) << bytes;
    EXPECT_EQ(algorithm(33, bytes), AllReduceAlgorithm::ring) << bytes;
  }
}

TEST(TunerFormula, AnAllReduceInTheSwitchTakesTwoPassesAndAGatherOneLessTheOwnPart) {
  const auto time = [](CollectiveKind kind) {
    TunerQuery query = gather_of(8, 64 * kMiB);
    query.kind = kind;
    return predicted_us(hopper(), query, AllReduceAlgorithm::in_switch, CollectiveProtocol::simple);
  };
  // 370.8 GB/s of links carry nine times 40.
  EXPECT_NEAR(time(CollectiveKind::all_gather).value(), 25 + 64 * kMiB / (8 * 40e3 * 0.85 * 7 / 8 * 7 / 8), 1e-9);
  EXPECT_NEAR(time(CollectiveKind::all_reduce).value(), 25 + 64 * kMiB / (8 * 40e3 * 0.85), 1e-9);
  EXPECT_EQ(time(CollectiveKind::reduce_scatter), time(CollectiveKind::all_gather));
  EXPECT_EQ(time(CollectiveKind::broadcast), std::nullopt);
}

TEST(Tuner, WithoutASwitchThatReducesTheProtocolGrowsWithTheMessage) {
  const auto protocol = [](std::int64_t bytes) { return on_8_hopper(bytes, CollectiveProtocol::automatic, false); };
  EXPECT_EQ(protocol(kKiB).protocol, CollectiveProtocol::ll);
  EXPECT_EQ(protocol(8 * kMiB).protocol, CollectiveProtocol::ll128);
  EXPECT_EQ(protocol(512 * kMiB).protocol, CollectiveProtocol::simple);
  EXPECT_EQ(protocol(512 * kMiB).algorithm, AllReduceAlgorithm::ring);
}

// NCCL's limit is 16 KiB for each channel that a peer may have, 32 here, whatever it would take for a ring.
TEST(Tuner, SendsAndReceivesTakeLlForShortMessagesAndNeverLl128) {
  const auto protocol = [](CollectiveKind kind, std::int64_t bytes) {
    TunerQuery query = gather_of(8, bytes);
    query.kind = kind;
    return choose(hopper(), query, AllReduceAlgorithm::automatic, CollectiveProtocol::automatic, 0).protocol;
  };
  for (const auto kind : {CollectiveKind::all_to_all, CollectiveKind::gather, CollectiveKind::scatter}) {
    EXPECT_EQ(protocol(kind, 4 * kMiB), CollectiveProtocol::ll);
    EXPECT_EQ(protocol(kind, 4 * kMiB + kKiB), CollectiveProtocol::simple);
    EXPECT_EQ(protocol(kind, 64 * kMiB), CollectiveProtocol::simple);
  }
  for (const auto kind : {CollectiveKind::shift, CollectiveKind::send_receive}) {
    EXPECT_EQ(protocol(kind, 512 * kKiB), CollectiveProtocol::ll);
    EXPECT_EQ(protocol(kind, 513 * kKiB), CollectiveProtocol::simple);
  }
  TunerQuery query = gather_of(8, 8 * kMiB);
  query.kind = CollectiveKind::all_to_all;
  query.user_algorithm = true;
  EXPECT_EQ(choose(hopper(), query, AllReduceAlgorithm::direct, CollectiveProtocol::automatic, 0).protocol,
            CollectiveProtocol::ll128);
}

TEST(TunerFormula, TimeIsLatencyOfTheStepsAndBytesOverBandwidth) {
  const TunerQuery query{.bytes = kMiB, .ranks = 8, .links_per_gpu = 18};
  const auto time = [&](CollectiveProtocol protocol) {
    return predicted_us(hopper(), query, AllReduceAlgorithm::ring, protocol).value();
  };
  EXPECT_NEAR(time(CollectiveProtocol::ll), 6.6 + 14 * 0.6 + kMiB * 1.75 / 141e3, 1e-9);
  EXPECT_NEAR(time(CollectiveProtocol::simple), 8.4 + 14 * 3.4 + kMiB * 1.75 / 370.8e3, 1e-9);
}

TunerQuery on_nodes(std::uint32_t nodes, std::int64_t bytes, bool in_switch = false) {
  return {.bytes = bytes,
          .ranks = 8 * nodes,
          .links_per_gpu = 18,
          .link_GBps = 25,
          .in_switch = in_switch,
          .nodes = nodes,
          .ranks_per_node = 8,
          .nic_GBps = 50};
}

// The logarithm of the nodes beats their number while latency counts, and a ring's bandwidth wins in the end.
TEST(Tuner, TakesTreesBetweenNodesForShortMessagesAndARingForLongOnes) {
  const auto choice = [](std::uint32_t nodes, std::int64_t bytes) {
    return choose(hopper(), on_nodes(nodes, bytes), AllReduceAlgorithm::automatic, CollectiveProtocol::automatic, 0);
  };
  for (const std::uint32_t nodes : {4U, 32U}) {
    EXPECT_EQ(choice(nodes, kKiB).algorithm, AllReduceAlgorithm::double_binary_tree);
    EXPECT_EQ(choice(nodes, kKiB).protocol, CollectiveProtocol::ll);
    EXPECT_EQ(choice(nodes, 16 << 20).algorithm, AllReduceAlgorithm::double_binary_tree);
    EXPECT_EQ(choice(nodes, std::int64_t{16} << 30).algorithm, AllReduceAlgorithm::ring);
  }
}

TEST(Tuner, TakesTheSwitchesOfSeveralNodesForLongMessages) {
  const auto choice = [](std::int64_t bytes) {
    return choose(hopper(), on_nodes(4, bytes, true), AllReduceAlgorithm::automatic, CollectiveProtocol::automatic, 0);
  };
  EXPECT_NE(choice(kKiB).algorithm, AllReduceAlgorithm::in_switch);
  EXPECT_EQ(choice(64 * kMiB).algorithm, AllReduceAlgorithm::in_switch);
}

TEST(TunerFormula, StepsBetweenNodesTakeTheNetworksLatency) {
  const auto time = [](AllReduceAlgorithm algorithm, CollectiveProtocol protocol) {
    return predicted_us(hopper(), on_nodes(4, kKiB), algorithm, protocol).value();
  };
  // 62 steps of a ring, 6 of them between nodes; 7 of a chain and two levels of a tree, there and back.
  const double ll = 6.6 + 56 * 0.6 * 1.8 + 6 * 2.7;
  EXPECT_NEAR(time(AllReduceAlgorithm::ring, CollectiveProtocol::ll), ll + kKiB * 62 / 32.0 / 20.4e3, 1e-9);
  const double tree = 6.8 + 2 * (7 * 0.6 * 1.8 + 2 * 5.0);
  EXPECT_NEAR(time(AllReduceAlgorithm::double_binary_tree, CollectiveProtocol::ll), tree + kKiB / (20.4e3 / 2 * .9),
              1e-9);
}

// Eight GPUs of one node and one of another, whose NIC all must pass: what nodes of 4.5 would take, by its 50 GB/s.
TEST(TunerFormula, UnequalNodesHaveTheNicsOfTheOneWithFewestRanks) {
  const TunerQuery query{.bytes = 16 * kMiB,
                         .ranks = 9,
                         .links_per_gpu = 18,
                         .link_GBps = 25,
                         .nodes = 2,
                         .ranks_per_node = 1,
                         .nic_GBps = 50};
  const auto time = [&](AllReduceAlgorithm algorithm, CollectiveProtocol protocol) {
    return predicted_us(hopper(), query, algorithm, protocol).value();
  };
  const double ring = 1.4 * (8.4 + 14 * 3.4 + 2 * 14);
  EXPECT_NEAR(time(AllReduceAlgorithm::ring, CollectiveProtocol::simple), ring + 16 * kMiB * (16 / 9.0) / 50e3, 1e-9);
  const double tree = 8.4 + 2 * (3 * 4.0 + 14);
  EXPECT_NEAR(time(AllReduceAlgorithm::double_binary_tree, CollectiveProtocol::simple),
              tree + 16 * kMiB / (2 * 50e3 * 0.92 / 2 * .7), 1e-9);
}

TEST(Tuner, WhatIsAskedForIsKeptOrRefused) {
  EXPECT_EQ(on_8_hopper(kKiB, CollectiveProtocol::simple).protocol, CollectiveProtocol::simple);
  const TunerQuery query{.bytes = kMiB, .ranks = 8, .links_per_gpu = 18, .in_switch = true};
  const TunerChoice asked = choose(hopper(), query, AllReduceAlgorithm::in_switch, CollectiveProtocol::automatic, 3);
  EXPECT_EQ(asked.algorithm, AllReduceAlgorithm::in_switch);
  EXPECT_EQ(asked.channels, 3U);
  try {
    static_cast<void>(choose(hopper(), query, AllReduceAlgorithm::in_switch, CollectiveProtocol::ll, 0));
    FAIL() << "the switch has no LL";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("expected the protocol auto or Simple, got LL"), std::string::npos)
        << e.what();
  }
}

TEST(Tuner, NoMoreChannelsThanHaveEnoughToDo) {
  const auto ll = [](std::int64_t bytes) { return channels_for(hopper(), CollectiveProtocol::ll, true, bytes, 8); };
  EXPECT_EQ(ll(kKiB), 1U);  // 512 threads of 8 B and 8 ranks: 32 KiB a channel
  EXPECT_EQ(ll(64 * kKiB), 2U);
  EXPECT_EQ(ll(kMiB), 24U);
  // 512 threads of 64 B, whatever the ranks.
  EXPECT_EQ(channels_for(hopper(), CollectiveProtocol::simple, true, 128 * kKiB, 8), 4U);
}

TEST(Protocol, SlotsAreThoseOfNcclsBuffers) {
  const auto shape = [](CollectiveProtocol protocol) { return protocol_shape(hopper(), protocol, true); };
  EXPECT_EQ(shape(CollectiveProtocol::ll).piece_bytes, 32 * kKiB);  // of 64 KiB, half of which are flags
  EXPECT_EQ(shape(CollectiveProtocol::ll128).slot_bytes, 614'400);
  EXPECT_EQ(shape(CollectiveProtocol::ll128).piece_bytes, 576'000);  // 15 of 16
  EXPECT_EQ(shape(CollectiveProtocol::simple).piece_bytes, kMiB);
  EXPECT_EQ(shape(CollectiveProtocol::simple).slots, 4U);
  // Only rings pass on slices of chunks.
  EXPECT_EQ(protocol_shape(hopper(), CollectiveProtocol::simple, false).piece_bytes, 512 * kKiB);
}

// Of 20 warps, those that move data: a sender keeps one back for fences.
TEST(Protocol, BlocksOfSendsHaveAllThreads) {
  const ProtocolShape simple = protocol_shape_of_sends(hopper(), CollectiveProtocol::simple);
  EXPECT_EQ(simple.threads, 640U);
  EXPECT_EQ(simple.extra_threads, 0U);
  EXPECT_EQ(simple.sender_sync_warps, 1U);
  const ProtocolShape ll = protocol_shape_of_sends(hopper(), CollectiveProtocol::ll);
  EXPECT_EQ(ll.threads, 640U);
  EXPECT_EQ(ll.sender_sync_warps, 0U);
}

TEST(Protocol, AStepOfSendsMayCarryLessThanItsSlotHolds) {
  CollectiveSpec library = hopper();
  library.sends.chunk_bytes = 128 * kKiB;
  const ProtocolShape simple = protocol_shape_of_sends(library, CollectiveProtocol::simple);
  EXPECT_EQ(simple.piece_bytes, 128 * kKiB);
  EXPECT_EQ(simple.slot_bytes, 512 * kKiB);
  EXPECT_EQ(protocol_shape_of_sends(library, CollectiveProtocol::ll).piece_bytes, 32 * kKiB);
  EXPECT_EQ(protocol_shape(library, CollectiveProtocol::simple, true).piece_bytes, kMiB);
}

TEST(Protocol, BlocksOfLlAndLl128MoveTheSameWords) {
  CollectiveSpec library = hopper();
  const auto rate = [&](CollectiveProtocol protocol) { return protocol_shape(library, protocol, true).block_GBps; };
  EXPECT_DOUBLE_EQ(rate(CollectiveProtocol::ll), 141.0 / 24);  // the tuner's limit of all channels
  EXPECT_DOUBLE_EQ(rate(CollectiveProtocol::ll128), 141.0 / 24 * 2 * 120 / 128);
  library.flagged_GBps = 8;
  EXPECT_DOUBLE_EQ(rate(CollectiveProtocol::ll), 4);
  EXPECT_DOUBLE_EQ(rate(CollectiveProtocol::ll128), 7.5);
  EXPECT_EQ(rate(CollectiveProtocol::simple), 0);
}

TEST(Protocol, ChunksAreCutAsTheLibrarysVersionDoes) {
  CollectiveSpec library = hopper();
  const auto shape = [&](CollectiveProtocol protocol) { return protocol_shape(library, protocol, true); };
  EXPECT_EQ(shape(CollectiveProtocol::simple).chunk_order, ChunkOrder::by_loop);
  EXPECT_EQ(shape(CollectiveProtocol::ll128).chunk_order, ChunkOrder::by_part);
  EXPECT_EQ(shape(CollectiveProtocol::ll128).chunk_unit, 19'200);
  EXPECT_EQ(shape(CollectiveProtocol::ll).chunk_unit, 4'096);
  library.ring.channel_shares = true;
  EXPECT_EQ(shape(CollectiveProtocol::simple).chunk_order, ChunkOrder::by_channel);
  EXPECT_EQ(shape(CollectiveProtocol::ll128).chunk_unit, 8'192);
  EXPECT_EQ(shape(CollectiveProtocol::ll).chunk_unit, 2'048);
}

TEST(Tuner, TakesAllPairsWhereTheLibraryHasATableOfThem) {
  CollectiveSpec library = hopper();
  library.tuner.direct = {8, kKiB, 512 * kKiB, 20 * kMiB, 64};
  const auto on = [&](std::uint32_t ranks, std::int64_t bytes, AllReduceAlgorithm wanted) {
    return choose(library, {.bytes = bytes, .ranks = ranks, .links_per_gpu = 18}, wanted, CollectiveProtocol::automatic,
                  0);
  };
  const auto automatic = AllReduceAlgorithm::automatic;
  EXPECT_EQ(on(8, kKiB / 2, automatic).algorithm, AllReduceAlgorithm::ring);
  EXPECT_EQ(on(8, 256 * kKiB, automatic).algorithm, AllReduceAlgorithm::direct);
  EXPECT_EQ(on(8, 256 * kKiB, automatic).protocol, CollectiveProtocol::ll);
  EXPECT_EQ(on(8, 512 * kKiB, automatic).protocol, CollectiveProtocol::simple);
  EXPECT_EQ(on(8, 20 * kMiB, automatic).channels, 64U);
  EXPECT_EQ(on(8, 32 * kMiB, automatic).algorithm, AllReduceAlgorithm::ring);
  EXPECT_EQ(on(4, 256 * kKiB, automatic).algorithm, AllReduceAlgorithm::ring);
  EXPECT_EQ(on(8, 256 * kKiB, AllReduceAlgorithm::ring).algorithm, AllReduceAlgorithm::ring);
}

}  // namespace
}  // namespace weft
