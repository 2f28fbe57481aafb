#include "sim/shared_list.h"

#include <gtest/gtest.h>

#include <string>

namespace weft {
namespace {

TEST(SharedList, CopiesShareUntilOneIsWritten) {
  SharedList<std::string> list = {"a", "b"};
  const SharedList<std::string> copy = list;
  EXPECT_TRUE(copy.shares(list));
  EXPECT_EQ(&copy[0], &list[0]);
  list.edit()[0] = "c";
  EXPECT_FALSE(copy.shares(list));
  EXPECT_EQ(list.front(), "c");
  EXPECT_EQ(copy.front(), "a");
  EXPECT_EQ(copy.size(), 2u);
}

TEST(SharedList, OfWhichThereIsOneCopyIsWrittenInPlace) {
  SharedList<int> list = {1, 2, 3};
  const int* first = &list[0];
  list.edit()[0] = 4;
  EXPECT_EQ(&list[0], first);
  EXPECT_EQ(*first, 4);
}

TEST(SharedList, IsEmptyAtFirst) {
  SharedList<int> list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.begin(), list.end());
  list.push_back(1);
  EXPECT_EQ(list.back(), 1);
}

}  // namespace
}  // namespace weft
