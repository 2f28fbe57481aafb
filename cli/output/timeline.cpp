#include "cli/output/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output/perfetto_writer.h"
#include "cli/output/result_json.h"
#include "cli/output/timeline_tracks.h"

namespace weft {

namespace {

class TraceBuilder {
 public:
  explicit TraceBuilder(const RunResult& result) : result_(result), tracks_(timeline_tracks(result)) {}

  std::string build() {
    std::map<std::uint32_t, PerfettoTrack> gpus;
    for (const TimelineTrack& track : tracks_) {
      stream_count_ = std::max(stream_count_, track.stream + 1);
      gpus.try_emplace(track.gpu, 0);
    }
    for (const CounterTrack& counter : result_.counters) {
      if (counter.gpu) gpus.try_emplace(*counter.gpu, 0);
    }
    for (auto& [gpu, track] : gpus) track = writer_.process(fmt::format("GPU {}", gpu), static_cast<std::int32_t>(gpu));

    const std::vector<std::uint64_t> flows = collective_flows(result_, tracks_);
    PerfettoTrack stream = 0;
    for (const TimelineTrack& lane : tracks_) {
      PerfettoTrack track = 0;
      if (lane.overflow == 0)
        track = stream = writer_.thread(gpus.at(lane.gpu), track_name(lane), static_cast<std::int32_t>(lane.stream));
      else
        track = writer_.child(stream, track_name(lane), 0);
      for (const std::size_t i : lane.operations) slice(result_.operations[i], track, flows[i]);
    }
    write_phases(gpus);
    for (const CounterTrack& counter : result_.counters)
      write_counter(counter, counter.gpu ? gpus.at(*counter.gpu) : 0);
    return writer_.finish();
  }

 private:
  void write_phases(const std::map<std::uint32_t, PerfettoTrack>& gpus) {
    PerfettoTrack track = 0;
    std::optional<std::uint32_t> gpu;
    for (const PhaseSpan& span : phase_spans(result_)) {
      if (gpu != span.gpu) track = writer_.child(gpus.at(span.gpu), "phases", -1);  // above the streams
      gpu = span.gpu;
      writer_.slice(phase_slice(span, track));
    }
  }

  void slice(const OperationRecord& operation, PerfettoTrack track, std::uint64_t flow) {
    PerfettoSlice slice{track, trace_ns(operation.start_s), trace_ns(operation.end_s), operation.name, {}, {}, flow};
    slice.categories = {operation.communication ? "communication" : "compute", to_string(operation.phase)};
    auto& notes = slice.annotations;
    notes.emplace_back("iteration", static_cast<double>(operation.iteration));
    notes.emplace_back("op", static_cast<double>(operation.op));
    if (operation.isolated_s) notes.emplace_back("isolated_us", *operation.isolated_s * 1e6);
    if (const auto factor = slowdown(operation)) {
      notes.emplace_back("slowdown", *factor);
      notes.emplace_back("cause_compute_units_us", operation.causes.compute_units * 1e6);
      notes.emplace_back("cause_hbm_us", operation.causes.hbm * 1e6);
      notes.emplace_back("cause_cache_us", operation.causes.cache * 1e6);
      notes.emplace_back("cause_links_us", operation.causes.links * 1e6);
    }
    writer_.slice(slice);
  }

  // Counters of a kind lie together, below the streams of their GPU, in their order.
  PerfettoTrack group_of(const CounterTrack& counter, PerfettoTrack parent) {
    static constexpr std::array<const char*, 5> kGroups{"HBM", "memory", "links", "power", "clock"};  // by CounterKind
    const auto kind = static_cast<std::size_t>(counter.kind);
    const auto [place, added] = groups_.try_emplace({parent, counter.kind}, 0);
    if (added) {
      place->second = writer_.child(parent, kGroups[kind], static_cast<std::int32_t>(stream_count_ + kind));
    }
    return place->second;
  }

  void write_counter(const CounterTrack& counter, PerfettoTrack parent) {
    const PerfettoTrack track = writer_.counter(group_of(counter, parent), counter.name, counter.unit);
    for (std::size_t i = 0; i < counter.values.size(); ++i)
      writer_.value(track, trace_ns(static_cast<double>(i) * counter.period_s), counter.values[i]);
  }

  const RunResult& result_;
  std::vector<TimelineTrack> tracks_;
  std::uint32_t stream_count_ = 1;
  std::map<std::pair<PerfettoTrack, CounterKind>, PerfettoTrack> groups_;  // by parent
  PerfettoWriter writer_;
};

}  // namespace

std::string track_name(const TimelineTrack& track) {
  if (track.overflow > 0) return fmt::format("stream {} overlap {}", track.stream, track.overflow);
  const char* kind = !track.communication ? "" : track.compute ? " (mixed)" : " (communication)";
  return fmt::format("stream {}{}", track.stream, kind);
}

PerfettoSlice phase_slice(const PhaseSpan& span, PerfettoTrack track) {
  return {track,
          trace_ns(span.start_s),
          trace_ns(span.end_s),
          to_string(span.phase),
          {"phase"},
          {{"iteration", static_cast<double>(span.iteration)}},
          0};
}

std::string timeline_trace(const RunResult& result) { return TraceBuilder(result).build(); }

}  // namespace weft
