#include "traces/trace_traffic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "traces/trace_json.h"

namespace weft {
namespace {

using trace_json::element;
using trace_json::kAnyTime;
using trace_json::object;
using trace_json::TraceJson;

class TrafficReader : private TraceJson {
 public:
  TrafficReader(std::string file, std::string place) : TraceJson(std::move(file)), place_(std::move(place)) {}

  TraceTraffic read(element value) const {
    const object columns = as_object(value, place_);
    std::vector<std::string_view> keys(kTrafficCounterWords.begin(), kTrafficCounterWords.end());
    keys.insert(keys.end(), {"start_fs", "duration_fs"});
    only_keys(columns, place_, keys);
    TraceTraffic traffic;
    for (const std::int64_t fs : integers(list(columns, place_, "start_fs"), place_ + "/start_fs", 0, kAnyTime))
      traffic.start.emplace_back(fs);
    const std::string durations = place_ + "/duration_fs";
    for (const std::int64_t fs : integers(list(columns, place_, "duration_fs"), durations, 0, kAnyTime))
      traffic.duration.emplace_back(fs);
    even(traffic.duration.size(), traffic, durations);
    for (std::size_t i = 0; i < kTrafficCounterCount; ++i) {
      element column;
      if (columns[kTrafficCounterWords[i]].get(column) != simdjson::SUCCESS) continue;
      const std::string here = place_ + "/" + std::string(kTrafficCounterWords[i]);
      traffic.bytes[i] = integers(as_list(column, here), here, 0, kMostCounted);
      even(traffic.bytes[i].size(), traffic, here);
    }
    return traffic;
  }

 private:
  void even(std::size_t size, const TraceTraffic& traffic, const std::string& place) const {
    if (size != traffic.size()) fail(place, fmt::format("expected {} values, got {}", traffic.size(), size));
  }

  std::string place_;
};

void append_times(const char* name, const std::vector<Time>& times, std::string& out) {
  out += fmt::format("\"{}\":[", name);
  for (std::size_t i = 0; i < times.size(); ++i) out += fmt::format("{}{}", i ? "," : "", times[i].count());
  out += "]";
}

}  // namespace

void append_traffic(const TraceTraffic& traffic, std::string& out) {
  if (traffic.size() == 0) return;
  out += ",\n\"traffic\":{";
  append_times("start_fs", traffic.start, out);
  out += ",\n";
  append_times("duration_fs", traffic.duration, out);
  for (std::size_t i = 0; i < kTrafficCounterCount; ++i)
    if (!traffic.bytes[i].empty())
      out += fmt::format(",\n\"{}\":[{}]", kTrafficCounterWords[i], fmt::join(traffic.bytes[i], ","));
  out += "}";
}

TraceTraffic read_traffic(element value, const std::string& place, const std::string& file) {
  return TrafficReader(file, place).read(value);
}

}  // namespace weft
