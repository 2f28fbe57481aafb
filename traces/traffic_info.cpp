#include "traces/traffic_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace weft {
namespace {

// Those whose middle lies in an iteration. Both ascend, so one pass over them is enough: a day has a hundred million
// spans. Iterations may overlap.
std::vector<std::size_t> spans_in_iterations(const TraceRank& rank) {
  std::vector<std::size_t> spans;
  auto next = rank.iterations.begin();
  Time end;  // the latest of those that have begun
  for (std::size_t i = 0; i < rank.traffic.size(); ++i) {
    const Time middle = rank.traffic.start[i] + Time(rank.traffic.duration[i].count() / 2);
    for (; next != rank.iterations.end() && next->start <= middle; ++next) end = std::max(end, next->end);
    if (middle < end) spans.push_back(i);
  }
  return spans;
}

Json rate(const TraceTraffic& traffic, const std::vector<std::size_t>& spans,
          std::initializer_list<TrafficCounter> counters) {
  if (std::any_of(counters.begin(), counters.end(), [&](TrafficCounter c) { return traffic[c].empty(); }))
    return nullptr;
  double bytes = 0, seconds = 0, highest = 0;
  for (const std::size_t span : spans) {
    double moved = 0;
    for (const TrafficCounter counter : counters) moved += static_cast<double>(traffic[counter][span]);
    const double time = to_seconds(traffic.duration[span]);
    bytes += moved;
    seconds += time;
    highest = std::max(highest, moved / time);
  }
  Json out;
  out["mean"] = bytes / seconds * 1e-9;
  out["highest"] = highest * 1e-9;
  return out;
}

}  // namespace

Json traffic_info(const TraceRank& rank) {
  const std::vector<std::size_t> spans = spans_in_iterations(rank);
  if (spans.empty()) return nullptr;
  Time time;
  for (const std::size_t span : spans) time += rank.traffic.duration[span];
  Json out;
  out["samples"] = spans.size();
  out["time_s"] = to_seconds(time);
  out["hbm_GBps"] = rate(rank.traffic, spans, {TrafficCounter::hbm_read_bytes, TrafficCounter::hbm_written_bytes});
  out["nvlink_received_GBps"] = rate(rank.traffic, spans, {TrafficCounter::nvlink_received_bytes});
  out["nvlink_sent_GBps"] = rate(rank.traffic, spans, {TrafficCounter::nvlink_sent_bytes});
  return out;
}

std::string traffic_text(const Json& info) {
  std::string out;
  const auto add = [&](const char* name, const Json& rate) {
    if (rate.is_null()) return;
    out += fmt::format("{}{} {:.1f} GB/s (highest {:.1f})", out.empty() ? "" : ", ", name, rate["mean"].get<double>(),
                       rate["highest"].get<double>());
  };
  add("HBM", info["hbm_GBps"]);
  add("NVLink in", info["nvlink_received_GBps"]);
  add("NVLink out", info["nvlink_sent_GBps"]);
  return out;
}

}  // namespace weft
