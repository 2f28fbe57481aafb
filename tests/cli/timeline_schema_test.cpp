// The timeline of a real run, decoded against the schema: every track, slice, flow and counter.
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <tuple>

#include "cli/config/run_config.h"
#include "cli/output/timeline.h"
#include "cli/output/timeline_tracks.h"
#include "cli/run/simulate.h"
#include "tests/cli/decoded_trace.h"
#include "tests/cli/small_trace.h"
#include "tests/sim/temporary_folder.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

// All fields known, to the last message: what weft writes is what its copy of the schema says.
void expect_no_unknown_fields(const google::protobuf::Message& message) {
  const auto* reflection = message.GetReflection();
  EXPECT_EQ(reflection->GetUnknownFields(message).field_count(), 0) << message.ShortDebugString();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      expect_no_unknown_fields(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                                    : reflection->GetMessage(message, field));
    }
  }
}

TEST(TimelineSchema, HoldsAllOfARealRun) {
  const TemporaryFolder folder;
  Trace recorded = small_trace();
  TraceOp kernel = recorded.ranks[0].ops[0];
  recorded.ranks[0].ops[0].phase = TrainingPhase::forward;
  kernel.phase = TrainingPhase::backward;  // beside the all-reduce
  kernel.issued = microseconds(2);
  kernel.start = microseconds(21);
  recorded.ranks[0].ops.push_back(kernel);
  write_trace(recorded, folder.path() / "t.json");
  const Json config{
      {"system", "dgx-a100"}, {"gpus", 2}, {"workload", {{"trace", (folder.path() / "t.json").string()}}}};
  const RunResult result = simulate(read_run_config(config, (folder.path() / "e.json").string()), {});
  const std::string bytes = timeline_trace(result);
  pb::Trace message;
  ASSERT_TRUE(message.ParseFromString(bytes));
  expect_no_unknown_fields(message);
  const Decoded trace(bytes);  // slices end and nest, tracks come before what is on them

  // Every operation is a slice, with its times; every flow goes through both GPUs.
  ASSERT_EQ(trace.slices.size(), result.operations.size());
  std::multiset<std::tuple<std::string, std::uint64_t, std::uint64_t>> expected, got;
  for (const OperationRecord& op : result.operations) {
    expected.emplace(op.name, trace_ns(op.start_s), trace_ns(op.end_s));
  }
  std::map<std::uint64_t, std::set<std::uint64_t>> tracks_of_flow;
  for (const Slice& slice : trace.slices) {
    got.emplace(slice.name, slice.begin_ns, slice.end_ns);
    for (const std::uint64_t flow : slice.flows) tracks_of_flow[flow].insert(slice.track);
  }
  EXPECT_EQ(expected, got);
  EXPECT_EQ(tracks_of_flow.size(), result.collectives.size());
  for (const auto& [flow, tracks] : tracks_of_flow) EXPECT_EQ(tracks.size(), 2U);
  EXPECT_EQ(trace.phases.size(), 4U);  // forward and backward, on each

  // Every counter is there, with all of its values.
  std::map<std::string, const CounterTrack*> counters;
  for (const CounterTrack& counter : result.counters) {
    counters[std::to_string(counter.gpu.value()) + counter.name] = &counter;
  }
  ASSERT_EQ(trace.counters.size(), counters.size());
  for (const auto& [uuid, samples] : trace.counters) {
    const auto& track = trace.tracks.at(uuid);
    const std::string gpu =
        trace.tracks.at(trace.tracks.at(track.parent_uuid()).parent_uuid()).process().process_name();
    const CounterTrack& counter = *counters.at(gpu.substr(4) + track.name());
    std::size_t next = 0;
    for (std::size_t i = 0; i < counter.values.size(); ++i) {
      const std::uint64_t ns = trace_ns(static_cast<double>(i) * counter.period_s);
      if (next + 1 < samples.size() && samples[next + 1].first <= ns) ++next;
      ASSERT_EQ(samples[next].second, counter.values[i]) << track.name();
    }
    EXPECT_EQ(next + 1, samples.size());
  }
}

// google/perfetto, protos/perfetto/trace: a number that is not theirs is a field that their reader drops in silence.
TEST(TimelineSchema, FieldNumbersAreThoseOfPerfetto) {
  const std::map<std::string, int> numbers{{"Trace.packet", 1},
                                           {"TracePacket.timestamp", 8},
                                           {"TracePacket.trusted_packet_sequence_id", 10},
                                           {"TracePacket.track_event", 11},
                                           {"TracePacket.interned_data", 12},
                                           {"TracePacket.sequence_flags", 13},
                                           {"TracePacket.track_descriptor", 60},
                                           {"TracePacket.first_packet_on_sequence", 87},
                                           {"InternedData.event_categories", 1},
                                           {"InternedData.event_names", 2},
                                           {"InternedData.debug_annotation_names", 3},
                                           {"TrackEvent.category_iids", 3},
                                           {"TrackEvent.debug_annotations", 4},
                                           {"TrackEvent.type", 9},
                                           {"TrackEvent.name_iid", 10},
                                           {"TrackEvent.track_uuid", 11},
                                           {"TrackEvent.double_counter_value", 44},
                                           {"TrackEvent.flow_ids", 47},
                                           {"TrackDescriptor.uuid", 1},
                                           {"TrackDescriptor.name", 2},
                                           {"TrackDescriptor.process", 3},
                                           {"TrackDescriptor.thread", 4},
                                           {"TrackDescriptor.parent_uuid", 5},
                                           {"TrackDescriptor.counter", 8},
                                           {"ProcessDescriptor.pid", 1},
                                           {"ProcessDescriptor.process_name", 6},
                                           {"ThreadDescriptor.pid", 1},
                                           {"ThreadDescriptor.tid", 2},
                                           {"ThreadDescriptor.thread_name", 5},
                                           {"CounterDescriptor.unit_name", 6},
                                           {"DebugAnnotation.name_iid", 1},
                                           {"DebugAnnotation.double_value", 5},
                                           {"DebugAnnotation.string_value", 6}};
  const auto* file = pb::Trace::descriptor()->file();
  for (const auto& [name, number] : numbers) {
    const auto* field = file->pool()->FindFieldByName("perfetto.protos." + name);
    ASSERT_NE(field, nullptr) << name;
    EXPECT_EQ(field->number(), number) << name;
  }
}

}  // namespace
}  // namespace weft
