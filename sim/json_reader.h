// Reads one JSON object and remembers where it stands, so that every error names file, path, expected and got.
// Keys that nobody read are errors at finish(), with the nearest key that was asked for.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

using Json = nlohmann::ordered_json;

class JsonReader {
 public:
  // `value` must outlive the reader. `path` is a JSON pointer ("" for the document). Throws InputError when `value` is
  // no object.
  JsonReader(const Json& value, std::string file, std::string path = "");

  [[nodiscard]] bool has(std::string_view key);
  // Required values. Throw InputError when missing, of the wrong type, not finite or out of [low, high].
  // An integer may be written as 1e9.
  [[nodiscard]] std::string string(std::string_view key);
  [[nodiscard]] double number(std::string_view key, double low, double high);
  [[nodiscard]] std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high);
  [[nodiscard]] bool boolean(std::string_view key);
  [[nodiscard]] JsonReader object(std::string_view key);
  [[nodiscard]] std::vector<JsonReader> objects(std::string_view key);  // an array of objects
  [[nodiscard]] std::string one_of(std::string_view key, const std::vector<std::string>& allowed);
  // Optional values with a default.
  [[nodiscard]] std::string string_or(std::string_view key, std::string otherwise);
  [[nodiscard]] double number_or(std::string_view key, double low, double high, double otherwise);
  [[nodiscard]] std::int64_t integer_or(std::string_view key, std::int64_t low, std::int64_t high,
                                        std::int64_t otherwise);
  [[nodiscard]] bool boolean_or(std::string_view key, bool otherwise);
  [[nodiscard]] std::string one_of_or(std::string_view key, const std::vector<std::string>& allowed,
                                      std::string otherwise);
  [[nodiscard]] std::optional<JsonReader> optional_object(std::string_view key);

  // From now on errors at and below `key` are reported at `path` instead: for a value that was merged in from there.
  void report_at(std::string_view key, std::string path);

  // Call when all has been read: a key nobody asked for is an error.
  void finish() const;
  // An error at `key` (or at this object when empty). `message` reads "expected ..., got ...".
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;

  [[nodiscard]] const Json& value() const { return *value_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  const Json* find(std::string_view key);
  const Json& require(std::string_view key, const std::string& expected);
  [[nodiscard]] std::string path_of(std::string_view key) const;

  const Json* value_;
  std::string file_;
  std::string path_;
  std::set<std::string, std::less<>> asked_;
  std::map<std::string, std::string, std::less<>> reported_at_;
};

// The candidate nearest to `word` by edit distance (a swap of neighbours counts one), if one is near enough to be a
// likely misspelling. Of equally near ones the first.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

// A value as an error message shows it: scalars as JSON, arrays and objects by their kind and size.
[[nodiscard]] std::string describe(const Json& value);

// `key` appended to a JSON pointer, with "~" and "/" escaped.
[[nodiscard]] std::string child_path(std::string_view path, std::string_view key);

}  // namespace weft
