// Collectives in the switch on registered buffers, carried out with integers: what stands in the receive buffers at the
// end is what the collective is, pulled or pushed, in loops or in waves, whichever agent goes first.
#include "gpu_model/in_switch_registered.h"

#include <gtest/gtest.h>

#include <map>

#include "network/schedule_values.h"
#include "tests/gpu_model/phase_agents.h"

namespace weft {
namespace {

constexpr std::int64_t kReceive = std::int64_t{1} << 17;  // in lines
constexpr std::uint32_t kRoot = 1;

struct Shape {
  CollectiveKind kind;
  std::uint32_t ranks;
  InSwitchForm form = InSwitchForm::pull;
  std::uint32_t waves = 0;
  std::int64_t wave_lines = 0;
};

class Bench : public PhaseAgents {
 public:
  // `lines` of a rank's part: of all but reduce_scatter, what it gives.
  Bench(const Shape& shape, std::int64_t lines) : shape_(shape), lines_(lines) {
    place_.spec.channels = 2;
    place_.spec.form = shape.form;
    place_.spec.waves = shape.waves;
    place_.spec.wave_bytes = shape.wave_lines * kLineBytes;
    place_.kind = shape.kind;
    place_.root = kRoot;
    place_.bytes = lines * kLineBytes;
    place_.ranks = shape.ranks;
    place_.registered = true;
    place_.registered_warps = 3;
    place_.lines_per_round = 4;
    place_.receive_address = kReceive * kLineBytes;
    const std::int64_t given = lines * (shape.kind == CollectiveKind::reduce_scatter ? shape.ranks : 1);
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) place_.group.push_back(GpuId{rank});
    for (std::uint32_t rank = 0; rank < shape.ranks; ++rank) {
      for (std::int64_t l = 0; l < given; ++l) memory_[{rank, l}] = element_value(rank, l);
      add(rank, registered_in_switch_programs(place_, rank));
    }
  }

  // Whether the switch holds a sum that has not left.
  [[nodiscard]] bool holds_sums() const { return !sums_.empty(); }

  // What rank must have in line l of its receive buffer; 0: nothing.
  [[nodiscard]] std::uint64_t expected(std::uint32_t rank, std::int64_t l) const {
    const auto sum = [&](std::int64_t at) {
      std::uint64_t all = 0;
      for (std::uint32_t r = 0; r < shape_.ranks; ++r) all += element_value(r, at);
      return all;
    };
    switch (shape_.kind) {
      case CollectiveKind::all_reduce:
        return l < lines_ ? sum(l) : 0;
      case CollectiveKind::reduce:
        return l < lines_ && rank == kRoot ? sum(l) : 0;
      case CollectiveKind::reduce_scatter:
        return l < lines_ ? sum(rank * lines_ + l) : 0;
      case CollectiveKind::broadcast:
        return l < lines_ ? element_value(kRoot, l) : 0;
      case CollectiveKind::all_gather:
        return element_value(static_cast<std::uint32_t>(l / lines_), l % lines_);
      default:
        return 0;
    }
  }
  void expect_results() {
    for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank) {
      for (std::int64_t l = 0; l < lines_ * shape_.ranks; ++l) {
        const auto found = memory_.find({rank, kReceive + l});
        ASSERT_EQ(found == memory_.end() ? 0 : found->second, expected(rank, l)) << "rank " << rank << ", line " << l;
      }
    }
  }

 private:
  struct Sum {
    std::uint64_t value = 0;
    std::uint32_t contributions = 0;
  };

  void write(std::uint32_t rank, std::int64_t line, std::uint64_t value) {
    ASSERT_TRUE(memory_.emplace(std::pair{rank, line}, value).second) << "written twice: " << line;
  }
  void execute(std::uint32_t gpu, const Phase& phase) override {
    ASSERT_EQ(phase.load_count, phase.store_count);
    for (std::uint32_t l = 0; phase.load_count > 0 && l < phase.loads[0].lines; ++l) {
      const LineStream& from = phase.loads[0];
      const LineStream& to = phase.stores[0];
      std::uint64_t value = 0;
      for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank) {
        if (from.target == Target::multicast || rank == gpu) value += memory_.at({rank, from.first + l});
      }
      if (to.adds) {
        Sum& sum = sums_[to.first + l];
        sum.value += value;
        if (++sum.contributions < shape_.ranks) continue;
        value = sum.value;
        sums_.erase(to.first + l);
      }
      for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank) {
        if (to.target == Target::multicast || rank == gpu) write(rank, to.first + l, value);
        if (to.arrival_flag != kNoFlag) ++flags_[{rank, to.arrival_flag}];
      }
    }
    for (std::size_t p = 0; p < phase.post_count; ++p) {
      for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank) ++flags_[{rank, phase.posts[p].flag}];
    }
  }

  Shape shape_;
  std::int64_t lines_;
  InSwitchPlace place_;
  std::map<std::int64_t, Sum> sums_;  // that the switch holds, by line
};

void expect_all(CollectiveKind kind, InSwitchForm form) {
  for (const std::uint32_t ranks : {2U, 5U}) {
    for (const auto& [waves, wave_lines] : {std::pair{0U, 0}, {1U, 1}, {2U, 7}, {4U, 64}, {64U, 16}}) {
      for (const std::int64_t lines : {1, 7, 150}) {
        for (const bool backwards : {false, true}) {
          SCOPED_TRACE(testing::Message() << to_string(kind) << " of " << ranks << " ranks, " << lines << " lines, "
                                          << waves << " waves of " << wave_lines);
          Bench bench({kind, ranks, form, waves, wave_lines}, lines);
          ASSERT_TRUE(bench.run(backwards));
          EXPECT_FALSE(bench.holds_sums());
          bench.expect_results();
        }
      }
    }
  }
}

TEST(InSwitchRegistered, PulledCollectivesAreWhatTheyAre) {
  for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
                          CollectiveKind::broadcast, CollectiveKind::reduce}) {
    expect_all(kind, InSwitchForm::pull);
  }
}

TEST(InSwitchRegistered, PushedAllReduceSumsOnce) { expect_all(CollectiveKind::all_reduce, InSwitchForm::push); }

TEST(InSwitchRegistered, ABarrierEndsWhenAllHaveCome) {
  Bench bench({CollectiveKind::barrier, 3}, 0);
  EXPECT_TRUE(bench.run(false));
}

}  // namespace
}  // namespace weft
