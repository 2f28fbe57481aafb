// Phases from the steps of schedules: flags, buffers and fences of each protocol.
#include "gpu_model/schedule_programs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "network/collective_algorithm.h"
#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

constexpr std::int64_t kPiece = 8192;

struct Plan {
  Plan(CollectiveProtocol protocol, std::uint32_t ranks, std::int64_t bytes, bool receiver_reads = false,
       CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring, std::uint32_t channels = 1,
       std::uint32_t gpus_per_node = 0, std::uint32_t gpus_per_nic = 0,
       CollectiveKind kind = CollectiveKind::all_reduce, std::uint32_t gpus_per_process = 0) {
    CollectiveSpec library;
    library.ring.channels = 1;
    library.ring.receiver_reads = receiver_reads;
    SchedulePlace place;
    place.gpu = &gpu;
    place.protocol = protocol_shape(library, protocol, true);
    place.protocol.piece_bytes = kPiece;
    place.fence = cycles(std::int64_t{7});
    place.proxy_latency = cycles(std::int64_t{9});
    place.gpus_per_node = gpus_per_node;
    place.gpus_per_nic = gpus_per_nic;
    place.gpus_per_process = gpus_per_process;
    std::vector<GpuId> group;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) group.push_back(GpuId{rank + 10});
    place.group = group;
    place.buffer_end = gpu.hbm.bytes;
    place.first_flag = 100;
    const ScheduleRequest request{.kind = kind,
                                  .bytes = bytes,
                                  .ranks = ranks,
                                  .channels = channels,
                                  .piece_bytes = kPiece,
                                  .pieces_per_chunk = 1,
                                  .ranks_per_node = gpus_per_node};
    std::shared_ptr<const CollectiveSchedule> schedule = make_schedule(algorithm, request);
    layout = std::make_shared<const ScheduleLayout>(schedule, place);
  }
  [[nodiscard]] std::vector<Phase> phases(std::uint32_t rank, std::uint32_t block = 0, std::uint32_t group = 0) const {
    const auto programs = schedule_programs(layout, rank);
    const auto cursor = programs->start(block, group);
    std::vector<Phase> all;
    for (Phase phase; cursor->next(phase);) all.push_back(phase);
    return all;
  }
  GpuSpec gpu = small_gpu();
  std::shared_ptr<const ScheduleLayout> layout;
};

TEST(SchedulePrograms, SimpleWaitsForAFlagAndPostsOneBehindAFence) {
  const Plan plan(CollectiveProtocol::simple, 2, 2 * kPiece);
  const std::vector<Phase> phases = plan.phases(0);
  ASSERT_EQ(phases.size(), 3U);
  const Phase& sends = phases[0];
  EXPECT_EQ(sends.wait_count, 0);
  EXPECT_TRUE(sends.fenced);
  EXPECT_EQ(sends.fence, cycles(std::int64_t{7}));
  EXPECT_EQ(sends.stores[0].target, Target::remote);
  EXPECT_EQ(sends.stores[0].gpu, 11);
  EXPECT_EQ(sends.stores[0].lines, kPiece / kLineBytes);
  EXPECT_EQ(sends.stores[0].arrival_flag, kNoFlag);
  // The last one only keeps what has come: it gives the slot back, and nobody waits for its stores.
  const Phase& keeps = phases[2];
  ASSERT_EQ(keeps.wait_count, 1);
  EXPECT_EQ(keeps.waits[0].value, 2U);
  ASSERT_EQ(keeps.post_count, 1);
  EXPECT_FALSE(keeps.fenced);
  EXPECT_EQ(keeps.loads[0].target, Target::local);
}

