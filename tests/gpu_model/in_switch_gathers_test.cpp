// All-gather and reduce-scatter through staging buffers and the switch, carried out with integers, whichever agent goes
// first; and what their groups of warps do.
#include "gpu_model/in_switch_gathers.h"

#include <gtest/gtest.h>

#include "network/schedule_values.h"
#include "tests/gpu_model/phase_agents.h"

namespace weft {
namespace {

constexpr std::int64_t kReceive = std::int64_t{1} << 24;  // in lines
constexpr std::int64_t kBuffer = std::int64_t{1} << 25;
enum : std::uint32_t { kFills, kReads };

struct Shape {
  CollectiveKind kind;
  std::uint32_t ranks = 8;
  std::uint32_t channels = 1;
  bool in_place = false;
};

// `lines` of a rank's part.
InSwitchPlace place_of(const Shape& shape, std::int64_t lines) {
  InSwitchPlace place;
  place.spec.channels = shape.channels;
  place.kind = shape.kind;
  place.ranks = shape.ranks;
  place.bytes = lines * kLineBytes;
  place.fence = cycles(std::int64_t{100});
  place.poll = cycles(std::int64_t{50});
  place.receive_address = shape.in_place ? 0 : kReceive * kLineBytes;
  place.buffer = kBuffer * kLineBytes;
  for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) place.group.push_back(GpuId{rank});
  return place;
}

class Bench : public PhaseAgents {
 public:
  Bench(const Shape& shape, std::int64_t lines) : shape_(shape), lines_(lines), place_(place_of(shape, lines)) {
    const bool gathers = shape.kind == CollectiveKind::all_gather;
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
      const std::int64_t first = gathers && shape.in_place ? rank * lines : 0;
      for (std::int64_t l = 0; l < lines * (gathers ? 1 : shape.ranks); ++l) {
        memory_[{rank, first + l}] = element_value(rank, l);
      }
      add(rank, staged_gather_programs(place_, rank));
    }
  }

  void expect_results() {
    const std::int64_t receive = shape_.in_place ? 0 : kReceive;
    for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank) {
      for (std::int64_t l = 0; l < lines_ * shape_.ranks; ++l) {
        const auto part = static_cast<std::uint32_t>(l / lines_);
        if (shape_.kind == CollectiveKind::all_gather) {
          ASSERT_EQ((memory_[{rank, receive + l}]), element_value(part, l % lines_)) << "rank " << rank << ", " << l;
        } else if (part == rank) {
          std::uint64_t sum = 0;
          for (std::uint32_t r = 0; r < shape_.ranks; ++r) sum += element_value(r, l);
          const std::int64_t at = shape_.in_place ? l : l % lines_;
          ASSERT_EQ((memory_[{rank, receive + at}]), sum) << "rank " << rank << ", line " << l;
        }
      }
    }
    const std::int64_t buffer = in_switch_buffer_bytes(place_.spec, shape_.ranks, 1);
    for (const auto& [at, value] : memory_) EXPECT_LT(at.second, kBuffer + buffer / kLineBytes);
    for (const auto& [flag, count] : flags_) EXPECT_LT(flag.second, in_switch_flags(place_));
  }

 private:
  void execute(std::uint32_t gpu, const Phase& phase) override {
    ASSERT_EQ(phase.load_count, phase.store_count);
    const auto reaches = [&](Target target, std::uint32_t rank) { return target == Target::multicast || rank == gpu; };
    for (std::uint32_t l = 0; phase.load_count > 0 && l < phase.loads[0].lines; ++l) {
      std::uint64_t value = 0;
      for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank) {
        if (reaches(phase.loads[0].target, rank)) value += memory_.at({rank, phase.loads[0].first + l});
      }
      for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank) {
        if (reaches(phase.stores[0].target, rank)) memory_[{rank, phase.stores[0].first + l}] = value;
      }
    }
    for (std::size_t p = 0; p < phase.post_count; ++p) {
      for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank) {
        if (reaches(phase.posts[p].target, rank)) ++flags_[{rank, phase.posts[p].flag}];
      }
    }
  }

  Shape shape_;
  std::int64_t lines_;
  InSwitchPlace place_;
};

