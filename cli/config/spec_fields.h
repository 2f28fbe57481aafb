// The two directions of a configuration: FieldReader fills a spec from JSON, FieldWriter writes it out. A spec lists
// its fields once, in a function template over either, so a key cannot be read and not written.
//
// Bounds are in the unit of the key. Presence::optional keeps the value that the spec already has.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/json_reader.h"
#include "sim/units.h"

namespace weft {

enum class Presence { required, optional };

template <class Enum>
using EnumNames = std::vector<std::pair<Enum, std::string>>;

class FieldReader {
 public:
  static constexpr bool kReads = true;
  explicit FieldReader(JsonReader& reader) : reader_(&reader) {}

  [[nodiscard]] bool has(const char* key) const { return reader_->has(key); }
  void text(const char* key, std::string& value, Presence presence = Presence::required) {
    if (wanted(key, presence)) value = reader_->string(key);
  }
  void flag(const char* key, bool& value, Presence presence = Presence::required) {
    if (wanted(key, presence)) value = reader_->boolean(key);
  }
  void number(const char* key, double& value, double low, double high, Presence presence = Presence::required) {
    if (wanted(key, presence)) value = reader_->number(key, low, high);
  }
  template <class Integer>
  void count(const char* key, Integer& value, std::int64_t low, std::int64_t high,
             Presence presence = Presence::required) {
    if (wanted(key, presence)) value = static_cast<Integer>(reader_->integer(key, low, high));
  }
  void rate_GBps(const char* key, Bandwidth& value, double low, double high) {
    value = gigabytes_per_second(reader_->number(key, low, high));
  }
  void clock_MHz(const char* key, Frequency& value, double low, double high) {
    value = megahertz(reader_->number(key, low, high));
  }
  void time_ns(const char* key, Time& value, double low, double high, Presence presence = Presence::required) {
    if (wanted(key, presence)) value = nanoseconds(reader_->number(key, low, high));
  }
  void size_GiB(const char* key, std::int64_t& bytes, double low, double high) {
    bytes = static_cast<std::int64_t>(reader_->number(key, low, high) * kGiB + 0.5);
  }
  template <class Enum>
  void choice(const char* key, Enum& value, const EnumNames<Enum>& names, Presence presence = Presence::required) {
    if (!wanted(key, presence)) return;
    std::vector<std::string> allowed;
    for (const auto& name : names) allowed.push_back(name.second);
    const std::string got = reader_->one_of(key, allowed);
    for (const auto& name : names) {
      if (name.second == got) value = name.first;
    }
  }
  // `read` is called with a FieldReader of the object at `key`.
  template <class Read>
  void object(const char* key, Read read, Presence presence = Presence::required) {
    if (!wanted(key, presence)) return;
    JsonReader child = reader_->object(key);
    FieldReader fields(child);
    read(fields);
    child.finish();
  }
  // A value that may be absent: `read(*this, key, value)` where it is there.
  template <class T, class Read>
  void maybe(const char* key, std::optional<T>& value, Read read) {
    if (reader_->has(key)) read(*this, key, value.emplace());
  }
  // An array of objects: `read(fields, element)` for each.
  template <class T, class Read>
  void objects(const char* key, std::vector<T>& values, Read read, Presence presence = Presence::required) {
    if (!wanted(key, presence)) return;
    values.clear();
    for (JsonReader& element : reader_->objects(key)) {
      FieldReader fields(element);
      read(fields, values.emplace_back());
      element.finish();
    }
  }
  // An array of 1 to `most` whole numbers.
  template <class Integer>
  void counts(const char* key, std::vector<Integer>& values, std::int64_t low, std::int64_t high, std::size_t most) {
    const std::string expected = "expected 1 to " + std::to_string(most) + " integers from " + std::to_string(low) +
                                 " to " + std::to_string(high);
    if (!reader_->has(key)) reader_->fail(key, expected + ", got nothing");
    const Json& array = reader_->value()[key];
    if (!array.is_array() || array.empty() || array.size() > most) {
      reader_->fail(key, expected + ", got " + describe(array));
    }
    values.clear();
    for (const Json& element : array) {
      if (!element.is_number_integer() || element.get<std::int64_t>() < low || element.get<std::int64_t>() > high) {
        reader_->fail(key, expected + ", got " + element.dump());
      }
      values.push_back(element.get<Integer>());
    }
  }
  // Optional arrays of numbers, and of arrays of whole numbers.
  void numbers(const char* key, std::vector<double>& values, double low, double high) {
    if (!reader_->has(key)) return;
    const Json& array = reader_->value()[key];
    const auto fail = [&] {
      reader_->fail(key, fmt::format("expected an array of numbers from {} to {}, got {}", low, high, array.dump()));
    };
    if (!array.is_array()) fail();
    values.clear();
    for (const Json& element : array) {
      if (!element.is_number() || element.get<double>() < low || element.get<double>() > high) fail();
      values.push_back(element.get<double>());
    }
  }
  void count_lists(const char* key, std::vector<std::vector<std::uint32_t>>& lists) {
    if (!reader_->has(key)) return;
    const Json& array = reader_->value()[key];
    const auto fail = [&] { reader_->fail(key, "expected an array of arrays of whole numbers, got " + array.dump()); };
    if (!array.is_array()) fail();
    lists.clear();
    for (const Json& list : array) {
      if (!list.is_array()) fail();
      lists.emplace_back();
      for (const Json& element : list) {
        if (!element.is_number_unsigned() || element.get<std::uint64_t>() > UINT32_MAX) fail();
        lists.back().push_back(element.get<std::uint32_t>());
      }
    }
  }
  // For conditions between fields: refuses the value at `key`.
  void refuse_unless(bool good, const char* key, const std::string& message) {
    if (!good) reader_->fail(key, message);
  }
  [[nodiscard]] JsonReader& reader() { return *reader_; }

