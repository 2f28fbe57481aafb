// Phases of collectives in lines that stand for several.
#include "gpu_model/coarse_programs.h"

#include <gtest/gtest.h>

#include "gpu_model/phase_lines.h"

namespace weft {
namespace {

WarpScript copies(std::uint32_t pieces, std::int64_t bytes, std::uint32_t in_flight) {
  WarpScript script;
  script.lines_in_flight = in_flight;
  for (std::uint32_t i = 0; i < pieces; ++i) {
    Phase phase;
    phase.load(lines(i * bytes, bytes));
    phase.store(lines((pieces + i) * bytes, bytes, Target::remote, 1));
    phase.wait({i, 1});
    phase.post({i + 1, Target::remote, 1});
    set_rounds(phase, 16, 8);
    script.phases.push_back(phase);
  }
  return script;
}

std::shared_ptr<const BlockPrograms> programs_of(WarpScript script) {
  std::vector<std::vector<WarpScript>> blocks(1);
  blocks.front().push_back(std::move(script));
  return std::make_shared<WrittenPrograms>(std::move(blocks));
}

constexpr std::uint32_t kNoLimit = 1U << 20;

TEST(CoarsePrograms, HaveTheSamePhasesOfFewerLines) {
  const auto fine = programs_of(copies(3, 64 << 10, 128));
  const auto told = coarse(fine, 8);
  EXPECT_EQ(told->blocks(), 1U);
  EXPECT_EQ(told->groups(0), 1U);
  EXPECT_EQ(told->lines_in_flight(0, 0), 16U);
  const auto cursor = told->start(0, 0);
  const auto before = fine->start(0, 0);
  Phase phase, was;
  std::unique_ptr<PhaseCursor> second;
  for (std::uint32_t i = 0; i < 3; ++i) {
    if (i == 1) second = cursor->clone();
    ASSERT_TRUE(cursor->next(phase) && before->next(was));
    EXPECT_EQ(phase.loads[0].lines, was.loads[0].lines / 8);
    EXPECT_EQ(phase.loads[0].first, was.loads[0].first / 8);
    EXPECT_EQ(phase.stores[0].first, was.stores[0].first / 8);
    EXPECT_EQ(phase.stores[0].target, Target::remote);
    EXPECT_EQ(phase.rounds, was.rounds);
    EXPECT_EQ(phase.waits[0].flag, was.waits[0].flag);
    EXPECT_EQ(phase.posts[0].flag, was.posts[0].flag);
  }
  EXPECT_FALSE(cursor->next(phase));
  ASSERT_TRUE(second->next(phase));
  EXPECT_EQ(phase.loads[0].first, (64U << 10) / kLineBytes / 8);
}

TEST(CoarsePrograms, FillTheLastLine) {
  Phase phase;
  const auto told = coarse(programs_of(copies(1, 1000, 128)), 4);
  ASSERT_TRUE(told->start(0, 0)->next(phase));
  EXPECT_EQ(phase.loads[0].lines, 2U);  // 8 lines
  EXPECT_EQ(phase.loads[0].first_sectors, 15);
  EXPECT_EQ(phase.loads[0].last_sectors, 15);
}

TEST(CoarsePrograms, AreAsCoarseAsPiecesAndWhatIsInFlightAllow) {
  EXPECT_EQ(coarsest_grain(*programs_of(copies(3, 64 << 10, 1024)), kNoLimit), 32U);  // at most
  EXPECT_EQ(coarsest_grain(*programs_of(copies(3, 64 << 10, 100)), kNoLimit), 4U);    // 6 times 16
  EXPECT_EQ(coarsest_grain(*programs_of(copies(3, 64 << 10, 256)), 40), 2U);          // of the unit
  EXPECT_EQ(coarsest_grain(*programs_of(copies(3, 8 << 10, 256)), kNoLimit), 4U);     // pieces of 64 lines
  EXPECT_EQ(coarsest_grain(*programs_of(copies(3, 1 << 10, 256)), kNoLimit), 1U);
}

TEST(CoarsePrograms, FewerInFlightWillDoOfWhatASwitchSums) {
  WarpScript sums = copies(3, 64 << 10, 100);
  for (Phase& phase : sums.phases) phase.loads[0].target = Target::multicast;
  EXPECT_EQ(coarsest_grain(*programs_of(sums), kNoLimit), 4U);
  EXPECT_EQ(coarsest_grain(*programs_of(sums), kNoLimit, 8), 8U);
  EXPECT_EQ(coarsest_grain(*programs_of(copies(3, 64 << 10, 100)), kNoLimit, 8), 4U);  // it sums nothing
}

TEST(CoarsePrograms, NotWhereLinesHaveFlagsOrAreAddedTo) {
  const auto with = [](auto&& change) {
    WarpScript script = copies(3, 64 << 10, 256);
    change(script.phases[1]);
    return coarsest_grain(*programs_of(std::move(script)), kNoLimit);
  };
  EXPECT_EQ(with([](Phase&) {}), 16U);
  EXPECT_EQ(with([](Phase& phase) { phase.stores[0].arrival_flag = 3; }), 1U);
  EXPECT_EQ(with([](Phase& phase) { phase.loads[0].arrival_flag = 3; }), 1U);
  EXPECT_EQ(with([](Phase& phase) { phase.stores[0].adds = true; }), 1U);
  EXPECT_EQ(with([](Phase& phase) { phase.stores[0].target = Target::tree; }), 1U);
  EXPECT_EQ(with([](Phase& phase) { phase.posts[0].target = Target::launch; }), 1U);
}

TEST(CoarsePrograms, TheFirstBlockMayHaveNothingToDo) {
  WarpScript flagged = copies(3, 64 << 10, 256);
  flagged.phases[1].stores[0].arrival_flag = 3;
  const std::vector<std::vector<WarpScript>> blocks{{WarpScript{}}, {flagged}};
  EXPECT_EQ(coarsest_grain(WrittenPrograms(blocks), kNoLimit), 1U);
}

}  // namespace
}  // namespace weft
