#include "cli/timeline.h"

#include <fmt/format.h>
#include <perfetto.pb.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/result_json.h"
#include "cli/timeline_tracks.h"

namespace weft {

namespace {

namespace pb = perfetto::protos;

// Strings that repeat are sent once and then by number, which is a quarter of the size for a training step.
class InternTable {
 public:
  struct Entry {
    std::uint64_t iid;
    bool added;
  };
  Entry intern(const std::string& text) {
    const auto [place, added] = iids_.try_emplace(text, iids_.size() + 1);
    return {place->second, added};
  }

 private:
  std::map<std::string, std::uint64_t> iids_;
};

template <class Repeated>
std::uint64_t interned(InternTable& table, const std::string& text, Repeated* new_entries) {
  const InternTable::Entry entry = table.intern(text);
  if (entry.added) {
    auto* added = new_entries->Add();
    added->set_iid(entry.iid);
    added->set_name(text);
  }
  return entry.iid;
}

class TraceBuilder {
 public:
  explicit TraceBuilder(const RunResult& result) : result_(result), tracks_(timeline_tracks(result)) {}

  std::string build() {
    for (const TimelineTrack& track : tracks_) stream_count_ = std::max(stream_count_, track.stream + 1);
    describe_root();
    std::map<std::uint32_t, std::uint64_t> gpus;
    for (const TimelineTrack& track : tracks_) gpus.try_emplace(track.gpu, 0);
    for (const CounterTrack& counter : result_.counters) {
      if (counter.gpu) gpus.try_emplace(*counter.gpu, 0);
    }
    for (auto& [gpu, uuid] : gpus) uuid = describe_gpu(gpu);

    const std::vector<std::uint64_t> flows = collective_flows(result_, tracks_);
    std::uint64_t stream_uuid = 0;
    for (const TimelineTrack& track : tracks_) {
      const std::uint64_t uuid =
          track.overflow == 0 ? describe_stream(track, gpus.at(track.gpu)) : describe_overflow(track, stream_uuid);
      if (track.overflow == 0) stream_uuid = uuid;
      for (const std::size_t i : track.operations) slice(result_.operations[i], uuid, flows[i]);
    }
    write_phases(gpus);
    for (const CounterTrack& counter : result_.counters)
      write_counter(counter, counter.gpu ? gpus.at(*counter.gpu) : 0);
    return std::move(bytes_);
  }

 private:
  // Process and thread ids must be unique over the trace and not 0 (the idle thread of a Linux trace).
  [[nodiscard]] std::int32_t pid(std::uint32_t gpu) const {
    return static_cast<std::int32_t>(1 + gpu * (stream_count_ + 1));
  }

