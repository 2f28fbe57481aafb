// In-switch all-reduces carried out with integers: every line of every rank has a value of its own, and what stands in
// the receive buffers at the end is the sum of all ranks.
#include "gpu_model/in_switch_programs.h"

#include <gtest/gtest.h>

#include <tuple>

#include "gpu_model/phase_repeats.h"
#include "network/schedule_values.h"
#include "tests/gpu_model/phase_agents.h"

namespace weft {
namespace {

constexpr std::int64_t kLine = kLineBytes;
constexpr std::int64_t kSend = 0;
constexpr std::int64_t kReceive = std::int64_t{1} << 24;
constexpr std::int64_t kBuffer = std::int64_t{1} << 25;

// GPUs 0 to nodes * per_node - 1, of which the first `ranks` of each node take part.
struct Shape {
  std::uint32_t nodes, per_node, ranks, channels;
  bool registered = false;
};

class Bench : public PhaseAgents {
 public:
  Bench(const Shape& shape, std::int64_t lines) : shape_(shape), lines_(lines) {
    place_.spec.channels = shape.channels;
    place_.ranks = shape.ranks;
    place_.bytes = lines * kLine;
    place_.registered = shape.registered;
    place_.registered_warps = 4;
    place_.adds_per_cycle = 128;
    place_.send_address = kSend;
    place_.receive_address = kReceive;
    place_.buffer = kBuffer;
    for (std::uint32_t g = 0; g < shape.nodes * shape.per_node; ++g) {
      if (g % shape.per_node < shape.ranks) place_.group.push_back(GpuId{g});
    }
    for (std::uint32_t rank = 0; rank < place_.group.size(); ++rank) {
      for (std::int64_t l = 0; l < lines; ++l) memory_[{gpu(rank), l}] = element_value(rank, l);
      add(gpu(rank), in_switch_programs(place_, rank));
    }
  }

  void expect_sums() {
    const auto ranks = static_cast<std::uint32_t>(place_.group.size());
    for (std::int64_t l = 0; l < lines_; ++l) {
      std::uint64_t sum = 0;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) sum += element_value(rank, l);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        ASSERT_EQ((memory_[{gpu(rank), kReceive / kLine + l}]), sum) << "rank " << rank << ", line " << l;
      }
    }
    // Who does not take part has got nothing, neither data nor flags.
    for (const auto& [place, value] : memory_) EXPECT_LT(place.first % shape_.per_node, shape_.ranks);
    for (const auto& [flag, count] : flags_) EXPECT_LT(flag.second, in_switch_flags(place_));
  }

 private:
  [[nodiscard]] std::uint32_t gpu(std::uint32_t rank) const { return place_.group[rank].value; }
  template <class Stream>
  [[nodiscard]] std::vector<std::uint32_t> targets(std::uint32_t gpu, const Stream& to) const {
    if (to.target == Target::local) return {gpu};
    if (to.target == Target::remote) return {to.gpu};
    std::vector<std::uint32_t> members;
    for (const GpuId member : place_.group) {
      if (member.value / shape_.per_node == gpu / shape_.per_node) members.push_back(member.value);
    }
    return members;
  }
  void execute(std::uint32_t gpu, const Phase& phase) override {
    const std::uint32_t lines = phase.load_count > 0 ? phase.loads[0].lines : 0;
    std::vector<std::uint64_t> values(lines, 0);
    for (std::size_t s = 0; s < phase.load_count; ++s) {
      ASSERT_EQ(phase.loads[s].lines, lines);
      for (const std::uint32_t from : targets(gpu, phase.loads[s])) {
        for (std::uint32_t l = 0; l < lines; ++l) values[l] += memory_[{from, phase.loads[s].first + l}];
      }
    }
    for (std::size_t s = 0; s < phase.store_count; ++s) {
      ASSERT_EQ(phase.stores[s].lines, lines);
      for (const std::uint32_t to : targets(gpu, phase.stores[s])) {
        for (std::uint32_t l = 0; l < lines; ++l) memory_[{to, phase.stores[s].first + l}] = values[l];
      }
    }
    for (std::size_t p = 0; p < phase.post_count; ++p) {
      for (const std::uint32_t to : targets(gpu, phase.posts[p])) ++flags_[{to, phase.posts[p].flag}];
    }
  }

  Shape shape_;
  std::int64_t lines_;
  InSwitchPlace place_;
};

void expect_sums_of(const Shape& shape, std::int64_t lines) {
  for (const bool backwards : {false, true}) {
    SCOPED_TRACE(testing::Message() << shape.nodes << " nodes, " << shape.ranks << " ranks, " << shape.channels
                                    << " channels, " << lines << " lines");
    Bench bench(shape, lines);
    ASSERT_TRUE(bench.run(backwards));
    bench.expect_sums();
  }
}

TEST(InSwitchPrograms, SumOverTheGpusOfANode) {
  for (const std::uint32_t ranks : {2U, 3U, 8U}) {
    for (const std::int64_t lines : {1, 7, 333}) {
      expect_sums_of({1, 8, ranks, 2}, lines);
      expect_sums_of({1, 8, ranks, 2, true}, lines);
    }
  }
}

TEST(InSwitchPrograms, SumOverTheGpusOfAllNodes) {
  for (std::uint32_t nodes = 2; nodes <= 7; ++nodes) {
    for (const std::uint32_t ranks : {2U, 3U}) {
      for (const std::int64_t lines : {1, 333}) expect_sums_of({nodes, 4, ranks, 3}, lines);
    }
  }
}

// Slots of the staging buffers and of the FIFOs between nodes come again.
TEST(InSwitchPrograms, SumMessagesOfManyLoops) {
  expect_sums_of({1, 2, 2, 1}, 17 * 2 * 256 + 5);   // chunks of 64 KiB
  expect_sums_of({3, 2, 2, 1}, 17 * 2 * 1024 + 5);  // of 128 KiB
}

// Of ranks that are alike, each slot is as the one before it, and counters go on from slot to slot.
TEST(InSwitchPrograms, ATurnOfAlikeRanksIsASlot) {
  for (const bool alike : {false, true}) {
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      SCOPED_TRACE(to_string(kind));
      InSwitchPlace place;
      place.spec.channels = 1;
      place.ranks = 8;
      place.kind = kind;
      place.bytes = std::int64_t{512} << 20;
      place.buffer = kBuffer;
      place.alike_ranks = alike;
      for (std::uint32_t rank = 0; rank < place.ranks; ++rank) place.group.push_back(GpuId{rank});
      const auto programs = in_switch_programs(place, 0);
      for (std::uint32_t group = 0; group < programs->groups(0); ++group) {
        const auto cursor = programs->start(0, group);
        Phase phase;
        for (std::uint32_t i = 0; i < 128; ++i) ASSERT_TRUE(cursor->next(phase));  // slots come again
        const PhaseRepeats found = find_repeats(phase, *cursor, Turn::loop, 8);
        EXPECT_TRUE(found.period == (alike ? 1 : kInSwitchSlots) ||
                    found.period == (alike ? place.ranks : kInSwitchSlots * place.ranks))
            << found.period;
        for (const PhaseRepeats::Wait& wait : found.waits) EXPECT_TRUE(wait.by == 1 || wait.by == place.ranks);
      }
    }
  }
}

}  // namespace
}  // namespace weft
