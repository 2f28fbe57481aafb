#include "cli/output/perfetto_writer.h"

#include <perfetto.pb.h>

#include <algorithm>

namespace weft {

namespace {

namespace pb = perfetto::protos;

template <class Repeated>
std::uint64_t interned(std::map<std::string, std::uint64_t>& numbers, const std::string& text, Repeated* new_entries) {
  const auto [place, added] = numbers.try_emplace(text, numbers.size() + 1);
  if (added) {
    auto* entry = new_entries->Add();
    entry->set_iid(place->second);
    entry->set_name(text);
  }
  return place->second;
}

}  // namespace

PerfettoWriter::PerfettoWriter() {
  pb::TracePacket packet;
  auto* root = packet.mutable_track_descriptor();
  root->set_uuid(0);
  root->set_process_ordering(pb::TrackDescriptor::PROCESS_ORDERING_EXPLICIT);
  emit(std::move(packet));
}

void PerfettoWriter::emit(pb::TracePacket packet) {
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

PerfettoTrack PerfettoWriter::process(const std::string& name, std::int32_t place) {
  pb::TracePacket packet;
  auto* track = packet.mutable_track_descriptor();
  track->set_uuid(next_track_);
  track->set_child_ordering(pb::TrackDescriptor::EXPLICIT);
  track->set_sibling_order_rank(place);
  track->mutable_process()->set_pid(next_id_);
  track->mutable_process()->set_process_name(name);
  emit(std::move(packet));
  pids_[next_track_] = next_id_++;
  return next_track_++;
}

PerfettoTrack PerfettoWriter::thread(PerfettoTrack process, const std::string& name, std::int32_t place) {
  pb::TracePacket packet;
  auto* track = packet.mutable_track_descriptor();
  track->set_uuid(next_track_);
  track->set_parent_uuid(process);
  track->set_sibling_order_rank(place);
  track->mutable_thread()->set_pid(pids_.at(process));
  track->mutable_thread()->set_tid(next_id_++);
  track->mutable_thread()->set_thread_name(name);
  emit(std::move(packet));
  return next_track_++;
}

PerfettoTrack PerfettoWriter::child(PerfettoTrack parent, const std::string& name, std::int32_t place) {
  pb::TracePacket packet;
  auto* track = packet.mutable_track_descriptor();
  track->set_uuid(next_track_);
  if (parent != 0) track->set_parent_uuid(parent);
  track->set_name(name);
  track->set_child_ordering(pb::TrackDescriptor::EXPLICIT);
  track->set_sibling_order_rank(place);
  emit(std::move(packet));
  return next_track_++;
}

PerfettoTrack PerfettoWriter::counter(PerfettoTrack parent, const std::string& name, const std::string& unit) {
  pb::TracePacket packet;
  auto* track = packet.mutable_track_descriptor();
  track->set_parent_uuid(parent);
  track->set_uuid(next_track_);
  track->set_name(name);
  track->set_sibling_order_rank(static_cast<std::int32_t>(next_track_));
  track->mutable_counter()->set_unit_name(unit);
  emit(std::move(packet));
  return next_track_++;
}

void PerfettoWriter::slice(const PerfettoSlice& slice) {
  pb::TracePacket begin;
  begin.set_timestamp(slice.begin_ns);
  auto* event = begin.mutable_track_event();
  auto* strings = begin.mutable_interned_data();
  event->set_type(pb::TrackEvent::TYPE_SLICE_BEGIN);
  event->set_track_uuid(slice.track);
  event->set_name_iid(interned(names_, slice.name, strings->mutable_event_names()));
  for (const std::string& category : slice.categories)
    event->add_category_iids(interned(categories_, category, strings->mutable_event_categories()));
  if (slice.flow != 0) event->add_flow_ids(slice.flow);
  for (const auto& [name, value] : slice.annotations) {
    auto* annotation = event->add_debug_annotations();
    annotation->set_name_iid(interned(annotations_, name, strings->mutable_debug_annotation_names()));
    if (const auto* number = std::get_if<double>(&value))
      annotation->set_double_value(*number);
    else
      annotation->set_string_value(std::get<std::string>(value));
  }
  if (strings->ByteSizeLong() == 0) begin.clear_interned_data();
  emit(std::move(begin));
  pb::TracePacket end;
  end.set_timestamp(std::max(slice.begin_ns, slice.end_ns));
  end.mutable_track_event()->set_type(pb::TrackEvent::TYPE_SLICE_END);
  end.mutable_track_event()->set_track_uuid(slice.track);
  emit(std::move(end));
}

void PerfettoWriter::value(PerfettoTrack counter, std::uint64_t ns, double value) {
  const auto [last, first] = values_.try_emplace(counter, value);
  if (!first && last->second == value) return;
  last->second = value;
  pb::TracePacket sample;
  sample.set_timestamp(ns);
  sample.mutable_track_event()->set_type(pb::TrackEvent::TYPE_COUNTER);
  sample.mutable_track_event()->set_track_uuid(counter);
  sample.mutable_track_event()->set_double_counter_value(value);
  emit(std::move(sample));
}

}  // namespace weft
