#include "cli/output/trace_timeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "cli/output/perfetto_writer.h"
#include "cli/output/timeline.h"
#include "cli/output/timeline_tracks.h"
#include "cli/run/result.h"
#include "traces/matched_collectives.h"
#include "traces/trace_words.h"

namespace weft {

namespace {

// Places of a rank's tracks: streams stand between phases and waits, in the order of their numbers.
constexpr std::int32_t kIterations = -2, kPhases = -1, kWaits = std::numeric_limits<std::int32_t>::max() - 2,
                       kHbm = kWaits + 1, kNvlink = kWaits + 2;

std::uint64_t ns(Time time) { return trace_ns(to_seconds(time)); }

const char* category(TraceOpKind kind) {
  if (kind == TraceOpKind::kernel) return "compute";
  return kind == TraceOpKind::collective ? "communication" : to_string(kind);
}

// What timeline_tracks() and phase_spans() look at; `op` is the operation's index.
OperationRecord record_of(const TraceOp& op, std::size_t index) {
  OperationRecord record;
  record.stream = op.stream;
  record.op = static_cast<std::uint32_t>(index);
  record.iteration = op.iteration.value_or(0);
  record.phase = op.iteration ? op.phase : TrainingPhase::other;  // phases are those of an iteration
  record.communication = op.kind == TraceOpKind::collective;
  record.start_s = to_seconds(op.start);
  record.end_s = to_seconds(op.start + op.duration);
  return record;
}

class TraceTimeline {
 public:
  explicit TraceTimeline(const Trace& trace) : trace_(trace) {
    for (const TraceRank& rank : trace.ranks) flows_.emplace_back(rank.ops.size());
    std::uint64_t flow = 0;
    for (const MatchedCollective& collective : match_collectives(trace).matched) {
      if (collective.members.size() < 2) continue;
      ++flow;
      for (const auto& [rank, op] : collective.members) flows_[rank][op] = flow;
    }
  }

  std::string build() {
    for (std::size_t i = 0; i < trace_.ranks.size(); ++i) write_rank(trace_.ranks[i], i);
    return writer_.finish();
  }

 private:
  void write_rank(const TraceRank& rank, std::size_t index) {
    const std::string device = rank.device.empty() ? "" : fmt::format(" ({})", rank.device);
    const PerfettoTrack process =
        writer_.process(fmt::format("rank {}{}", rank.rank, device), static_cast<std::int32_t>(index));
    write_iterations(rank, process);
    RunResult operations, waits;
    for (std::size_t i = 0; i < rank.ops.size(); ++i) {
      const bool on_host = rank.ops[i].kind == TraceOpKind::host_wait;
      (on_host ? waits : operations).operations.push_back(record_of(rank.ops[i], i));
    }
    PerfettoTrack phases = 0;
    for (const PhaseSpan& span : phase_spans(operations)) {
      if (phases == 0) phases = writer_.child(process, "phases", kPhases);
      writer_.slice(phase_slice(span, phases));
    }
    std::int32_t place = 0;
    PerfettoTrack stream = 0;
    for (const TimelineTrack& lane : timeline_tracks(operations)) {
      if (lane.overflow == 0) stream = writer_.thread(process, track_name(lane), place++);
      const PerfettoTrack track = lane.overflow == 0 ? stream : writer_.child(stream, track_name(lane), 0);
      for (const std::size_t i : lane.operations) write_op(rank, index, operations.operations[i].op, track);
    }
    for (const TimelineTrack& lane : timeline_tracks(waits)) {  // of several threads they overlap
      const PerfettoTrack track = writer_.child(process, "host waits", kWaits);
      for (const std::size_t i : lane.operations) write_op(rank, index, waits.operations[i].op, track);
    }
    write_counters(rank.traffic, process);
  }

