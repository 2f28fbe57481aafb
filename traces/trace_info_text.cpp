#include <fmt/format.h>

#include <algorithm>

#include "traces/trace_info.h"
#include "traces/traffic_info.h"

namespace weft {
namespace {

std::string percent(const Json& share) {
  return share.is_null() ? "-" : fmt::format("{:.1f} %", 100 * share.get<double>());
}

std::string kinds(const Json& by_kind) {
  std::string out;
  for (const auto& [kind, sum] : by_kind.items()) {
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", sum["count"].get<std::int64_t>(), kind);
    if (!sum["elements"].is_null()) out += fmt::format(" of {} elements", sum["elements"].get<std::int64_t>());
  }
  return out.empty() ? "none" : out;
}

std::string together(const Json& ranks) {
  std::string out =
      fmt::format("  collectives on several ranks         {} of the same", ranks["matched"].get<std::int64_t>());
  if (const auto left = ranks["unmatched"].get<std::int64_t>(); left > 0) out += fmt::format(", {} alone", left);
  if (ranks["matched"] == 0) return out + "\n";
  const auto us = [&](const char* key, const char* which) { return 1e6 * ranks[key][which].get<double>(); };
  out += fmt::format("; starts {:.0f} to {:.0f} us apart, ends {:.0f} to {:.0f} us\n", us("start_spread_s", "min"),
                     us("start_spread_s", "max"), us("end_spread_s", "min"), us("end_spread_s", "max"));
  return out + fmt::format(
                   "  their cost, and with waiting         {:.3f} ms (the shortest of each), {:.3f} ms (the median)\n",
                   1e3 * ranks["shortest_s"].get<double>(), 1e3 * ranks["median_s"].get<double>());
}

}  // namespace

std::string trace_info_text(const Trace& trace) {
  const Json info = trace_info_json(trace);
  const auto count = [&](const char* key) { return info[key].get<std::int64_t>(); };
  std::string out = fmt::format("{}: {} of {} ranks, {} iterations\n", trace.source, count("ranks"),
                                count("world_size"), count("iterations"));
  out += fmt::format("  {} kernels ({} of them collectives), {} copies, {} memsets, {} host waits\n", count("kernels"),
                     count("collectives"), count("copies"), count("memsets"), count("host_waits"));
  if (count("kernels_with_counters") > 0)
    out += fmt::format("  {} kernels have counters\n", count("kernels_with_counters"));
  out += fmt::format("  communication hidden behind compute  {}\n", percent(info["communication_hidden"]));
  out += fmt::format("  compute under communication          {}\n", percent(info["compute_under_communication"]));
  const Json& slowdown = info["slowdown_at_equal_positions"];
  out += "  slowdown at equal launch positions   ";
  out += slowdown.is_null() ? std::string("-\n")
                            : fmt::format("{:.3f} ({} of {} positions slower)\n", slowdown.get<double>(),
                                          count("positions_slower"), count("positions"));
  if (!info["ranks_together"].is_null()) out += together(info["ranks_together"]);
  Time moved;
  for (const TraceRank& rank : trace.ranks) moved = std::max({moved, rank.clock_moved, Time() - rank.clock_moved});
  if (moved != Time())
    out += fmt::format(
        "  clocks of ranks                      moved by up to {:.1f} us, so that collectives end together\n",
        to_microseconds(moved));
  for (const Json& rank : info["per_rank"]) {
    out += fmt::format("  rank {}: {}, {} units, streams {}; collectives: {}", rank["rank"].get<std::int64_t>(),
                       rank["device"].get<std::string>(), rank["compute_units"].get<std::int64_t>(),
                       rank["streams"].dump(), kinds(rank["collectives_by_kind"]));
    if (rank.contains("waiting_in_collectives_s"))
      out += fmt::format("; {:.3f} ms of waiting in them", 1e3 * rank["waiting_in_collectives_s"].get<double>());
    out += "\n";
    if (const Json& traffic = rank["traffic"]; !traffic.is_null())
      out += fmt::format("  rank {} in its iterations: {}, by {} samples\n", rank["rank"].get<std::int64_t>(),
                         traffic_text(traffic), traffic["samples"].get<std::int64_t>());
  }
  for (const Json& it : info["per_iteration"]) {
    out +=
        fmt::format("  rank {} {}: {:.3f} ms, compute {:.3f} ms, communication {:.3f} ms, hidden {}; collectives: {}\n",
                    it["rank"].get<std::int64_t>(), it["name"].get<std::string>(), 1e3 * it["time_s"].get<double>(),
                    1e3 * it["computation_s"].get<double>(), 1e3 * it["communication_s"].get<double>(),
                    percent(it["communication_hidden"]), kinds(it["collectives_by_kind"]));
  }
  return out;
}

}  // namespace weft
