#include "sim/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "sim/error.h"

namespace weft {
namespace {

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& e) {
    EXPECT_EQ(e.code(), ExitCode::bad_input);
    return e.what();
  }
  return "no error";
}

TEST(JsonReader, ReadsEveryKindOfValue) {
  const Json document = Json::parse(R"({"s": "x", "n": 2.5, "i": 7, "b": true, "o": {"k": 1}, "a": [{"k": 2}, {"k": 3}],
                                        "e": "ring"})");
  JsonReader reader(document, "f.json");
  EXPECT_EQ(reader.string("s"), "x");
  EXPECT_EQ(reader.number("n", 0, 10), 2.5);
  EXPECT_EQ(reader.integer("i", 0, 10), 7);
  EXPECT_TRUE(reader.boolean("b"));
  EXPECT_EQ(reader.object("o").integer("k", 0, 10), 1);
  EXPECT_EQ(reader.objects("a").at(1).integer("k", 0, 10), 3);
  EXPECT_EQ(reader.one_of("e", {"ring", "tree"}), "ring");
  EXPECT_NO_THROW(reader.finish());
}

TEST(JsonReader, UsesDefaultsForWhatIsMissingOnly) {
  const Json document = Json::parse(R"({"n": 2, "b": false})");
  JsonReader reader(document, "f.json");
  EXPECT_EQ(reader.number_or("n", 0, 10, 5), 2);
  EXPECT_EQ(reader.number_or("m", 0, 10, 5), 5);
  EXPECT_EQ(reader.integer_or("i", 0, 10, 6), 6);
  EXPECT_FALSE(reader.boolean_or("b", true));
  EXPECT_EQ(reader.string_or("s", "d"), "d");
  EXPECT_EQ(reader.one_of_or("e", {"ring"}, "tree"), "tree");
  EXPECT_FALSE(reader.optional_object("o").has_value());
}

TEST(JsonReader, NamesFilePathExpectedAndGot) {
  const Json document = Json::parse(R"({"network": {"link": {"bandwidth_GBps": -3}}})");
  JsonReader reader(document, "f.json");
  JsonReader link = reader.object("network").object("link");
  EXPECT_EQ(message_of([&] { static_cast<void>(link.number("bandwidth_GBps", 0.001, 1e6)); }),
            "f.json: /network/link/bandwidth_GBps: expected a number from 0.001 to 1e+06, got -3");
}

TEST(JsonReader, RefusesWrongTypes) {
  const Json document = Json::parse(R"({"s": 1, "n": "x", "i": 1.5, "b": 0, "o": [1], "a": {"k": 1}, "z": null})");
  JsonReader reader(document, "f");
  EXPECT_EQ(message_of([&] { static_cast<void>(reader.string("s")); }), "f: /s: expected a string, got 1");
  EXPECT_EQ(message_of([&] { static_cast<void>(reader.number("n", 0, 1)); }),
            "f: /n: expected a number from 0 to 1, got \"x\"");
  EXPECT_EQ(message_of([&] { static_cast<void>(reader.integer("i", 0, 9)); }),
            "f: /i: expected an integer from 0 to 9, got 1.5");
  EXPECT_EQ(message_of([&] { static_cast<void>(reader.boolean("b")); }), "f: /b: expected true or false, got 0");
  EXPECT_EQ(message_of([&] { static_cast<void>(reader.object("o")); }),
            "f: /o: expected an object, got an array of 1 elements");
  EXPECT_EQ(message_of([&] { static_cast<void>(reader.objects("a")); }),
            "f: /a: expected an array of objects, got an object of 1 keys");
  EXPECT_EQ(message_of([&] { static_cast<void>(reader.number("z", 0, 1)); }),
            "f: /z: expected a number from 0 to 1, got null");
}

TEST(JsonReader, RefusesNumbersThatAreNotFinite) {
  const Json document{{"nan", std::numeric_limits<double>::quiet_NaN()},
                      {"inf", std::numeric_limits<double>::infinity()}};
  JsonReader reader(document, "f");
  const double most = std::numeric_limits<double>::max();
  EXPECT_THROW(static_cast<void>(reader.number("nan", -most, most)), InputError);
  EXPECT_THROW(static_cast<void>(reader.number("inf", -most, most)), InputError);
  EXPECT_THROW(static_cast<void>(reader.integer("nan", 0, 9)), InputError);
  EXPECT_THROW(static_cast<void>(reader.integer("inf", 0, 9)), InputError);
}

