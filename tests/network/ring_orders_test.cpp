// Rings on GPUs that are all linked to each other: which arcs they use, and that collectives go through on them.
#include "network/ring_orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "network/collective_algorithm.h"
#include "network/schedule_check.h"
#include "sim/error.h"

namespace weft {
namespace {

// How often the cycles use each arc, by from * ranks + to.
std::vector<std::uint32_t> uses_of_arcs(const RingOrders& orders, std::uint32_t ranks) {
  std::vector<std::uint32_t> uses(std::size_t{ranks} * ranks, 0);
  for (std::uint32_t cycle = 0; cycle < orders.cycles(); ++cycle) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) ++uses.at(rank * ranks + orders.after(cycle, rank, 1));
  }
  return uses;
}

TEST(RingOrders, UseEachArcOnceOrOfFourAndSixRanksTwice) {
  for (std::uint32_t ranks = 2; ranks <= 17; ++ranks) {
    const RingOrders orders = fully_connected_rings(ranks);
    const std::uint32_t each = ranks == 4 || ranks == 6 ? 2 : 1;
    EXPECT_EQ(orders.cycles(), each * (ranks - 1));
    const auto uses = uses_of_arcs(orders, ranks);
    for (std::uint32_t arc = 0; arc < ranks * ranks; ++arc) {
      EXPECT_EQ(uses.at(arc), arc / ranks == arc % ranks ? 0 : each) << ranks << " ranks, arc " << arc;
    }
  }
}

TEST(RingOrders, LeaveOutOneMatchingOfManyRanksOfAnEvenNumber) {
  for (const std::uint32_t ranks : {18U, 64U}) {
    const RingOrders orders = fully_connected_rings(ranks);
    EXPECT_EQ(orders.cycles(), ranks - 2);
    const auto uses = uses_of_arcs(orders, ranks);
    EXPECT_EQ(*std::max_element(uses.begin(), uses.end()), 1U);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(std::count(uses.begin() + rank * ranks, uses.begin() + (rank + 1) * ranks, 1U), ranks - 2);
    }
  }
}

TEST(RingOrders, OfFourRanksAreAllSixCycles) {
  const RingOrders orders = fully_connected_rings(4);
  std::vector<std::array<std::uint32_t, 3>> cycles;
  for (std::uint32_t c = 0; c < orders.cycles(); ++c) {
    cycles.push_back({orders.after(c, 0, 1), orders.after(c, 0, 2), orders.after(c, 0, 3)});
  }
  std::sort(cycles.begin(), cycles.end());
  EXPECT_EQ(std::unique(cycles.begin(), cycles.end()), cycles.end());
  EXPECT_EQ(cycles.size(), 6U);
}

TEST(RingOrders, RefuseWhatIsNoOrder) {
  EXPECT_THROW(RingOrders({}), InternalError);
  EXPECT_THROW(RingOrders({{0, 1, 1}}), InternalError);
  EXPECT_THROW(RingOrders({{0, 1, 2}, {0, 1}}), InternalError);
}

TEST(RingOrders, CollectivesGoThroughOnThem) {
  for (const std::uint32_t ranks : {2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 16U, 18U}) {
    const auto orders = std::make_shared<const RingOrders>(fully_connected_rings(ranks));
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
          CollectiveKind::broadcast, CollectiveKind::reduce}) {
      for (const std::int64_t elements : {7, 331, 2050}) {
        for (const bool alternate : {false, true}) {
          const ScheduleRequest request{.kind = kind,
                                        .bytes = elements * 4,
                                        .ranks = ranks,
                                        .root = static_cast<std::uint32_t>(elements) % ranks,
                                        .channels = orders->cycles() + 1,
                                        .piece_bytes = 128,
                                        .alternate_directions = alternate,
                                        .ring_orders = orders};
          SCOPED_TRACE(testing::Message() << to_string(kind) << ", " << ranks << " ranks, " << elements << " elements");
          const auto schedule = make_schedule(CollectiveAlgorithm::ring, request);
          ASSERT_NO_THROW((void)check_schedule(*schedule, request, request.pieces_per_chunk + 1));
        }
      }
    }
  }
}

TEST(RingOrders, SpreadWhatAnAllReduceSendsOverAllPeers) {
  constexpr std::uint32_t kRanks = 8;
  constexpr std::uint32_t kChannels = 14;
  const ScheduleRequest request{.bytes = std::int64_t{kChannels} * kRanks * 8192,
                                .ranks = kRanks,
                                .channels = kChannels,
                                .ring_orders = std::make_shared<const RingOrders>(fully_connected_rings(kRanks))};
  const auto schedule = make_schedule(CollectiveAlgorithm::ring, request);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    std::array<std::int64_t, kRanks> sent{};
    for (std::uint32_t block = 0; block < kChannels; ++block) {
      for (std::uint64_t i = 0; i < schedule->steps(rank, block, 0); ++i) {
        const ScheduleStep step = schedule->step(rank, block, 0, i);
        if (step.send_count == 1) sent.at(step.sends_to[0]) += step.bytes;
      }
    }
    for (std::uint32_t peer = 0; peer < kRanks; ++peer) {
      EXPECT_EQ(sent.at(peer), peer == rank ? 0 : 2 * request.bytes / kRanks) << "rank " << rank << " to " << peer;
    }
  }
}

TEST(RingOrders, OfOtherRanksAreRefused) {
  const ScheduleRequest request{
      .bytes = 4096, .ranks = 8, .ring_orders = std::make_shared<const RingOrders>(fully_connected_rings(4))};
  EXPECT_THROW((void)make_schedule(CollectiveAlgorithm::ring, request), InputError);
}

}  // namespace
}  // namespace weft
