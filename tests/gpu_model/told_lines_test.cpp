#include "gpu_model/told_lines.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using Lines = std::pair<std::uint32_t, std::uint32_t>;

struct Told {
  ToldLines lines;
  Lines operator()(std::uint32_t from, std::uint32_t to, LineAddress first = 1000, std::uint32_t partition = 0,
                   bool stored = false) {
    lines.shorten(first, partition, stored, from, to);
    return from < to ? Lines{from, to} : Lines{};
  }
};

TEST(ToldLines, AreNotToldAgain) {
  Told told;
  EXPECT_EQ(told(10, 20), Lines(10, 20));
  EXPECT_EQ(told(10, 20), Lines());
  EXPECT_EQ(told(12, 18), Lines());
  EXPECT_EQ(told(15, 25), Lines(20, 25));  // a block that is ahead
  EXPECT_EQ(told(5, 12), Lines(5, 10));    // and one that is behind
  EXPECT_EQ(told(5, 25), Lines());
  EXPECT_EQ(told(25, 30), Lines(25, 30));
  EXPECT_EQ(told(5, 30), Lines());
}

TEST(ToldLines, AreKnownNearTheLastOnly) {
  Told told;
  EXPECT_EQ(told(10, 20), Lines(10, 20));
  EXPECT_EQ(told(40, 50), Lines(40, 50));
  EXPECT_EQ(told(10, 20), Lines(10, 20));
  EXPECT_EQ(told(5, 30), Lines(5, 30));
}

TEST(ToldLines, OfEachStreamAndWhereItIsStoredOfEachHalfOfTheChip) {
  Told told;
  EXPECT_EQ(told(10, 20), Lines(10, 20));
  EXPECT_EQ(told(10, 20, 2000), Lines(10, 20));
  EXPECT_EQ(told(10, 20, 1000, 1), Lines());
  EXPECT_EQ(told(10, 20, 1000, 0, true), Lines(10, 20));
  EXPECT_EQ(told(10, 20, 1000, 0, true), Lines());
  EXPECT_EQ(told(10, 20, 1000, 1, true), Lines(10, 20));
}

}  // namespace
}  // namespace weft
