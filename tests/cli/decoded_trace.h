// Reads a timeline as Perfetto's importer does, and expects what that expects.
#pragma once

#include <gtest/gtest.h>
#include <perfetto.pb.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weft {

namespace pb = perfetto::protos;

struct Slice {
  std::string name;
  std::vector<std::string> categories;
  std::uint64_t track = 0, begin_ns = 0, end_ns = 0;
  std::vector<std::uint64_t> flows;
  std::map<std::string, double> annotations;  // numbers
  std::map<std::string, std::string> texts;
};

// Reads a trace as Perfetto's importer does: strings by number, slices by begin and end on a track.
class Decoded {
 public:
  explicit Decoded(const std::string& bytes) {
    pb::Trace trace;
    EXPECT_TRUE(trace.ParseFromString(bytes));
    for (const pb::TracePacket& packet : trace.packet()) read(packet);
    const auto first_phase = std::stable_partition(
        slices.begin(), slices.end(), [](const Slice& slice) { return slice.categories.front() != "phase"; });
    phases.assign(first_phase, slices.end());
    slices.erase(first_phase, slices.end());
    for (const auto& [track, open] : open_) EXPECT_TRUE(open.empty()) << "a slice without an end on track " << track;
  }

  std::map<std::uint64_t, pb::TrackDescriptor> tracks;
  std::vector<Slice> slices;  // but for
  std::vector<Slice> phases;
  std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, double>>> counters;
  std::size_t packets = 0;

 private:
  void read(const pb::TracePacket& packet) {
    EXPECT_EQ(packet.trusted_packet_sequence_id(), 1U);
    EXPECT_EQ(packet.sequence_flags(), packets == 0 ? pb::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED
                                                    : pb::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
    EXPECT_EQ(packet.first_packet_on_sequence(), packets == 0);
    ++packets;
    for (const auto& entry : packet.interned_data().event_names()) names_[entry.iid()] = entry.name();
    for (const auto& entry : packet.interned_data().event_categories()) categories_[entry.iid()] = entry.name();
    for (const auto& entry : packet.interned_data().debug_annotation_names()) annotations_[entry.iid()] = entry.name();
    if (packet.has_track_descriptor()) {
      EXPECT_TRUE(tracks.emplace(packet.track_descriptor().uuid(), packet.track_descriptor()).second);
    }
    if (packet.has_track_event()) event(packet.timestamp(), packet.track_event());
  }

  void event(std::uint64_t ns, const pb::TrackEvent& event) {
    const std::uint64_t track = event.track_uuid();
    EXPECT_TRUE(tracks.contains(track)) << "an event before its track";
    auto& open = open_[track];
    if (event.type() == pb::TrackEvent::TYPE_COUNTER) {
      EXPECT_TRUE(tracks.at(track).has_counter());
      counters[track].emplace_back(ns, event.double_counter_value());
    } else if (event.type() == pb::TrackEvent::TYPE_SLICE_BEGIN) {
      Slice slice;
      slice.name = names_.at(event.name_iid());
      for (const auto iid : event.category_iids()) slice.categories.push_back(categories_.at(iid));
      slice.track = track;
      slice.begin_ns = ns;
      slice.flows.assign(event.flow_ids().begin(), event.flow_ids().end());
      for (const auto& note : event.debug_annotations()) {
        const std::string& name = annotations_.at(note.name_iid());
        if (note.has_string_value())
          slice.texts[name] = note.string_value();
        else
          slice.annotations[name] = note.double_value();
      }
      open.push_back(slices.size());
      slices.push_back(slice);
    } else {
      EXPECT_EQ(event.type(), pb::TrackEvent::TYPE_SLICE_END);
      ASSERT_FALSE(open.empty()) << "an end without a begin";
      slices[open.back()].end_ns = ns;
      EXPECT_GE(ns, slices[open.back()].begin_ns);
      open.pop_back();
    }
  }

  std::map<std::uint64_t, std::string> names_, categories_, annotations_;
  std::map<std::uint64_t, std::vector<std::size_t>> open_;
};

}  // namespace weft
