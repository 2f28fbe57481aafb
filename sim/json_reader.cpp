#include "sim/json_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/error.h"

namespace weft {

namespace {

constexpr std::size_t kLongestQuoted = 80;

std::string quoted_list(const std::vector<std::string>& names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + Json(name).dump();
  return list;
}

std::string range(double low, double high) { return fmt::format("from {:g} to {:g}", low, high); }
std::string range(std::int64_t low, std::int64_t high) { return fmt::format("from {} to {}", low, high); }

// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours cost one each.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string describe(const Json& value) {
  if (value.is_object()) return fmt::format("an object of {} keys", value.size());
  if (value.is_array()) return fmt::format("an array of {} elements", value.size());
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kLongestQuoted) text = text.substr(0, kLongestQuoted) + "...";
  return text;
}

std::string child_path(std::string_view path, std::string_view key) {
  std::string result(path);
  result += '/';
  for (const char c : key) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result += c;
    }
  }
  return result;
}

JsonReader::JsonReader(const Json& value, std::string file, std::string path)
    : value_(&value), file_(std::move(file)), path_(std::move(path)) {
  if (!value.is_object()) throw InputError(file_, path_, "expected an object, got " + describe(value));
}

const Json* JsonReader::find(std::string_view key) {
  asked_.emplace(key);
  const auto it = value_->find(std::string(key));
  return it == value_->end() ? nullptr : &*it;
}

const Json& JsonReader::require(std::string_view key, const std::string& expected) {
  if (const Json* found = find(key)) return *found;
  std::vector<std::string> unread;
  for (const auto& item : value_->items()) {
    if (!asked_.contains(item.key())) unread.push_back(item.key());
  }
  const auto near = nearest(key, unread);
  fail(key,
       "expected " + expected + ", got nothing" + (near ? "; the nearest key there is " + Json(*near).dump() : ""));
}

void JsonReader::fail(std::string_view key, const std::string& message) const {
  throw InputError(file_, key.empty() ? path_ : path_of(key), message);
}

void JsonReader::report_at(std::string_view key, std::string path) {
  reported_at_.insert_or_assign(std::string(key), std::move(path));
}

std::string JsonReader::path_of(std::string_view key) const {
  const auto moved = reported_at_.find(key);
  return moved == reported_at_.end() ? child_path(path_, key) : moved->second;
}

bool JsonReader::has(std::string_view key) { return find(key) != nullptr; }

std::string JsonReader::string(std::string_view key) {
  const Json& found = require(key, "a string");
  if (!found.is_string()) fail(key, "expected a string, got " + describe(found));
  return found.get<std::string>();
}

double JsonReader::number(std::string_view key, double low, double high) {
  const std::string expected = "a number " + range(low, high);
  const Json& found = require(key, expected);
  // Negated so that NaN fails too.
  if (!found.is_number() || !(found.get<double>() >= low && found.get<double>() <= high)) {
    fail(key, "expected " + expected + ", got " + describe(found));
  }
  return found.get<double>();
}

std::int64_t JsonReader::integer(std::string_view key, std::int64_t low, std::int64_t high) {
  const std::string expected = "an integer " + range(low, high);
  const Json& found = require(key, expected);
  const auto refuse = [&]() { fail(key, "expected " + expected + ", got " + describe(found)); };
  std::int64_t result = 0;
  if (found.is_number_unsigned()) {
    if (found.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) refuse();
    result = found.get<std::int64_t>();
  } else if (found.is_number_integer()) {
    result = found.get<std::int64_t>();
  } else if (found.is_number_float()) {
    // 1e9 is an integer to a person; beyond 2^53 a double no longer says which one.
    const double value = found.get<double>();
    constexpr double kExact = 9007199254740992.0;
    if (!(std::abs(value) <= kExact) || value != std::floor(value)) refuse();
    result = static_cast<std::int64_t>(value);
  } else {
    refuse();
  }
  if (result < low || result > high) refuse();
  return result;
}

bool JsonReader::boolean(std::string_view key) {
  const Json& found = require(key, "true or false");
  if (!found.is_boolean()) fail(key, "expected true or false, got " + describe(found));
  return found.get<bool>();
}

JsonReader JsonReader::object(std::string_view key) { return {require(key, "an object"), file_, path_of(key)}; }

std::vector<JsonReader> JsonReader::objects(std::string_view key) {
  const Json& found = require(key, "an array of objects");
  if (!found.is_array()) fail(key, "expected an array of objects, got " + describe(found));
  std::vector<JsonReader> readers;
  readers.reserve(found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    readers.emplace_back(found[i], file_, child_path(path_of(key), std::to_string(i)));
  }
  return readers;
}

std::string JsonReader::one_of(std::string_view key, const std::vector<std::string>& allowed) {
  const std::string expected = (allowed.size() == 1 ? "" : "one of ") + quoted_list(allowed);
  const Json& found = require(key, expected);
  if (!found.is_string() || std::find(allowed.begin(), allowed.end(), found.get<std::string>()) == allowed.end()) {
    const auto near = found.is_string() ? nearest(found.get<std::string>(), allowed) : std::nullopt;
    fail(key,
         "expected " + expected + ", got " + describe(found) + (near ? "; the nearest is " + Json(*near).dump() : ""));
  }
  return found.get<std::string>();
}

std::string JsonReader::string_or(std::string_view key, std::string otherwise) {
  return has(key) ? string(key) : std::move(otherwise);
}

double JsonReader::number_or(std::string_view key, double low, double high, double otherwise) {
  return has(key) ? number(key, low, high) : otherwise;
}

std::int64_t JsonReader::integer_or(std::string_view key, std::int64_t low, std::int64_t high, std::int64_t otherwise) {
  return has(key) ? integer(key, low, high) : otherwise;
}

bool JsonReader::boolean_or(std::string_view key, bool otherwise) { return has(key) ? boolean(key) : otherwise; }

std::string JsonReader::one_of_or(std::string_view key, const std::vector<std::string>& allowed,
                                  std::string otherwise) {
  return has(key) ? one_of(key, allowed) : std::move(otherwise);
}

std::optional<JsonReader> JsonReader::optional_object(std::string_view key) {
  if (!has(key)) return std::nullopt;
  return object(key);
}

void JsonReader::finish() const {
  const std::vector<std::string> known(asked_.begin(), asked_.end());
  for (const auto& item : value_->items()) {
    if (asked_.contains(item.key())) continue;
    const auto near = nearest(item.key(), known);
    const std::string expected = near            ? "a known key (the nearest is " + Json(*near).dump() + ")"
                                 : known.empty() ? std::string("no keys")
                                                 : "one of the keys " + quoted_list(known);
    fail(item.key(), "expected " + expected + ", got " + Json(item.key()).dump());
  }
}

}  // namespace weft