// GPUs 10 and 11 are one process's, 12 and 13 another one's.
TEST(SchedulePrograms, WithinAProcessWhatIsCompleteGoesToTheNextRanksOutput) {
  const Plan plan(CollectiveProtocol::simple, 4, 4 * kPiece, false, CollectiveAlgorithm::ring, 1, 0, 0,
                  CollectiveKind::all_reduce, 2);
  const auto fifo = [&](std::uint32_t from, std::uint32_t to) {
    return plan.layout->connection(from, to, 0).fifo / kLineBytes;
  };
  const auto sends_to = [&](const Phase& phase) { return phase.stores[phase.store_count - 1].first; };
  // Steps of rank 0: one sends, two sum, one sums the last and sends what is complete, two pass on, one only receives.
  const std::vector<Phase> first = plan.phases(0);
  ASSERT_EQ(first.size(), 7U);
  EXPECT_EQ(sends_to(first[0]), fifo(0, 1));  // not complete
  EXPECT_LT(sends_to(first[3]), (plan.layout->address(ScheduleBuffer::output, 1) + 4 * kPiece) / kLineBytes);
  EXPECT_NE(first[6].load_count, 0);  // from another process: it is still to be copied
  // Of rank 1 the last step finds it where it belongs; to rank 2 it sends by the FIFO.
  const std::vector<Phase> second = plan.phases(1);
  EXPECT_GE(sends_to(second[3]), fifo(1, 2));
  EXPECT_EQ(second[6].load_count, 0);
  EXPECT_EQ(second[6].store_count, 0);
  EXPECT_EQ(second[6].wait_count, 1);
}

TEST(SchedulePrograms, LlMovesTwiceTheLinesWithFlagsInThemAndNeitherFenceNorFlag) {
  const Plan plan(CollectiveProtocol::ll, 2, 2 * kPiece);
  const std::vector<Phase> phases = plan.phases(0);
  ASSERT_EQ(phases.size(), 3U);
  EXPECT_EQ(phases[0].post_count, 0);
  EXPECT_EQ(phases[0].stores[0].lines, 2 * kPiece / kLineBytes);
  EXPECT_NE(phases[0].stores[0].arrival_flag, kNoFlag);
  // What comes is loaded as it arrives: the second piece counts on behind the lines of the first.
  const LineStream& first = phases[1].loads[1];
  EXPECT_EQ(phases[1].wait_count, 0);
  EXPECT_EQ(first.arrived_before, 0U);
  EXPECT_EQ(phases[2].loads[0].arrival_flag, first.arrival_flag);
  EXPECT_EQ(phases[2].loads[0].arrived_before, first.lines);
  for (const Phase& phase : phases) EXPECT_FALSE(phase.fenced);
}

TEST(SchedulePrograms, WhereTheReceiverReadsTheBufferIsTheSenders) {
  const std::vector<Phase> phases = Plan(CollectiveProtocol::simple, 2, 2 * kPiece, true).phases(0);
  EXPECT_EQ(phases[0].stores[0].target, Target::local);
  EXPECT_EQ(phases[1].loads[1].target, Target::remote);
  EXPECT_EQ(phases[1].loads[1].gpu, 11);
}

TEST(SchedulePrograms, ASlotIsTakenAgainOnlyWhenItsPieceWasTaken) {
  const Plan plan(CollectiveProtocol::simple, 2, 20 * kPiece);
  const std::uint32_t slots = plan.layout->place().protocol.slots;
  const std::uint32_t taken = plan.layout->connection(0, 1, 0).taken;
  std::uint32_t sent = 0;
  for (const Phase& phase : plan.phases(0)) {
    bool sends = false;
    for (std::uint32_t i = 0; i < phase.store_count; ++i) sends = sends || phase.stores[i].target == Target::remote;
    if (!sends) continue;
    ++sent;
    std::uint32_t waits_for = 0;
    for (std::uint32_t i = 0; i < phase.wait_count; ++i) {
      if (phase.waits[i].flag == taken) waits_for = phase.waits[i].value;
    }
    EXPECT_EQ(waits_for, sent > slots ? sent - slots : 0);
  }
  EXPECT_GT(sent, slots);
}