  void emit(pb::TracePacket packet) {
    packet.set_trusted_packet_sequence_id(1);
    // Readers drop what refers to interned strings until they have seen where those start.
    packet.set_sequence_flags(first_ ? pb::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED
                                     : pb::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
    if (first_) packet.set_first_packet_on_sequence(true);
    first_ = false;
    // A message of one packet, appended: concatenated messages are one message with all their repeated fields.
    pb::Trace one;
    *one.add_packet() = std::move(packet);
    one.AppendToString(&bytes_);
  }

  void describe_root() {
    pb::TracePacket packet;
    auto* root = packet.mutable_track_descriptor();
    root->set_uuid(0);
    root->set_process_ordering(pb::TrackDescriptor::PROCESS_ORDERING_EXPLICIT);
    emit(std::move(packet));
  }

  std::uint64_t describe_gpu(std::uint32_t gpu) {
    pb::TracePacket packet;
    auto* track = packet.mutable_track_descriptor();
    track->set_uuid(next_uuid_);
    track->set_child_ordering(pb::TrackDescriptor::EXPLICIT);
    track->set_sibling_order_rank(static_cast<std::int32_t>(gpu));
    track->mutable_process()->set_pid(pid(gpu));
    track->mutable_process()->set_process_name(fmt::format("GPU {}", gpu));
    emit(std::move(packet));
    return next_uuid_++;
  }

  std::uint64_t describe_stream(const TimelineTrack& stream, std::uint64_t parent) {
    pb::TracePacket packet;
    auto* track = packet.mutable_track_descriptor();
    track->set_uuid(next_uuid_);
    track->set_parent_uuid(parent);
    track->set_sibling_order_rank(static_cast<std::int32_t>(stream.stream));
    track->mutable_thread()->set_pid(pid(stream.gpu));
    track->mutable_thread()->set_tid(pid(stream.gpu) + 1 + static_cast<std::int32_t>(stream.stream));
    const char* kind = !stream.communication ? "" : stream.compute ? " (mixed)" : " (communication)";
    track->mutable_thread()->set_thread_name(fmt::format("stream {}{}", stream.stream, kind));
    emit(std::move(packet));
    return next_uuid_++;
  }

  std::uint64_t describe_overflow(const TimelineTrack& overflow, std::uint64_t parent) {
    return describe_child(parent, fmt::format("stream {} overlap {}", overflow.stream, overflow.overflow), 0);
  }

  // A track without a thread of its own; 0: its parent is the trace.
  std::uint64_t describe_child(std::uint64_t parent, const std::string& name, std::int32_t rank) {
    pb::TracePacket packet;
    auto* track = packet.mutable_track_descriptor();
    track->set_uuid(next_uuid_);
    if (parent != 0) track->set_parent_uuid(parent);
    track->set_name(name);
    track->set_child_ordering(pb::TrackDescriptor::EXPLICIT);
    track->set_sibling_order_rank(rank);
    emit(std::move(packet));
    return next_uuid_++;
  }

  void annotate(pb::TracePacket& packet, const char* name, double value) {
    auto* annotation = packet.mutable_track_event()->add_debug_annotations();
    annotation->set_name_iid(
        interned(annotations_, name, packet.mutable_interned_data()->mutable_debug_annotation_names()));
    annotation->set_double_value(value);
  }

  // The packet that begins a slice.
  pb::TracePacket begin_slice(std::uint64_t track, std::uint64_t start_ns, const std::string& name,
                              const std::vector<std::string>& categories) {
    pb::TracePacket begin;
    begin.set_timestamp(start_ns);
    auto* event = begin.mutable_track_event();
    auto* strings = begin.mutable_interned_data();
    event->set_type(pb::TrackEvent::TYPE_SLICE_BEGIN);
    event->set_track_uuid(track);
    event->set_name_iid(interned(names_, name, strings->mutable_event_names()));
    for (const std::string& category : categories) {
      event->add_category_iids(interned(categories_, category, strings->mutable_event_categories()));
    }
    return begin;
  }

  void emit_slice(pb::TracePacket begin, std::uint64_t end_ns) {
    if (begin.interned_data().ByteSizeLong() == 0) begin.clear_interned_data();
    pb::TracePacket end;
    end.set_timestamp(std::max(begin.timestamp(), end_ns));
    end.mutable_track_event()->set_type(pb::TrackEvent::TYPE_SLICE_END);
    end.mutable_track_event()->set_track_uuid(begin.track_event().track_uuid());
    emit(std::move(begin));
    emit(std::move(end));
  }

  void write_phases(const std::map<std::uint32_t, std::uint64_t>& gpus) {
    std::uint64_t track = 0;
    std::optional<std::uint32_t> gpu;
    for (const PhaseSpan& span : phase_spans(result_)) {
      if (gpu != span.gpu) track = describe_child(gpus.at(span.gpu), "phases", -1);  // above the streams
      gpu = span.gpu;
      pb::TracePacket begin = begin_slice(track, trace_ns(span.start_s), to_string(span.phase), {"phase"});
      annotate(begin, "iteration", span.iteration);
      emit_slice(std::move(begin), trace_ns(span.end_s));
    }
  }

  void slice(const OperationRecord& operation, std::uint64_t track, std::uint64_t flow) {
    pb::TracePacket begin =
        begin_slice(track, trace_ns(operation.start_s), operation.name,
                    {operation.communication ? "communication" : "compute", to_string(operation.phase)});
    if (flow != 0) begin.mutable_track_event()->add_flow_ids(flow);
    annotate(begin, "iteration", operation.iteration);
    annotate(begin, "op", operation.op);
    if (operation.isolated_s) annotate(begin, "isolated_us", *operation.isolated_s * 1e6);
    if (const auto factor = slowdown(operation)) {
      annotate(begin, "slowdown", *factor);
      annotate(begin, "cause_compute_units_us", operation.causes.compute_units * 1e6);
      annotate(begin, "cause_hbm_us", operation.causes.hbm * 1e6);
      annotate(begin, "cause_cache_us", operation.causes.cache * 1e6);
      annotate(begin, "cause_links_us", operation.causes.links * 1e6);
    }
    emit_slice(std::move(begin), trace_ns(operation.end_s));
  }

  // Counters of a kind lie together, below the streams of their GPU, in their order.
  std::uint64_t group_of(const CounterTrack& counter, std::uint64_t parent) {
    static constexpr std::array<const char*, 5> kGroups{"HBM", "memory", "links", "power", "clock"};  // by CounterKind
    const auto kind = static_cast<std::size_t>(counter.kind);
    const auto [place, added] = groups_.try_emplace({parent, counter.kind}, 0);
    if (added) {
      place->second = describe_child(parent, kGroups[kind], static_cast<std::int32_t>(stream_count_ + kind));
    }
    return place->second;
  }

  void write_counter(const CounterTrack& counter, std::uint64_t parent) {
    pb::TracePacket packet;
    auto* track = packet.mutable_track_descriptor();
    track->set_parent_uuid(group_of(counter, parent));
    const std::uint64_t uuid = next_uuid_++;
    track->set_uuid(uuid);
    track->set_name(counter.name);
    track->set_sibling_order_rank(static_cast<std::int32_t>(uuid));
    track->mutable_counter()->set_unit_name(counter.unit);
    emit(std::move(packet));
    for (std::size_t i = 0; i < counter.values.size(); ++i) {
      if (i > 0 && counter.values[i] == counter.values[i - 1]) continue;  // it holds until the next one
      pb::TracePacket sample;
      sample.set_timestamp(trace_ns(static_cast<double>(i) * counter.period_s));
      sample.mutable_track_event()->set_type(pb::TrackEvent::TYPE_COUNTER);
      sample.mutable_track_event()->set_track_uuid(uuid);
      sample.mutable_track_event()->set_double_counter_value(counter.values[i]);
      emit(std::move(sample));
    }
  }

  const RunResult& result_;
  std::vector<TimelineTrack> tracks_;
  std::uint32_t stream_count_ = 1;
  std::uint64_t next_uuid_ = 1;  // 0 is the root of the trace
  bool first_ = true;
  std::map<std::pair<std::uint64_t, CounterKind>, std::uint64_t> groups_;  // by parent
  InternTable names_, categories_, annotations_;
  std::string bytes_;
};

}  // namespace

std::string timeline_trace(const RunResult& result) { return TraceBuilder(result).build(); }

}  // namespace weft
