// Schedules of collectives, carried out with integers: one value a byte, all ranks and channels.
#include "network/ring_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <random>

namespace weft {
namespace {

using Values = std::vector<std::int64_t>;

// NCCL's shape with smaller buffers: chunks of 16 KiB, slices of up to 8 KiB.
RingSpec small_ring() {
  RingSpec spec;
  spec.channels = 4;
  spec.buffer_bytes = 32 << 10;
  return spec;
}

struct Parcel {
  std::int64_t offset;
  Values values;
};

class Collective {
 public:
  Collective(CollectiveKind kind, std::uint32_t ranks, std::uint32_t channels, std::int64_t bytes)
      : sent(ranks, 0), kind_(kind), ranks_(ranks), channels_(channels), bytes_(bytes) {
    std::mt19937 random(ranks * 131 + channels);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      Values values(static_cast<std::size_t>(bytes));
      for (auto& value : values) value = random() % 1'000'000;
      input.push_back(std::move(values));
      output.emplace_back(static_cast<std::size_t>(bytes), -1);
    }
  }

  void run() {
    for (std::uint32_t channel = 0; channel < channels_; ++channel) run(channel);
  }

  std::vector<Values> input;
  std::vector<Values> output;
  std::vector<std::int64_t> sent;

 private:
  void run(std::uint32_t channel) {
    std::vector<std::vector<RingSlice>> schedules;
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      schedules.push_back(ring_schedule(kind_, small_ring(), bytes_, r, ranks_, channel, channels_));
    }
    std::vector<std::size_t> next(ranks_, 0);
    std::vector<std::deque<Parcel>> inbox(ranks_);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t r = 0; r < ranks_; ++r) {
        while (next[r] < schedules[r].size() && step(r, schedules[r][next[r]], inbox)) {
          ++next[r];
          moved = true;
        }
      }
    }
    for (std::uint32_t r = 0; r < ranks_; ++r) {
      ASSERT_EQ(next[r], schedules[r].size()) << "rank " << r << " is stuck";
      ASSERT_TRUE(inbox[r].empty()) << "nobody takes what came to rank " << r;
    }
  }

  // False when what the slice receives has not come.
  bool step(std::uint32_t r, const RingSlice& slice, std::vector<std::deque<Parcel>>& inbox) {
    if (slice.receives && inbox[r].empty()) return false;
    EXPECT_GT(slice.bytes, 0);
    EXPECT_LE(slice.offset + slice.bytes, bytes_);
    EXPECT_LE(slice.bytes, small_ring().buffer_bytes / 4);  // a slot of the FIFO
    const auto from = static_cast<std::size_t>(slice.offset);
    const auto size = static_cast<std::size_t>(slice.bytes);
    Values values(size, 0);
    if (slice.receives) {
      EXPECT_EQ(inbox[r].front().offset, slice.offset);
      EXPECT_EQ(inbox[r].front().values.size(), size);
      if (inbox[r].front().values.size() == size) values = inbox[r].front().values;
      inbox[r].pop_front();
    }
    if (slice.uses_input) {
      for (std::size_t i = 0; i < size; ++i) values[i] += input[r][from + i];
    }
    if (slice.keeps) std::copy(values.begin(), values.end(), output[r].begin() + slice.offset);
    if (slice.sends) {
      sent[r] += slice.bytes;
      inbox[(r + 1) % ranks_].push_back({slice.offset, std::move(values)});
    }
    return true;
  }

  CollectiveKind kind_;
  std::uint32_t ranks_;
  std::uint32_t channels_;
  std::int64_t bytes_;
};

Values sum_of(const std::vector<Values>& inputs) {
  Values sum(inputs.front().size(), 0);
  for (const Values& values : inputs) {
    std::transform(sum.begin(), sum.end(), values.begin(), sum.begin(), std::plus<>());
  }
  return sum;
}

constexpr std::uint32_t kRanks[] = {2, 3, 4, 5, 7, 8, 9, 16, 17};