// Ranks are GPUs 10 and 11 on one node, 12 and 13 on the next: 11 sends to 12.
TEST(SchedulePrograms, ToAnotherNodeTheNicTakesWhatWarpsHaveStaged) {
  for (const auto protocol : {CollectiveProtocol::simple, CollectiveProtocol::ll128}) {
    const bool flagged = protocol != CollectiveProtocol::simple;
    const Plan plan(protocol, 4, 40 * kPiece, true, CollectiveAlgorithm::ring, 1, 2);
    const auto programs = schedule_programs(plan.layout, 1);
    ASSERT_EQ(programs->groups(0), 2U);
    EXPECT_FALSE(programs->by_nic(0, 0));
    EXPECT_TRUE(programs->by_nic(0, 1));
    EXPECT_EQ(schedule_programs(plan.layout, 0)->groups(0), 1U);  // it sends within its node
    const ScheduleLayout::Connection& to = plan.layout->connection(1, 2, 0);
    const Phase stages = plan.phases(1).front();
    EXPECT_EQ(stages.stores[0].target, Target::local);
    EXPECT_EQ(stages.posts[0].flag, to.filled);
    EXPECT_EQ(stages.posts[0].target, Target::local);
    EXPECT_EQ(stages.proxied_posts, 1);
    EXPECT_EQ(stages.proxy_delay, cycles(std::int64_t{9}));
    EXPECT_EQ(stages.fence, flagged ? 0 : cycles(std::int64_t{7}));
    const std::vector<Phase> sent = plan.phases(1, 0, 1);
    std::uint32_t pieces = 0;
    for (const Phase& phase : plan.phases(1)) pieces += phase.proxied_posts != 0 ? 1 : 0;
    ASSERT_EQ(sent.size(), pieces);
    const Phase& first = sent.front();
    EXPECT_EQ(first.waits[0].flag, to.filled);
    EXPECT_EQ(first.loads[0].first, stages.stores[0].first);
    EXPECT_EQ(first.stores[0].target, Target::remote);
    EXPECT_EQ(first.stores[0].gpu, 12);
    EXPECT_EQ(first.stores[0].arrival_flag, flagged ? to.come : kNoFlag);
    EXPECT_EQ(first.post_count, flagged ? 1 : 2);
    EXPECT_FALSE(first.fenced);
    const std::uint32_t slots = plan.layout->place().protocol.slots;
    ASSERT_GT(sent.size(), slots);
    EXPECT_EQ(sent[slots].waits[1].flag, to.taken);
    EXPECT_EQ(sent[slots].waits[1].value, 1U);
    // The receiver has it in its own memory, though in a node receivers read.
    const std::vector<Phase> received = plan.phases(2);
    const auto keeps = std::ranges::find_if(received, [](const Phase& phase) { return phase.load_count == 2; });
    ASSERT_NE(keeps, received.end());
    EXPECT_EQ(keeps->loads[1].target, Target::local);
    EXPECT_EQ(keeps->loads[1].first, first.stores[0].first);
  }
}

