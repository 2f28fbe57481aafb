// The check of schedules finds what is wrong: every single change of a right one.
#include "network/schedule_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "network/collective_algorithm.h"
#include "sim/error.h"

namespace weft {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kSlots = 4;

// Another schedule with one step changed.
class Changed : public CollectiveSchedule {
 public:
  using Change = std::function<void(ScheduleStep&)>;
  Changed(const CollectiveSchedule& right, std::uint32_t rank, std::uint32_t group, std::uint64_t index, Change change)
      : right_(right), rank_(rank), group_(group), index_(index), change_(std::move(change)) {}

  [[nodiscard]] std::uint32_t ranks() const override { return right_.ranks(); }
  [[nodiscard]] std::int64_t input_bytes(std::uint32_t rank) const override { return right_.input_bytes(rank); }
  [[nodiscard]] std::int64_t output_bytes(std::uint32_t rank) const override { return right_.output_bytes(rank); }
  [[nodiscard]] std::int64_t scratch_bytes(std::uint32_t rank) const override { return right_.scratch_bytes(rank); }
  [[nodiscard]] std::uint32_t blocks(std::uint32_t rank) const override { return right_.blocks(rank); }
  [[nodiscard]] std::uint32_t groups(std::uint32_t rank, std::uint32_t block) const override {
    return right_.groups(rank, block);
  }
  [[nodiscard]] std::uint64_t steps(std::uint32_t rank, std::uint32_t block, std::uint32_t group) const override {
    return right_.steps(rank, block, group);
  }
  [[nodiscard]] ScheduleStep step(std::uint32_t rank, std::uint32_t block, std::uint32_t group,
                                  std::uint64_t index) const override {
    ScheduleStep step = right_.step(rank, block, group, index);
    if (block == 0 && rank == rank_ && group == group_ && index == index_) change_(step);
    return step;
  }

 private:
  const CollectiveSchedule& right_;
  std::uint32_t rank_;
  std::uint32_t group_;
  std::uint64_t index_;
  Change change_;
};

std::string error_of(const CollectiveSchedule& schedule, const ScheduleRequest& request, std::uint32_t slots) {
  try {
    (void)check_schedule(schedule, request, slots);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// Changes each step in turn; `change` returns false where it changes nothing.
void expect_found(CollectiveAlgorithm algorithm, const ScheduleRequest& request,
                  const std::function<bool(ScheduleStep&)>& change) {
  const auto right = make_schedule(algorithm, request);
  std::uint32_t changed = 0;
  for (std::uint32_t rank = 0; rank < right->ranks(); ++rank) {
    for (std::uint32_t group = 0; group < right->groups(rank, 0); ++group) {
      for (std::uint64_t index = 0; index < right->steps(rank, 0, group); ++index) {
        ScheduleStep step = right->step(rank, 0, group, index);
        if (step.idle() || !change(step)) continue;
        ++changed;
        const Changed wrong(*right, rank, group, index, [&](ScheduleStep& s) { (void)change(s); });
        EXPECT_NE(error_of(wrong, request, kSlots), "no error")
            << to_string(algorithm) << " " << to_string(request.kind) << ": rank " << rank << ", group " << group
            << ", step " << index;
      }
    }
  }
  EXPECT_GT(changed, 0U) << to_string(algorithm);
}

ScheduleRequest request(CollectiveKind kind) {
  return {.kind = kind,
          .bytes = kind == CollectiveKind::barrier ? 0 : 4096 + 516,
          .ranks = 5,
          .piece_bytes = 1024,
          .ranks_per_node = 5};
}

constexpr std::array kKinds{CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                            CollectiveKind::broadcast,  CollectiveKind::reduce,     CollectiveKind::all_to_all,
                            CollectiveKind::gather,     CollectiveKind::scatter,    CollectiveKind::shift,
                            CollectiveKind::barrier};

void expect_found_everywhere(const std::function<bool(ScheduleStep&)>& change) {
  for (const CollectiveAlgorithm algorithm : kCollectiveAlgorithms) {
    for (const CollectiveKind kind : kKinds) {
      if (supports(algorithm, kind)) expect_found(algorithm, request(kind), change);
    }
  }
}

TEST(ScheduleCheck, FindsEveryMissingStep) {
  expect_found_everywhere([](ScheduleStep& step) {
    step = {};
    return true;
  });
}

TEST(ScheduleCheck, FindsEveryMessageToAnotherRank) {
  expect_found_everywhere([](ScheduleStep& step) {
    for (std::size_t i = 0; i < step.send_count; ++i) step.sends_to.at(i) = (step.sends_to.at(i) + 1) % 5;
    return step.send_count > 0;
  });
}

TEST(ScheduleCheck, FindsEveryShiftedRange) {
  for (const CollectiveAlgorithm algorithm : kCollectiveAlgorithms) {
    expect_found(algorithm, request(CollectiveKind::all_reduce), [](ScheduleStep& step) {
      if (step.source == ScheduleBuffer::none) return false;
      step.source_offset += step.source_offset > 0 ? -4 : 4;
      return true;
    });
    expect_found(algorithm, request(CollectiveKind::all_reduce), [](ScheduleStep& step) {
      if (step.destination == ScheduleBuffer::none) return false;
      step.destination_offset += step.destination_offset > 0 ? -4 : 4;
      return true;
    });
  }
}

TEST(ScheduleCheck, FindsEveryShorterPiece) {
  expect_found(CollectiveAlgorithm::ring, request(CollectiveKind::all_reduce), [](ScheduleStep& step) {
    step.bytes -= 4;
    return true;
  });
}

TEST(ScheduleCheck, FindsEveryForgottenContribution) {
  expect_found(CollectiveAlgorithm::ring, request(CollectiveKind::all_reduce), [](ScheduleStep& step) {
    if (step.source == ScheduleBuffer::none) return false;
    step.source = ScheduleBuffer::none;
    return true;
  });
}

TEST(ScheduleCheck, NamesTheMissingRank) {
  const ScheduleRequest r = request(CollectiveKind::reduce);
  const auto right = make_schedule(CollectiveAlgorithm::ring, r);
  const Changed wrong(*right, 3, 0, 0, [](ScheduleStep& step) { step.source = ScheduleBuffer::none; });
  EXPECT_THAT(error_of(wrong, r, kSlots), HasSubstr("expected the sum of element 0 of all ranks, got no contribution "
                                                    "of rank 3"));
}

TEST(ScheduleCheck, NamesTheCircleOfADeadlock) {
  // A ring whose connections hold no more than the chunk that each rank sends first.
  ScheduleRequest r = request(CollectiveKind::all_reduce);
  r.bytes = 5 * 4096;
  EXPECT_THAT(error_of(*make_schedule(CollectiveAlgorithm::ring, r), r, 1),
              HasSubstr("rank 0 waits for rank 1 waits for rank 2 waits for rank 3 waits for rank 4 waits for rank 0"));
}

TEST(ScheduleCheck, WantsTheBuffersOfTheCollective) {
  const auto schedule = make_schedule(CollectiveAlgorithm::ring, request(CollectiveKind::all_reduce));
  ScheduleRequest other = request(CollectiveKind::all_reduce);
  other.bytes += 4;
  EXPECT_THAT(error_of(*schedule, other, kSlots), HasSubstr("rank 0: expected an input of 4616 B, got 4612 B"));
}

}  // namespace
}  // namespace weft