void expect_results_of(const Shape& shape, std::int64_t lines) {
  for (const bool backwards : {false, true}) {
    SCOPED_TRACE(testing::Message() << to_string(shape.kind) << " of " << shape.ranks << " ranks, " << shape.channels
                                    << " channels, " << lines << " lines, in place: " << shape.in_place);
    Bench bench(shape, lines);
    ASSERT_TRUE(bench.run(backwards));
    bench.expect_results();
  }
}

TEST(InSwitchGathers, AreWhatTheyAreInPlaceAndBetweenBuffers) {
  for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    for (const std::uint32_t ranks : {2U, 3U, 8U}) {
      for (const std::int64_t lines : {1, 100}) {
        for (const bool in_place : {false, true}) expect_results_of({kind, ranks, 3, in_place}, lines);
      }
    }
  }
}

// Nobody writes to a slot that somebody has yet to read.
TEST(InSwitchGathers, SlotsComeAgain) {
  for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    expect_results_of({kind, 2, 1, true}, 11 * 512 + 5);  // chunks of 64 KiB
  }
}

std::vector<Phase> phases(CollectiveKind kind, std::uint32_t group, std::int64_t lines) {
  const auto programs = staged_gather_programs(place_of({kind}, lines), 3);
  const auto cursor = programs->start(0, group);
  std::vector<Phase> all;
  for (Phase phase; cursor->next(phase);) all.push_back(phase);
  return all;
}

TEST(InSwitchGathers, AllGatherSendsToAllAndCopiesOutPieceByPiece) {
  constexpr std::int64_t kLines = 9 * 256;  // loops of 32 KiB a rank
  const std::vector<Phase> sends = phases(CollectiveKind::all_gather, kFills, kLines);
  ASSERT_EQ(sends.size(), 9U);
  for (std::size_t i = 0; i < sends.size(); ++i) {
    EXPECT_EQ(sends[i].loads[0].target, Target::local);
    EXPECT_EQ(sends[i].stores[0].target, Target::multicast);
    EXPECT_EQ(sends[i].wait_count, i < kInSwitchSlots ? 0 : 1);
    EXPECT_EQ(sends[i].delay, 0);
    EXPECT_TRUE(sends[i].fenced);
    EXPECT_EQ(sends[i].stages, 11U);
  }
  EXPECT_EQ(sends[8].stores[0].first, sends[0].stores[0].first);
  const std::vector<Phase> copies = phases(CollectiveKind::all_gather, kReads, kLines);
  ASSERT_EQ(copies.size(), 9U * 8);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    EXPECT_EQ(copies[i].wait_count, i % 8 == 0 ? 1 : 0);
    EXPECT_EQ(copies[i].post_count, i % 8 == 7 ? 1 : 0);
    EXPECT_EQ(copies[i].stages, 8U);
  }
  EXPECT_FALSE(copies[7].fenced);  // the slot was read
}

TEST(InSwitchGathers, ReduceScatterAsksAllRanksBeforeItLoads) {
  const std::vector<Phase> reduces = phases(CollectiveKind::reduce_scatter, kReads, 2 * 128);
  ASSERT_EQ(reduces.size(), 2U);
  for (const Phase& phase : reduces) {
    EXPECT_EQ(phase.delay, cycles(std::int64_t{50}));
    EXPECT_EQ(phase.loads[0].target, Target::multicast);
    EXPECT_EQ(phase.stores[0].target, Target::local);
    EXPECT_EQ(phase.waits[0].value, 8U);
    EXPECT_FALSE(phase.fenced);
    EXPECT_EQ(phase.stages, 12U);
  }
  const std::vector<Phase> copies = phases(CollectiveKind::reduce_scatter, kFills, 2 * 128);
  EXPECT_EQ(copies[0].stages, 7U);
  EXPECT_TRUE(copies[7].fenced);
}

}  // namespace
}  // namespace weft