// Ranks are GPUs 10 and 11 on one node, 12 and 13 on the next: what 10 sends to 13 leaves by the NIC of 11.
TEST(SchedulePrograms, ToAnotherRailThePieceLeavesByTheNicOfTheGpuThere) {
  const Plan plan(CollectiveProtocol::simple, 4, 4 * kPiece, false, CollectiveAlgorithm::direct, 1, 2, 1,
                  CollectiveKind::all_to_all);
  const ScheduleLayout::Connection& to = plan.layout->connection(0, 3, 0);
  EXPECT_EQ(to.carrier, 1U);
  EXPECT_EQ(plan.layout->connection(0, 2, 0).carrier, 0U);
  EXPECT_EQ(plan.layout->connection(0, 1, 0).carrier, 0U);  // not by a NIC
  const std::vector<Phase> sends = plan.phases(0, 0, 6);    // to the fourth of its peers, itself the first
  const auto staged = std::ranges::find_if(
      sends, [&](const Phase& phase) { return phase.proxied_posts != 0 && phase.posts[0].target == Target::remote; });
  ASSERT_NE(staged, sends.end());
  EXPECT_EQ(staged->posts[0].flag, to.filled);
  EXPECT_EQ(staged->posts[0].gpu, 11);
  EXPECT_EQ(staged->stores[0].target, Target::remote);
  EXPECT_EQ(staged->stores[0].gpu, 11);
  EXPECT_EQ(staged->fence, cycles(std::int64_t{7}));
  // Of GPU 11: behind its eight groups of warps its own pieces to GPU 13, then those of GPU 10.
  ASSERT_EQ(schedule_programs(plan.layout, 1)->groups(0), 10U);
  const std::vector<Phase> own = plan.phases(1, 0, 8);
  const std::vector<Phase> carried = plan.phases(1, 0, 9);
  ASSERT_EQ(own.size(), 1U);
  ASSERT_EQ(carried.size(), 1U);
  EXPECT_EQ(own[0].posts[1].target, Target::local);
  EXPECT_EQ(carried[0].waits[0].flag, to.filled);
  EXPECT_EQ(carried[0].loads[0].first, staged->stores[0].first);
  EXPECT_EQ(carried[0].stores[0].gpu, 13);
  EXPECT_EQ(carried[0].posts[0].flag, to.come);
  EXPECT_EQ(carried[0].posts[1].flag, to.sent);
  EXPECT_EQ(carried[0].posts[1].target, Target::remote);
  EXPECT_EQ(carried[0].posts[1].gpu, 10);
  // That it was taken is the carrier's to know.
  const std::vector<Phase> received = plan.phases(3, 0, 7);
  EXPECT_TRUE(std::ranges::any_of(
      received, [&](const Phase& phase) { return phase.posts[0].flag == to.taken && phase.posts[0].gpu == 11; }));
  // Where both are behind one NIC, or nobody carries, it leaves by the sender's own.
  for (const std::uint32_t gpus_per_nic : {2U, 0U}) {
    const Plan other(CollectiveProtocol::simple, 4, 4 * kPiece, false, CollectiveAlgorithm::direct, 1, 2, gpus_per_nic,
                     CollectiveKind::all_to_all);
    EXPECT_EQ(other.layout->connection(0, 3, 0).carrier, 0U);
  }
}

TEST(SchedulePrograms, AGpuHasTwoFlagsAPeerAndOneForEachGroupThatIsWaitedFor) {
  const Plan plan(CollectiveProtocol::simple, 8, 64 * kPiece, false, CollectiveAlgorithm::direct);
  EXPECT_EQ(plan.layout->flags(), 2U * 7 + 1);
  EXPECT_NE(plan.layout->connection(1, 0, 0).come, plan.layout->connection(2, 0, 0).come);
}

// A group that only others of its block wait for needs no fence for other GPUs.
TEST(SchedulePrograms, StepsThatOnlyTheOwnBlockWaitsForTakeNoTimeForAFence) {
  const Plan plan(CollectiveProtocol::ll, 4, 4 * kPiece, false, CollectiveAlgorithm::direct);
  const auto cursor = schedule_programs(plan.layout, 0)->start(0, 1);  // who receives and sums
  std::uint32_t fenced = 0;
  for (Phase phase; cursor->next(phase);) {
    if (!phase.fenced) continue;
    ++fenced;
    EXPECT_EQ(phase.fence, 0);
  }
  EXPECT_GT(fenced, 0U);
}

// Of four blocks, one a peer: sends a part, keeps what came, waits twice, sums, waits twice, sends and receives a sum.
TEST(SchedulePrograms, WhatOtherBlocksReadGoesBehindAFenceUnlessItIsScratchMemory) {
  const Plan plan(CollectiveProtocol::ll, 4, 4 * kPiece, false, CollectiveAlgorithm::direct, 4);
  const std::vector<Phase> phases = plan.phases(0, 1);
  ASSERT_EQ(phases.size(), 9U);
  const Phase& keeps = phases[1];
  EXPECT_TRUE(keeps.fenced);
  EXPECT_EQ(keeps.fence, 0);
  EXPECT_EQ(phases[2].wait_count + phases[3].wait_count, 3);
  const Phase& sums = phases[4];
  EXPECT_EQ(sums.load_count, 3 + 1);  // what came from three peers, and the own input, copied by another block
  EXPECT_EQ(sums.store_count, 1);
  EXPECT_TRUE(sums.fenced);
  EXPECT_EQ(sums.fence, cycles(std::int64_t{7}));
}

}  // namespace
}  // namespace weft