  void write_iterations(const TraceRank& rank, PerfettoTrack process) {
    const PerfettoTrack track = writer_.child(process, "iterations", kIterations);
    std::uint64_t free = 0;  // those of other programs may overlap
    for (const TraceIteration& iteration : rank.iterations) {
      const std::uint64_t start = std::max(free, ns(iteration.start));
      free = std::max(start, ns(iteration.end));
      writer_.slice({track, start, free, iteration.name, {"iteration"}, {}, 0});
    }
  }

  void write_op(const TraceRank& rank, std::size_t rank_index, std::size_t index, PerfettoTrack track) {
    const TraceOp& op = rank.ops[index];
    PerfettoSlice slice{track, ns(op.start), ns(op.start + op.duration), op.name, {}, {}, flows_[rank_index][index]};
    slice.categories = {category(op.kind), to_string(op.phase)};
    const auto number = [&](const char* name, auto value) {
      slice.annotations.emplace_back(name, static_cast<double>(value));
    };
    const auto text = [&](const char* name, const std::string& value) {
      if (!value.empty()) slice.annotations.emplace_back(name, value);
    };
    if (op.iteration) number("iteration", *op.iteration);
    number("op", index);
    text("operator", op.op);
    text("layer", op.layer);
    number("issued_us", to_seconds(op.issued) * 1e6);
    if (op.shape) {
      text("grid", fmt::format("{}", fmt::join(op.shape->grid, "x")));
      text("block", fmt::format("{}", fmt::join(op.shape->block, "x")));
    }
    if (op.bytes > Bytes()) number("bytes", op.bytes.count());
    if (op.collective) {
      const TraceCollective& collective = *op.collective;
      text("collective", to_string(collective.kind));
      if (collective.elements) number("elements", *collective.elements);
      if (collective.type) text("type", to_string(*collective.type));
      if (collective.group_size > 0) number("ranks", collective.group_size);
      text("group", collective.group_name);
      text("algorithm", collective.algorithm);
      text("protocol", collective.protocol);
      if (collective.channels > 0) number("channels", collective.channels);
    }
    if (op.counters) {
      for (std::size_t i = 0; i < kKernelCounterCount; ++i)
        if (const auto& value = op.counters->values[i]) number(kKernelCounterWords[i].data(), *value);
    }
    writer_.slice(slice);
  }

  void write_counters(const TraceTraffic& traffic, PerfettoTrack process) {
    static constexpr std::array<const char*, kTrafficCounterCount> kNames{"HBM read", "HBM write", "NVLink received",
                                                                          "NVLink sent"};  // by TrafficCounter
    PerfettoTrack hbm = 0, nvlink = 0;
    for (std::size_t i = 0; i < kTrafficCounterCount; ++i) {
      if (traffic.bytes[i].empty()) continue;
      const bool of_hbm = i <= static_cast<std::size_t>(TrafficCounter::hbm_written_bytes);
      PerfettoTrack& group = of_hbm ? hbm : nvlink;
      if (group == 0) group = writer_.child(process, of_hbm ? "HBM" : "NVLink", of_hbm ? kHbm : kNvlink);
      write_counter(traffic, traffic.bytes[i], writer_.counter(group, kNames[i], "GB/s"));
    }
  }

  void write_counter(const TraceTraffic& traffic, const std::vector<std::int64_t>& bytes, PerfettoTrack track) {
    Time end;
    for (std::size_t i = 0; i < traffic.size(); ++i) {
      if (traffic.start[i] > end && i > 0) writer_.value(track, ns(end), 0);
      writer_.value(track, ns(traffic.start[i]),
                    static_cast<double>(bytes[i]) / to_seconds(traffic.duration[i]) * 1e-9);
      end = traffic.start[i] + traffic.duration[i];
    }
    writer_.value(track, ns(end), 0);
  }

  const Trace& trace_;
  std::vector<std::vector<std::uint64_t>> flows_;  // by rank and operation; 0: none
  PerfettoWriter writer_;
};

}  // namespace

std::string trace_timeline(const Trace& trace) { return TraceTimeline(trace).build(); }

}  // namespace weft
