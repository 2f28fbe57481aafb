#include "sim/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "sim/error.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

std::string message_of(const std::function<void()>& action, ExitCode code = ExitCode::bad_input) {
  try {
    action();
  } catch (const InputError& e) {
    EXPECT_EQ(e.code(), code);
    return e.what();
  }
  return "no error";
}

std::string parse_error(const std::string& text) {
  return message_of([&] { static_cast<void>(parse_json(text, "f.json")); });
}

Json with_set(Json document, const std::string& assignment) {
  apply_set(document, assignment, "f.json");
  return document;
}

TEST(ConfigFile, AllowsComments) {
  EXPECT_EQ(parse_json("// why\n{ \"a\": 1 /* one */ }", "f"), Json::parse(R"({"a": 1})"));
}

TEST(ConfigFile, NamesLineAndColumnOfMalformedJson) {
  EXPECT_THAT(parse_error("{\n  \"a\": 1,\n  \"b\" 2\n}"),
              testing::StartsWith("f.json: line 3, column 7: expected JSON, got a "));
}

TEST(ConfigFile, RefusesEmptyAndTruncatedFiles) {
  EXPECT_EQ(parse_error(""), "f.json: line 1, column 1: expected JSON, got an empty file");
  EXPECT_EQ(parse_error(" \n\n"), "f.json: line 1, column 1: expected JSON, got an empty file");
  EXPECT_THAT(parse_error("{\"a\": [1, 2"), testing::HasSubstr("unexpected end of input"));
}

TEST(ConfigFile, RefusesNumbersThatOverflow) {
  EXPECT_THAT(parse_error("{\"a\": 1e999}"), testing::HasSubstr("number overflow"));
}

TEST(ConfigFile, RefusesBytesThatAreNoText) {
  EXPECT_THAT(parse_error("\x1f\x8b\x08"), testing::StartsWith("f.json: line 1, column 1: expected JSON"));
  EXPECT_THAT(parse_error("{\"a\": \"\xff\"}"), testing::HasSubstr("UTF-8"));
}

TEST(ConfigFile, SaysThatAFileIsMissing) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { static_cast<void>(load_config(folder.path() / "none.json")); }, ExitCode::input_missing),
              testing::EndsWith("none.json: expected a readable file, got none"));
  EXPECT_THROW(static_cast<void>(load_config(folder.path())), MissingInput);
}

TEST(ConfigFile, MergesIncludesFirstInOrder) {
  const TemporaryFolder folder;
  folder.write("base.json", R"({"a": {"x": 1, "y": 1}, "b": [1, 2], "c": "base"})");
  folder.write("parts/second.json", R"({"include": "third.json", "a": {"y": 2}})");
  folder.write("parts/third.json", R"({"a": {"z": 3}})");
  const auto top =
      folder.write("top.json", R"({"include": ["base.json", "parts/second.json"], "b": [9], "c": {"d": 4}})");
  EXPECT_EQ(load_config(top), Json::parse(R"({"a": {"x": 1, "y": 2, "z": 3}, "b": [9], "c": {"d": 4}})"));
}

TEST(ConfigFile, AllowsAFileToBeIncludedTwice) {
  const TemporaryFolder folder;
  folder.write("base.json", R"({"a": 1})");
  EXPECT_EQ(load_config(folder.write("top.json", R"({"include": ["base.json", "base.json"]})")),
            Json::parse(R"({"a": 1})"));
}

TEST(ConfigFile, RefusesIncludesInACircle) {
  const TemporaryFolder folder;
  folder.write("b.json", R"({"include": "a.json"})");
  const auto top = folder.write("a.json", R"({"include": "b.json"})");
  EXPECT_THAT(message_of([&] { static_cast<void>(load_config(top)); }),
              testing::EndsWith("b.json: /include: expected includes without a cycle, got a.json -> b.json -> a.json"));
}

TEST(ConfigFile, RefusesAnIncludeThatIsNoFileName) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { static_cast<void>(load_config(folder.write("a.json", R"({"include": [1]})"))); }),
              testing::HasSubstr("/include: expected a file name or an array of file names"));
}

TEST(ConfigFile, RefusesADocumentThatIsNoObject) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { static_cast<void>(load_config(folder.write("a.json", "[]"))); }),
              testing::HasSubstr("expected an object, got an array of 0 elements"));
}

TEST(ConfigSet, OverridesAndCreatesThePath) {
  EXPECT_EQ(with_set(Json::parse(R"({"a": {"b": 1}})"), "a.b=2"), Json::parse(R"({"a": {"b": 2}})"));
  EXPECT_EQ(with_set(Json::object(), "network.link.bandwidth_GBps=300"),
            Json::parse(R"({"network": {"link": {"bandwidth_GBps": 300}}})"));
}

TEST(ConfigSet, TakesJsonElseAString) {
  EXPECT_EQ(with_set(Json::object(), "a=true")["a"], true);
  EXPECT_EQ(with_set(Json::object(), "a={\"b\": [1]}")["a"], Json::parse(R"({"b": [1]})"));
  EXPECT_EQ(with_set(Json::object(), "system=dgx-a100")["system"], "dgx-a100");
  EXPECT_EQ(with_set(Json::object(), "a=nan")["a"], "nan");
  EXPECT_EQ(with_set(Json::object(), "a=x=y")["a"], "x=y");
  EXPECT_EQ(with_set(Json::object(), "a=")["a"], "");
}

TEST(ConfigSet, ReachesElementsOfArrays) {
  EXPECT_EQ(with_set(Json::parse(R"({"a": [{"b": 1}, {"b": 1}]})"), "a.1.b=5")["a"][1]["b"], 5);
  EXPECT_THROW(with_set(Json::parse(R"({"a": [1]})"), "a.1=5"), InputError);
  EXPECT_THROW(with_set(Json::parse(R"({"a": [1]})"), "a.x=5"), InputError);
}

TEST(ConfigSet, RefusesAPathThroughAValue) {
  EXPECT_EQ(message_of([&] { with_set(Json::parse(R"({"a": {"b": 8}})"), "a.b.c=1"); }),
            "f.json: /a/b: expected an object for --set a.b.c=1, got 8");
}

TEST(ConfigSet, RefusesWhatIsNoAssignment) {
  EXPECT_EQ(message_of([&] { with_set(Json::object(), "gpus"); }, ExitCode::wrong_usage),
            "--set gpus: expected PATH=VALUE, got no \"=\"");
  EXPECT_THAT(message_of([&] { with_set(Json::object(), "a..b=1"); }, ExitCode::wrong_usage),
              testing::HasSubstr("empty key"));
  EXPECT_THAT(message_of([&] { with_set(Json::object(), "=1"); }, ExitCode::wrong_usage),
              testing::HasSubstr("empty key"));
}

}  // namespace
}  // namespace weft
