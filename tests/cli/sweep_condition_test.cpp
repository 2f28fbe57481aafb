#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/sweep/condition.h"
#include "sim/error.h"

namespace weft {
namespace {

using testing::HasSubstr;

bool holds(const std::string& text) {
  const std::map<std::string, Json> values{{"gpus", 8}, {"network.topology", "ring"}, {"scheme.overlap", true}};
  return condition_holds(text, [&](const std::string& path) {
    const auto found = values.find(path);
    if (found == values.end()) throw InputError("no " + path);
    return found->second;
  });
}

TEST(SweepCondition, BindsAsInC) {
  EXPECT_TRUE(holds("1 + 2 * 3 == 7"));
  EXPECT_TRUE(holds("(1 + 2) * 3 == 9"));
  EXPECT_TRUE(holds("8 / 4 / 2 == 1 && 8 - 4 - 2 == 2"));
  EXPECT_TRUE(holds("true || false && false"));
  EXPECT_FALSE(holds("!true || false"));
  EXPECT_TRUE(holds("-2 < -1 && gpus-1 == 7"));
  EXPECT_TRUE(holds("!(gpus > 8)"));
}

TEST(SweepCondition, ComparesWhatPathsHave) {
  EXPECT_TRUE(holds("network.topology == 'ring'"));
  EXPECT_TRUE(holds("network.topology != \"torus\" && gpus >= 8"));
  EXPECT_TRUE(holds("'a' < 'b'"));
  EXPECT_TRUE(holds("scheme.overlap"));
  EXPECT_TRUE(holds("gpus != null && gpus != 'eight'"));
  EXPECT_TRUE(holds("gpus == 8.0"));
}

TEST(SweepCondition, NamesWhatItExpected) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      static_cast<void>(holds(text));
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message("gpus"), "expected a condition in \"gpus\", got 8");
  EXPECT_EQ(message("gpus < 'a'"), "expected a number in \"gpus < 'a'\", got \"a\"");
  EXPECT_EQ(message("(gpus > 1"), "expected \")\" in \"(gpus > 1\", got the end");
  EXPECT_EQ(message("gpus > 1 2"), "expected an operator or the end in \"gpus > 1 2\", got \"2\"");
  EXPECT_EQ(message("gpus > 'x"), "expected a closing quote in \"gpus > 'x\", got the end");
  EXPECT_EQ(message("gpus >"), "expected a value in \"gpus >\", got the end");
  EXPECT_EQ(message("gpus > $"), "expected a path or a value in \"gpus > $\", got \"$\"");
  EXPECT_EQ(message("gpu > 1"), "no gpu");
}

}  // namespace
}  // namespace weft
