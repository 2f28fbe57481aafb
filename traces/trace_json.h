// Values of weft's own trace files, each checked as it is read; for trace_file_read.cpp and trace_traffic.cpp only.
#pragma once

#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/error.h"

namespace weft::trace_json {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

inline constexpr std::int64_t kAnyTime = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kMaxId = std::numeric_limits<std::uint32_t>::max();

// Every function throws InputError with the file and `place` for what is not as asked.
class TraceJson {
 protected:
  explicit TraceJson(std::string file) : file_(std::move(file)) {}

  [[nodiscard]] const std::string& file() const { return file_; }
  [[noreturn]] void fail(const std::string& place, const std::string& message) const {
    throw InputError(file_, place, message);
  }

  void only_keys(object o, const std::string& place, const std::vector<std::string_view>& known) const {
    for (const auto field : o) {
      if (std::find(known.begin(), known.end(), field.key) == known.end())
        fail(place + "/" + std::string(field.key), "expected a key of weft-trace/1, got an unknown one");
    }
  }
  object as_object(element e, const std::string& place) const {
    object o;
    if (e.get(o) != simdjson::SUCCESS) fail(place, "expected an object");
    return o;
  }
  array as_list(element e, const std::string& place) const {
    array a;
    if (e.get(a) != simdjson::SUCCESS) fail(place, "expected an array");
    return a;
  }
  std::int64_t as_integer(element e, const std::string& place, std::int64_t low, std::int64_t high) const {
    std::int64_t value = 0;
    if (e.get(value) != simdjson::SUCCESS) fail(place, "expected an integer, got " + simdjson::minify(e));
    if (value < low || value > high)
      fail(place, "expected an integer from " + std::to_string(low) + " to " + std::to_string(high) + ", got " +
                      std::to_string(value));
    return value;
  }
  element get(object o, const std::string& place, const char* key) const {
    element e;
    if (o[key].get(e) != simdjson::SUCCESS) fail(place + "/" + key, "expected a value, got none");
    return e;
  }
  array list(object o, const std::string& place, const char* key) const {
    return as_list(get(o, place, key), place + "/" + key);
  }
  std::int64_t integer(object o, const std::string& place, const char* key, std::int64_t low, std::int64_t high) const {
    return as_integer(get(o, place, key), place + "/" + key, low, high);
  }
  std::string text(object o, const std::string& place, const char* key) const {
    return as_text(get(o, place, key), place + "/" + key);
  }
  std::string as_text(element e, const std::string& place) const {
    std::string_view value;
    if (e.get(value) != simdjson::SUCCESS) fail(place, "expected a string, got " + simdjson::minify(e));
    return std::string(value);
  }
  std::vector<std::int64_t> integers(array a, const std::string& place, std::int64_t low, std::int64_t high) const {
    std::vector<std::int64_t> values;
    for (const element e : a) values.push_back(as_integer(e, place + "/" + std::to_string(values.size()), low, high));
    return values;
  }

 private:
  std::string file_;
};

}  // namespace weft::trace_json
