// What a collective costs while it waits, and while it moves.
#include "cli/run/collective_phases.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

OperationRecord kernel(double start_us, double end_us, const SlowdownByCause& causes) {
  OperationRecord operation;
  operation.start_s = start_us * 1e-6;
  operation.end_s = end_us * 1e-6;
  operation.causes = causes;
  return operation;
}

class CollectivePhasesTest : public ::testing::Test {
 protected:
  // Waits from 0 to 100 us, moves until 150.
  SlowdownByCause waiting(double start_us, double end_us) const {
    std::vector<OperationRecord> one{kernel(start_us, end_us, {10, 6, 4, 0})};
    place_beside({{{{Time(), microseconds(100)}}, {{microseconds(100), microseconds(150)}}}}, one);
    return caused_by_waiting(one.front());
  }
};

TEST_F(CollectivePhasesTest, BesideAWaitingOneAllIsItsDoing) {
  EXPECT_DOUBLE_EQ(waiting(10, 60).compute_units, 10);
  EXPECT_DOUBLE_EQ(waiting(10, 60).hbm, 6);
}

TEST_F(CollectivePhasesTest, MemoryIsTheDoingOfWhoMovesUnitsOfBothByTime) {
  EXPECT_NEAR(waiting(70, 110).compute_units, 7.5, 1e-9);
  EXPECT_EQ(waiting(70, 110).hbm, 0);
  EXPECT_EQ(waiting(70, 110).cache, 0);
  EXPECT_EQ(waiting(110, 140).compute_units, 0);
}

TEST_F(CollectivePhasesTest, AfterwardsItIsWhoMoved) {
  EXPECT_EQ(waiting(160, 170).compute_units, 0);
  EXPECT_EQ(waiting(160, 170).cache, 0);
}

}  // namespace
}  // namespace weft