template <class Check>
void for_all(CollectiveKind kind, bool multiple_of_ranks, Check&& check) {
  for (const std::uint32_t ranks : kRanks) {
    for (const std::uint32_t channels : {1U, 3U}) {
      for (const std::int64_t size : {1, 127, 4096, 10'007, 100'003}) {
        const std::int64_t bytes = multiple_of_ranks ? (size + ranks - 1) / ranks * ranks : size;
        SCOPED_TRACE(testing::Message() << ranks << " ranks, " << channels << " channels, " << bytes << " B");
        Collective collective(kind, ranks, channels, bytes);
        collective.run();
        if (testing::Test::HasFailure()) return;
        check(collective, ranks, bytes);
      }
    }
  }
}

TEST(RingSchedule, AllReduceLeavesTheSumEverywhere) {
  for_all(CollectiveKind::all_reduce, false, [](const Collective& c, std::uint32_t ranks, std::int64_t) {
    const Values sum = sum_of(c.input);
    for (std::uint32_t r = 0; r < ranks; ++r) EXPECT_TRUE(c.output[r] == sum) << "rank " << r;
  });
}

TEST(RingSchedule, ReduceScatterLeavesTheSumOfItsPart) {
  for_all(CollectiveKind::reduce_scatter, true, [](const Collective& c, std::uint32_t ranks, std::int64_t bytes) {
    const Values sum = sum_of(c.input);
    const std::int64_t part = bytes / ranks;
    for (std::int64_t r = 0; r < ranks; ++r) {
      const Values& output = c.output[static_cast<std::size_t>(r)];
      for (std::int64_t i = 0; i < bytes; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_EQ(output[at], i / part == r ? sum[at] : -1) << "rank " << r << ", byte " << i;
      }
    }
  });
}

TEST(RingSchedule, AllGatherLeavesEveryRanksPartEverywhere) {
  for_all(CollectiveKind::all_gather, true, [](const Collective& c, std::uint32_t ranks, std::int64_t bytes) {
    const std::int64_t part = bytes / ranks;
    for (std::uint32_t r = 0; r < ranks; ++r) {
      for (std::int64_t i = 0; i < bytes; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_EQ(c.output[r][at], c.input[static_cast<std::size_t>(i / part)][at]) << "rank " << r << ", byte " << i;
      }
    }
  });
}

TEST(RingSchedule, BroadcastLeavesTheRootsMessageOnAllOthers) {
  for_all(CollectiveKind::broadcast, false, [](const Collective& c, std::uint32_t ranks, std::int64_t bytes) {
    for (std::uint32_t r = 1; r < ranks; ++r) EXPECT_TRUE(c.output[r] == c.input[0]) << "rank " << r;
    for (std::uint32_t r = 0; r < ranks; ++r) EXPECT_EQ(c.sent[r], r + 1 == ranks ? 0 : bytes);
  });
}

TEST(RingScheduleFormula, EveryRankSendsWhatTheAlgorithmTakes) {
  constexpr std::int64_t kPart = 2 * 4096;  // of a rank: whole chunks on 2 channels
  for (const std::uint32_t ranks : kRanks) {
    const auto sent = [&](CollectiveKind kind) {
      Collective collective(kind, ranks, 2, kPart * ranks);
      collective.run();
      return collective.sent;
    };
    const std::int64_t others = kPart * (ranks - 1);  // (N-1)/N * S
    for (const std::int64_t b : sent(CollectiveKind::all_reduce)) EXPECT_EQ(b, 2 * others) << ranks;
    for (const std::int64_t b : sent(CollectiveKind::reduce_scatter)) EXPECT_EQ(b, others) << ranks;
    for (const std::int64_t b : sent(CollectiveKind::all_gather)) EXPECT_EQ(b, others) << ranks;
  }
}

TEST(RingSchedule, KnowsWhatItCannotDo) {
  EXPECT_TRUE(ring_supports(CollectiveKind::all_reduce));
  EXPECT_FALSE(ring_supports(CollectiveKind::all_to_all));
}

}  // namespace
}  // namespace weft
