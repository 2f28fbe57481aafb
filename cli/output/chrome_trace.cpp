#include "cli/output/chrome_trace.h"

#include <perfetto.pb.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/error.h"
#include "sim/json_reader.h"

namespace weft {

namespace {

namespace pb = perfetto::protos;

double microseconds_of(std::uint64_t ns) { return static_cast<double>(ns) * 1e-3; }

class Converter {
 public:
  explicit Converter(const std::string& source) : source_(source) {}

  std::string convert(const std::string& bytes) {
    pb::Trace trace;
    if (!trace.ParseFromString(bytes) || trace.packet_size() == 0) {
      throw InputError(source_, "", "expected a Perfetto trace, got something else");
    }
    for (const pb::TracePacket& packet : trace.packet()) {
      for (const auto& entry : packet.interned_data().event_names()) names_[entry.iid()] = entry.name();
      for (const auto& entry : packet.interned_data().event_categories()) categories_[entry.iid()] = entry.name();
      for (const auto& entry : packet.interned_data().debug_annotation_names()) notes_[entry.iid()] = entry.name();
      if (packet.has_track_descriptor()) describe(packet.track_descriptor());
      if (packet.has_track_event()) event(packet.timestamp(), packet.track_event());
    }
    for (const auto& [track, open] : open_) {
      if (!open.empty()) throw InputError(source_, "", "expected an end of each slice, got none");
    }
    write_flows();
    return Json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events_)}}.dump() + "\n";
  }

 private:
  struct Track {
    std::int32_t pid = 0, tid = 0;
    std::string name;
  };
  struct FlowEnd {
    double at = 0;
    std::int32_t pid = 0, tid = 0;
    bool operator<(const FlowEnd& other) const { return at < other.at; }
  };

  void describe(const pb::TrackDescriptor& descriptor) {
    Track track;
    if (const auto parent = tracks_.find(descriptor.parent_uuid()); parent != tracks_.end()) track = parent->second;
    if (descriptor.has_process()) {
      track.pid = track.tid = descriptor.process().pid();
      name("process_name", track, descriptor.process().process_name());
      events_.push_back({{"ph", "M"},
                         {"name", "process_sort_index"},
                         {"pid", track.pid},
                         {"args", {{"sort_index", descriptor.sibling_order_rank()}}}});
    } else if (descriptor.has_thread()) {
      track.tid = descriptor.thread().tid();
      name("thread_name", track, descriptor.thread().thread_name());
    } else {
      track.name = descriptor.name();
      track.tid = 0;  // a thread once it has a slice
    }
    tracks_[descriptor.uuid()] = track;
  }

  void name(const char* what, const Track& track, const std::string& value) {
    events_.push_back(
        {{"ph", "M"}, {"name", what}, {"pid", track.pid}, {"tid", track.tid}, {"args", {{"name", value}}}});
  }

  Track& track_of(const pb::TrackEvent& event) {
    const auto found = tracks_.find(event.track_uuid());
    if (found == tracks_.end()) throw InputError(source_, "", "expected tracks before their events, got none");
    return found->second;
  }

  void event(std::uint64_t ns, const pb::TrackEvent& event) {
    Track& track = track_of(event);
    if (event.type() == pb::TrackEvent::TYPE_COUNTER) {
      events_.push_back({{"ph", "C"},
                         {"name", track.name},
                         {"pid", track.pid},
                         {"ts", microseconds_of(ns)},
                         {"args", {{"value", event.double_counter_value()}}}});
      return;
    }
    std::vector<std::size_t>& open = open_[event.track_uuid()];
    if (event.type() == pb::TrackEvent::TYPE_SLICE_END) {
      if (open.empty()) throw InputError(source_, "", "expected a begin of each slice, got none");
      Json& slice = events_[open.back()];
      slice["dur"] = microseconds_of(ns - begins_[open.back()]);
      open.pop_back();
      return;
    }
    if (track.tid == 0) {
      track.tid = own_thread_++;
      name("thread_name", track, track.name);
    }
    open.push_back(events_.size());
    begins_[events_.size()] = ns;
    std::string categories;
    for (const auto iid : event.category_iids()) categories += (categories.empty() ? "" : ",") + categories_[iid];
    Json slice{{"ph", "X"},        {"name", names_[event.name_iid()]}, {"cat", categories}, {"pid", track.pid},
               {"tid", track.tid}, {"ts", microseconds_of(ns)},        {"dur", 0},          {"args", Json::object()}};
    for (const auto& note : event.debug_annotations()) {
      Json& value = slice["args"][notes_[note.name_iid()]];
      if (note.has_string_value())
        value = note.string_value();
      else
        value = note.double_value();
    }
    events_.push_back(std::move(slice));
    for (const auto flow : event.flow_ids()) flows_[flow].push_back({microseconds_of(ns), track.pid, track.tid});
  }

  // A flow goes through its slices in the order of their begins.
  void write_flows() {
    for (auto& [id, ends] : flows_) {
      std::stable_sort(ends.begin(), ends.end());
      for (std::size_t i = 0; i < ends.size(); ++i) {
        Json step{{"ph", i == 0                 ? "s"
                         : i + 1 == ends.size() ? "f"
                                                : "t"},
                  {"name", "collective"},
                  {"cat", "communication"},
                  {"id", id},
                  {"pid", ends[i].pid},
                  {"tid", ends[i].tid},
                  {"ts", ends[i].at}};
        if (i + 1 == ends.size()) step["bp"] = "e";  // of the slice around it, not of the next one
        events_.push_back(std::move(step));
      }
    }
  }

  const std::string& source_;
  Json events_ = Json::array();
  std::map<std::uint64_t, Track> tracks_;
  std::map<std::uint64_t, std::vector<std::size_t>> open_;  // slices without an end, by track
  std::map<std::size_t, std::uint64_t> begins_;
  std::map<std::uint64_t, std::vector<FlowEnd>> flows_;
  std::map<std::uint64_t, std::string> names_, categories_, notes_;
  std::int32_t own_thread_ = 1'000'000'000;  // above those of streams
};

}  // namespace

std::string chrome_trace(const std::string& bytes, const std::string& source) {
  return Converter(source).convert(bytes);
}

}  // namespace weft
