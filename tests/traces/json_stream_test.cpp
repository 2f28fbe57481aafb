#include "traces/json_stream.h"

#include <gmock/gmock.h>

#include "tests/traces/temporary_file.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::input_error;
using testing::TemporaryFolder;

class JsonStreamTest : public ::testing::Test {
 protected:
  JsonStream open(const std::string& text) { return JsonStream(folder_.write("a.json", text)); }
  std::vector<std::string> elements(const std::string& text) {
    JsonStream stream = open(text);
    std::vector<std::string> out;
    stream.take('[');
    while (stream.next_element(out.empty())) out.emplace_back(stream.value());
    stream.end();
    return out;
  }
  TemporaryFolder folder_;
};

TEST_F(JsonStreamTest, HandsOutValuesAsTheyStand) {
  EXPECT_THAT(elements(R"( [ 1 , -2.5e3,"a b" ,{"k": [1, {"]": "}"}]},[ ], true,null] )"),
              ElementsAre("1", "-2.5e3", "\"a b\"", R"({"k": [1, {"]": "}"}]})", "[ ]", "true", "null"));
  EXPECT_THAT(elements("[]"), ElementsAre());
}

TEST_F(JsonStreamTest, KnowsEscapesInStrings) {
  EXPECT_THAT(elements(R"(["\"", "\\", {"a\\\"]": "\\"}])"), ElementsAre(R"("\"")", R"("\\")", R"({"a\\\"]": "\\"})"));
}

TEST_F(JsonStreamTest, WalksThroughMembers) {
  JsonStream stream = open(R"({"skipped": [1, {"x": "}"}, "]"], "wanted": {"a": 1}, "last": 2})");
  std::string key;
  stream.take('{');
  ASSERT_TRUE(stream.next_key(true, key));
  EXPECT_EQ(key, "skipped");
  stream.skip_value();
  ASSERT_TRUE(stream.next_key(false, key));
  EXPECT_EQ(key, "wanted");
  EXPECT_EQ(stream.value(), R"({"a": 1})");
  ASSERT_TRUE(stream.next_key(false, key));
  EXPECT_EQ(stream.value(), "2");
  EXPECT_FALSE(stream.next_key(false, key));
  stream.end();
}

// Values and escapes that lie across the edges of the window (64 KiB), and one that is larger.
TEST_F(JsonStreamTest, DoesNotDependOnWhereTheWindowEnds) {
  const std::string escapes = R"({"a\\\"": "\\\\"})";
  std::string skipped = "[0";
  while (skipped.size() < 200'000) skipped += "," + escapes;
  for (std::size_t shift = 0; shift < escapes.size(); ++shift) {
    JsonStream stream = open("[" + std::string(shift, ' ') + skipped + "], \"" + std::string(150'000, 'x') + "\", 7]");
    stream.take('[');
    stream.skip_value();
    stream.take(',');
    EXPECT_EQ(stream.value().size(), 150'002u);
    stream.take(',');
    EXPECT_EQ(stream.value(), "7");
  }
  std::string list = "[" + escapes;
  std::size_t count = 1;
  for (; list.size() < 200'000; ++count) list += "," + escapes;
  const std::vector<std::string> values = elements(list + "]");
  EXPECT_EQ(values.size(), count);
  for (const std::string& value : values) ASSERT_EQ(value, escapes);
}

TEST_F(JsonStreamTest, RefusesWhatIsCutOffOrNoJson) {
  for (const char* text : {"[", "[1", "[1,", "[\"a", "[\"a\\", "[{\"a\":1}", "[{\"a\":"})
    EXPECT_THAT(input_error([&] { (void)elements(text); }), HasSubstr("truncated")) << text;
  for (const char* text : {"[,]", "[1,]", "[1 2]", "{}", "[1]]", "[1}", "[a\"b\"]", "[1{}]"})
    EXPECT_THAT(input_error([&] { (void)elements(text); }), HasSubstr("a.json: byte ")) << text;
}

}  // namespace
}  // namespace weft