 private:
  static constexpr double kGiB = 1073741824.0;

  bool wanted(const char* key, Presence presence) { return presence == Presence::required || reader_->has(key); }

  JsonReader* reader_;
};

class FieldWriter {
 public:
  static constexpr bool kReads = false;
  explicit FieldWriter(Json& out) : out_(&out) {}

  [[nodiscard]] bool has(const char* key) const { return out_->contains(key); }
  void text(const char* key, const std::string& value, Presence = Presence::required) { (*out_)[key] = value; }
  void flag(const char* key, bool value, Presence = Presence::required) { (*out_)[key] = value; }
  void number(const char* key, double value, double, double, Presence = Presence::required) { (*out_)[key] = value; }
  template <class Integer>
  void count(const char* key, Integer value, std::int64_t, std::int64_t, Presence = Presence::required) {
    (*out_)[key] = value;
  }
  void rate_GBps(const char* key, Bandwidth value, double, double) {
    (*out_)[key] = static_cast<double>(value.count()) / 1e9;
  }
  void clock_MHz(const char* key, Frequency value, double, double) {
    (*out_)[key] = static_cast<double>(value.count()) / 1e6;
  }
  void time_ns(const char* key, Time value, double, double, Presence = Presence::required) {
    (*out_)[key] = static_cast<double>(value.count()) / 1e6;
  }
  void size_GiB(const char* key, std::int64_t bytes, double, double) {
    (*out_)[key] = static_cast<double>(bytes) / 1073741824.0;
  }
  template <class Enum>
  void choice(const char* key, Enum value, const EnumNames<Enum>& names, Presence = Presence::required) {
    for (const auto& name : names) {
      if (name.first == value) (*out_)[key] = name.second;
    }
  }
  template <class Write>
  void object(const char* key, Write write, Presence = Presence::required) {
    Json child = Json::object();
    FieldWriter fields(child);
    write(fields);
    (*out_)[key] = std::move(child);
  }
  template <class T, class Write>
  void maybe(const char* key, std::optional<T>& value, Write write) {
    if (value) write(*this, key, *value);
  }
  template <class T, class Write>
  void objects(const char* key, std::vector<T>& values, Write write, Presence = Presence::required) {
    Json array = Json::array();
    for (T& value : values) {
      FieldWriter fields(array.emplace_back(Json::object()));
      write(fields, value);
    }
    (*out_)[key] = std::move(array);
  }
  template <class Integer>
  void counts(const char* key, const std::vector<Integer>& values, std::int64_t, std::int64_t, std::size_t) {
    (*out_)[key] = values;
  }
  void numbers(const char* key, const std::vector<double>& values, double, double) { (*out_)[key] = values; }
  void count_lists(const char* key, const std::vector<std::vector<std::uint32_t>>& lists) { (*out_)[key] = lists; }
  void refuse_unless(bool, const char*, const std::string&) {}

 private:
  Json* out_;
};

}  // namespace weft
