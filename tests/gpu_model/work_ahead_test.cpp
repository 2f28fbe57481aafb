// Whose work a server has ahead.
#include "gpu_model/work_ahead.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(WorkAhead, IsNobodysWithoutCommunication) {
  WorkAhead ahead;
  EXPECT_EQ(ahead.share(0, 100), 0);
}

TEST(WorkAhead, IsSharedByWorkAndDoneEvenly) {
  WorkAhead ahead;
  ahead.add(0, 60, 20);  // behind 60 of others
  EXPECT_DOUBLE_EQ(ahead.share(0, 80), 0.25);
  EXPECT_DOUBLE_EQ(ahead.share(40, 80), 0.25);      // 10 of 40 are left
  EXPECT_DOUBLE_EQ(ahead.share(40, 100), 1.0 / 6);  // others added 20
  ahead.add(40, 100, 20);
  EXPECT_DOUBLE_EQ(ahead.share(40, 120), 30.0 / 80);
}

TEST(WorkAhead, IsForgottenWhenTheServerIsIdle) {
  WorkAhead ahead;
  ahead.add(0, 0, 20);
  EXPECT_DOUBLE_EQ(ahead.share(10, 20), 1);
  EXPECT_EQ(ahead.share(20, 20), 0);
  EXPECT_EQ(ahead.share(20, 50), 0);
}

}  // namespace
}  // namespace weft
