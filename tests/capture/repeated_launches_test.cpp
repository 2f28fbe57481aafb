#include "traces/capture/repeated_launches.h"

#include <gtest/gtest.h>

#include <string_view>

namespace weft {
namespace {

constexpr std::uint32_t kLaunches = 8;

// A letter is so many launches; in capitals, behind a pause.
std::optional<Repetition> find(std::string_view letters) {
  std::vector<std::uint32_t> launches;
  std::vector<std::int64_t> pauses;
  for (const char c : letters) {
    for (std::uint32_t i = 0; i < kLaunches; ++i) {
      launches.push_back(static_cast<std::uint32_t>(c | 0x20) * kLaunches + i);
      pauses.push_back((c & 0x20) != 0 || i > 0 ? 1 : 100);
    }
  }
  return repeated_launches(launches, pauses);
}

// In letters.
void expect(std::string_view letters, std::size_t first, std::size_t period, std::size_t times) {
  const auto found = find(letters);
  ASSERT_TRUE(found) << letters;
  EXPECT_EQ(found->first, first * kLaunches) << letters;
  EXPECT_EQ(found->period, period * kLaunches) << letters;
  EXPECT_EQ(found->times, times) << letters;
}

TEST(RepeatedLaunches, AreFoundBetweenBeginningAndEnd) { expect("xyzabcabcabcw", 3, 3, 3); }

TEST(RepeatedLaunches, OfLayersAreNoIterations) { expect("xablablabloablablabloablablabloy", 1, 10, 3); }

TEST(RepeatedLaunches, BeginBehindThePauses) {
  expect("xabcAbcAbcAbc", 1, 3, 4);
  // The first iteration sets up what the others find, but ends as they do.
  expect("pqrscAbcAbcAbc", 5, 3, 3);
}

TEST(RepeatedLaunches, AreOfManyLaunchesAndMoreThanTwo) {
  EXPECT_FALSE(find("abcabc"));
  EXPECT_FALSE(find("aaaaaaaa"));
  EXPECT_FALSE(find("abcdefghijklmnopqrstuvwxyzaaa"));
  EXPECT_FALSE(find(""));
}

}  // namespace
}  // namespace weft
