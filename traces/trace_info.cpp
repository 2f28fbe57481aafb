#include "traces/trace_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "traces/launch_position.h"
#include "traces/matched_collectives.h"
#include "traces/trace_words.h"
#include "traces/traffic_info.h"

namespace weft {
namespace {

struct Slowdown {
  Time alone;
  Time overlapped;
  std::uint32_t positions = 0;
  std::uint32_t slower = 0;

  void add(const Slowdown& other) {
    alone += other.alone;
    overlapped += other.overlapped;
    positions += other.positions;
    slower += other.slower;
  }
};

struct Overlap {
  Time communication;
  Time computation;
  Time both;
  Time kernel_time;  // of kernels one by one, and under collectives
  Time kernel_time_under;

  void add(const Overlap& other) {
    communication += other.communication;
    computation += other.computation;
    both += other.both;
    kernel_time += other.kernel_time;
    kernel_time_under += other.kernel_time_under;
  }
};

Json share(Time part, Time whole) {
  if (whole == Time()) return nullptr;
  return static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

Json number_or_null(const std::optional<std::int64_t>& n) { return n ? Json(*n) : Json(nullptr); }

constexpr double kLongKernelUs = 20;  // the reference study's bound: below it, launch noise is larger than the effect

Slowdown slowdown_of(const TraceRank& rank) {
  Slowdown out;
  for (const LaunchPosition& p : launch_positions(rank)) {
    if (!p.alone || !p.overlapped || rank.ops[p.ops.front()].kind != TraceOpKind::kernel) continue;
    if (to_microseconds(*p.alone) < kLongKernelUs) continue;
    out.alone += *p.alone;
    out.overlapped += *p.overlapped;
    ++out.positions;
    if (*p.overlapped > *p.alone) ++out.slower;
  }
  return out;
}

// The operations of a rank, or of one of its iterations.
class Counter {
 public:
  Counter(const TraceRank& rank, const std::vector<std::uint32_t>& ops) {
    for (const std::uint32_t i : ops) {
      const TraceOp& op = rank.ops[i];
      ++counts_[static_cast<std::size_t>(op.kind)];
      if (op.kind != TraceOpKind::host_wait) streams_.insert(op.stream);
      with_counters_ += op.counters ? 1 : 0;
      if (op.kind == TraceOpKind::kernel) computing_.push_back({op.start, op.start + op.duration});
      if (op.kind != TraceOpKind::collective) continue;
      communicating_.push_back({op.start, op.start + op.duration});
      count_collective(*op.collective);
    }
    const std::vector<Interval> communication = union_of(communicating_);
    for (const Interval& kernel : computing_) {
      overlap_.kernel_time += kernel.end - kernel.start;
      overlap_.kernel_time_under += overlap(kernel, communication);
    }
    const std::vector<Interval> computation = union_of(computing_);
    overlap_.communication = length(communication);
    overlap_.computation = length(computation);
    overlap_.both = overlap(communication, computation);
  }

  [[nodiscard]] std::int64_t count(TraceOpKind kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] std::int64_t kernels() const { return count(TraceOpKind::kernel) + count(TraceOpKind::collective); }
  [[nodiscard]] std::int64_t with_counters() const { return with_counters_; }
  [[nodiscard]] const std::set<std::uint32_t>& streams() const { return streams_; }
  [[nodiscard]] const Overlap& overlapped() const { return overlap_; }

  void write_counts(Json& out) const {
    out["kernels"] = kernels();
    out["kernels_with_counters"] = with_counters_;
    out["collectives"] = count(TraceOpKind::collective);
    out["copies"] = count(TraceOpKind::copy);
    out["memsets"] = count(TraceOpKind::memset);
    out["host_waits"] = count(TraceOpKind::host_wait);
  }
  void write_collectives(Json& out) const {
    Json kinds = Json::object();
    for (const auto& [kind, sum] : kinds_) {
      Json& k = kinds[to_string(kind)];
      k["count"] = sum.count;
      k["elements"] = number_or_null(sum.elements);
      k["bytes"] = number_or_null(sum.bytes);
    }
    out["collectives_by_kind"] = std::move(kinds);
  }
  void write_times(Json& out) const {
    out["computation_s"] = to_seconds(overlap_.computation);
    out["communication_s"] = to_seconds(overlap_.communication);
    out["communication_hidden"] = share(overlap_.both, overlap_.communication);
    out["compute_under_communication"] = share(overlap_.kernel_time_under, overlap_.kernel_time);
  }

 private:
  struct KindSum {
    std::int64_t count = 0;
    std::optional<std::int64_t> elements = 0;  // absent as soon as one is not known
    std::optional<std::int64_t> bytes = 0;
  };

  void count_collective(const TraceCollective& c) {
    KindSum& sum = kinds_[c.kind];
    ++sum.count;
    sum.elements = sum.elements && c.elements ? std::optional(*sum.elements + *c.elements) : std::nullopt;
    sum.bytes = sum.bytes && c.elements && c.type ? std::optional(*sum.bytes + *c.elements * bytes_per_element(*c.type))
                                                  : std::nullopt;
  }

  std::array<std::int64_t, kTraceOpKinds.size()> counts_{};
  std::int64_t with_counters_ = 0;
  std::set<std::uint32_t> streams_;
  std::map<CollectiveKind, KindSum> kinds_;
  std::vector<Interval> computing_;
  std::vector<Interval> communicating_;
  Overlap overlap_;
};

Json rank_info(const TraceRank& rank, const Counter& counter, const Slowdown& slowdown) {
  Json out;
  out["rank"] = rank.rank;
  out["device"] = rank.device;
  out["compute_units"] = rank.compute_units;
  out["memory_bytes"] = rank.memory_bytes;
  counter.write_counts(out);
  out["streams"] = counter.streams();
  out["iterations"] = rank.iterations.size();
  counter.write_collectives(out);
  counter.write_times(out);
  out["slowdown_at_equal_positions"] = share(slowdown.overlapped, slowdown.alone);
  out["positions"] = slowdown.positions;
  out["positions_slower"] = slowdown.slower;
  out["traffic"] = traffic_info(rank);
  return out;
}

Json spread(std::vector<Time> times) {
  if (times.empty()) return nullptr;
  const auto [first, last] = std::minmax_element(times.begin(), times.end());
  Json out;
  out["min"] = to_seconds(*first);
  out["max"] = to_seconds(*last);
  out["median"] = to_seconds(median(std::move(times)));
  return out;
}

// Null for a single rank.
Json ranks_together(const Trace& trace, const MatchedCollectives& collectives) {
  if (trace.ranks.size() < 2) return nullptr;
  Json list = Json::array();
  std::vector<Time> starts, ends;
  Time shortest, middle;
  for (const MatchedCollective& c : collectives.matched) {
    starts.push_back(c.start_spread);
    ends.push_back(c.end_spread);
    shortest += c.shortest;
    middle += c.median;
    Json entry;
    entry["iteration"] = c.iteration;
    entry["group"] = c.group;
    entry["kind"] = to_string(c.kind);
    entry["ranks"] = c.members.size();
    entry["start_spread_s"] = to_seconds(c.start_spread);
    entry["end_spread_s"] = to_seconds(c.end_spread);
    entry["shortest_s"] = to_seconds(c.shortest);
    entry["median_s"] = to_seconds(c.median);
    entry["longest_s"] = to_seconds(c.longest);
    list.push_back(std::move(entry));
  }
  Json out;
  out["matched"] = collectives.matched.size();
  out["unmatched"] = collectives.unmatched;
  out["start_spread_s"] = spread(std::move(starts));
  out["end_spread_s"] = spread(std::move(ends));
  out["shortest_s"] = to_seconds(shortest);
  out["median_s"] = to_seconds(middle);
  out["collectives"] = std::move(list);
  return out;
}

Json iteration_info(const TraceRank& rank, std::uint32_t index, const std::vector<std::uint32_t>& ops) {
  const TraceIteration& iteration = rank.iterations[index];
  const Counter counter(rank, ops);
  Json out;
  out["rank"] = rank.rank;
  out["iteration"] = index;
  out["name"] = iteration.name;
  out["start_s"] = to_seconds(iteration.start);
  out["time_s"] = to_seconds(iteration.end - iteration.start);
  counter.write_counts(out);
  counter.write_collectives(out);
  counter.write_times(out);
  return out;
}

}  // namespace

Json trace_info_json(const Trace& trace) {
  std::int64_t kernels = 0;
  std::int64_t with_counters = 0;
  std::array<std::int64_t, kTraceOpKinds.size()> counts{};
  std::size_t streams = 0;
  std::size_t iterations = 0;
  Overlap total;
  Slowdown slowdown;
  Json per_rank = Json::array();
  Json per_iteration = Json::array();
  const MatchedCollectives collectives = match_collectives(trace);
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    const TraceRank& rank = trace.ranks[r];
    std::vector<std::uint32_t> all(rank.ops.size());
    std::iota(all.begin(), all.end(), 0);
    std::vector<std::vector<std::uint32_t>> by_iteration(rank.iterations.size());
    for (const std::uint32_t i : all)
      if (rank.ops[i].iteration) by_iteration[*rank.ops[i].iteration].push_back(i);
    const Counter counter(rank, all);
    const Slowdown of_rank = slowdown_of(rank);
    kernels += counter.kernels();
    with_counters += counter.with_counters();
    for (const TraceOpKind kind : kTraceOpKinds) counts[static_cast<std::size_t>(kind)] += counter.count(kind);
    streams = std::max(streams, counter.streams().size());
    iterations = std::max(iterations, rank.iterations.size());
    total.add(counter.overlapped());
    slowdown.add(of_rank);
    per_rank.push_back(rank_info(rank, counter, of_rank));
    if (trace.ranks.size() > 1) {
      const std::optional<Time>& offset = collectives.clock_offset[r];
      per_rank.back()["waiting_in_collectives_s"] = to_seconds(collectives.waiting[r]);
      per_rank.back()["clock_offset_s"] = offset ? Json(to_seconds(*offset)) : Json(nullptr);
      per_rank.back()["clock_moved_s"] = to_seconds(rank.clock_moved);
    }
    for (std::uint32_t i = 0; i < rank.iterations.size(); ++i)
      per_iteration.push_back(iteration_info(rank, i, by_iteration[i]));
  }
  const auto count = [&](TraceOpKind kind) { return counts[static_cast<std::size_t>(kind)]; };
  Json out;
  out["schema"] = "weft-trace-info/1";
  out["source"] = trace.source;
  out["world_size"] = trace.world_size;
  out["ranks"] = trace.ranks.size();
  out["kernels"] = kernels;
  out["kernels_with_counters"] = with_counters;
  out["collectives"] = count(TraceOpKind::collective);
  out["copies"] = count(TraceOpKind::copy);
  out["memsets"] = count(TraceOpKind::memset);
  out["host_waits"] = count(TraceOpKind::host_wait);
  out["streams"] = streams;
  out["iterations"] = iterations;
  out["communication_hidden"] = share(total.both, total.communication);
  out["compute_under_communication"] = share(total.kernel_time_under, total.kernel_time);
  out["slowdown_at_equal_positions"] = share(slowdown.overlapped, slowdown.alone);
  out["positions"] = slowdown.positions;
  out["positions_slower"] = slowdown.slower;
  out["ranks_together"] = ranks_together(trace, collectives);
  out["per_rank"] = std::move(per_rank);
  out["per_iteration"] = std::move(per_iteration);
  return out;
}

}  // namespace weft