TEST(JsonReader, RefusesIntegersThatDoNotFit) {
  const Json document = Json::parse(R"({"u": 18446744073709551615, "f": 1e300, "n": -9223372036854775808, "e": 1e9})");
  JsonReader reader(document, "f");
  EXPECT_THROW(static_cast<void>(reader.integer("u", 0, INT64_MAX)), InputError);
  EXPECT_THROW(static_cast<void>(reader.integer("f", 0, INT64_MAX)), InputError);
  EXPECT_EQ(reader.integer("n", INT64_MIN, 0), INT64_MIN);
  EXPECT_EQ(reader.integer("e", 0, INT64_MAX), 1'000'000'000);
}

TEST(JsonReader, NamesTheNearestKnownKey) {
  const Json document = Json::parse(R"({"bandwith_GBps": 3})");
  JsonReader reader(document, "f");
  static_cast<void>(reader.has("latency_ns"));
  static_cast<void>(reader.has("bandwidth_GBps"));
  EXPECT_EQ(message_of([&] { reader.finish(); }),
            "f: /bandwith_GBps: expected a known key (the nearest is \"bandwidth_GBps\"), got \"bandwith_GBps\"");
}

TEST(JsonReader, NamesTheKeyThatStandsThereInsteadOfAMissingOne) {
  const Json document = Json::parse(R"({"bandwith_GBps": 3})");
  JsonReader reader(document, "f");
  EXPECT_THAT(message_of([&] { static_cast<void>(reader.number("bandwidth_GBps", 0, 9)); }),
              testing::HasSubstr("got nothing; the nearest key there is \"bandwith_GBps\""));
}

TEST(JsonReader, ListsTheKnownKeysWhenNoneIsNear) {
  const Json document = Json::parse(R"({"colour": 3})");
  JsonReader reader(document, "f");
  static_cast<void>(reader.has("gpus"));
  static_cast<void>(reader.has("seed"));
  EXPECT_EQ(message_of([&] { reader.finish(); }),
            "f: /colour: expected one of the keys \"gpus\", \"seed\", got \"colour\"");
}

TEST(JsonReader, EscapesKeysInPaths) {
  const Json document = Json::parse(R"({"a/b~c": 1})");
  const JsonReader reader(document, "f");
  EXPECT_THAT(message_of([&] { reader.finish(); }), testing::StartsWith("f: /a~1b~0c: "));
}

TEST(JsonReader, ReportsMergedValuesWhereTheyWereWritten) {
  const Json document = Json::parse(R"({"network": {"link": {"credits": 0}}})");
  JsonReader reader(document, "f", "/system");
  reader.report_at("network", "/network");
  JsonReader link = reader.object("network").object("link");
  EXPECT_THAT(message_of([&] { static_cast<void>(link.integer("credits", 1, 9)); }),
              testing::StartsWith("f: /network/link/credits: "));
}

TEST(JsonReader, RefusesADocumentThatIsNoObject) {
  const Json document = Json::parse("[1, 2]");
  EXPECT_EQ(message_of([&] { JsonReader(document, "f"); }), "f: expected an object, got an array of 2 elements");
}

TEST(Nearest, CountsASwapOfNeighboursAsOne) { EXPECT_EQ(nearest("gpsu", {"cpus", "gpus"}), "gpus"); }
TEST(Nearest, GivesNothingForAnotherWord) { EXPECT_EQ(nearest("colour", {"gpus", "seed"}), std::nullopt); }
TEST(Nearest, TakesTheFirstOfEquallyNear) { EXPECT_EQ(nearest("bat", {"cat", "rat"}), "cat"); }
TEST(Nearest, DoesNotTakeAShortWordForAnother) { EXPECT_EQ(nearest("x", {"y"}), std::nullopt); }

}  // namespace
}  // namespace weft
