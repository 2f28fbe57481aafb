#include "cli/timeline.h"

#include <gmock/gmock.h>
#include <perfetto.pb.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "cli/run_config.h"
#include "cli/simulate.h"
#include "cli/timeline_tracks.h"
#include "tests/cli/sample_result.h"
#include "tests/cli/small_trace.h"
#include "tests/sim/temporary_folder.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

namespace pb = perfetto::protos;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;
using weft::testing::sample_result;

struct Slice {
  std::string name;
  std::vector<std::string> categories;
  std::uint64_t track = 0, begin_ns = 0, end_ns = 0;
  std::vector<std::uint64_t> flows;
  std::map<std::string, double> annotations;
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
        slice.annotations[annotations_.at(note.name_iid())] = note.double_value();
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

OperationRecord operation(std::uint32_t gpu, std::uint32_t stream, const std::string& name, double start_us,
                          double end_us) {
  OperationRecord op;
  op.gpu = gpu;
  op.stream = stream;
  op.name = name;
  op.start_s = start_us * 1e-6;
  op.end_s = end_us * 1e-6;
  return op;
}

TEST(Timeline, HasAProcessForEachGpuAndAThreadForEachStream) {
  const Decoded trace(timeline_trace(sample_result()));
  std::set<std::string> processes, threads;
  std::set<std::int32_t> pids, tids;
  for (const auto& [uuid, track] : trace.tracks) {
    if (track.has_process()) {
      processes.insert(track.process().process_name());
      EXPECT_TRUE(pids.insert(track.process().pid()).second);
    }
    if (track.has_thread()) {
      const auto& parent = trace.tracks.at(track.parent_uuid());
      EXPECT_EQ(track.thread().pid(), parent.process().pid());
      threads.insert(parent.process().process_name() + "/" + track.thread().thread_name());
      EXPECT_TRUE(tids.insert(track.thread().tid()).second);
    }
  }
  EXPECT_EQ(processes.size(), 8U);
  EXPECT_EQ(threads.size(), 16U);
  EXPECT_THAT(processes, Contains("GPU 7"));
  EXPECT_THAT(threads, Contains("GPU 0/stream 0"));
  EXPECT_THAT(threads, Contains("GPU 3/stream 1 (communication)"));
  for (const std::int32_t tid : tids) EXPECT_FALSE(pids.contains(tid) || tid <= 0);
  EXPECT_EQ(trace.tracks.at(0).process_ordering(), pb::TrackDescriptor::PROCESS_ORDERING_EXPLICIT);
}

TEST(Timeline, EveryOperationIsASliceAndSlicesOfAStreamDoNotCross) {
  const RunResult result = sample_result();
  const Decoded trace(timeline_trace(result));
  ASSERT_EQ(trace.slices.size(), result.operations.size());
  std::map<std::uint64_t, std::uint64_t> last_end;
  for (const Slice& slice : trace.slices) {
    EXPECT_GE(slice.begin_ns, last_end[slice.track]) << slice.name;
    last_end[slice.track] = slice.end_ns;
  }
}

TEST(Timeline, ASliceCarriesItsTimesCategoriesAndCauses) {
  RunResult result;
  OperationRecord op = operation(2, 0, "gemm", 10, 13);
  op.phase = TrainingPhase::backward;
  op.iteration = 1;
  op.op = 42;
  op.isolated_s = 2e-6;
  op.causes = {6e-7, 3e-7, 1e-7, 0};
  result.operations = {op, operation(2, 0, "other", 13, 14)};
  const Decoded trace(timeline_trace(result));
  ASSERT_EQ(trace.slices.size(), 2U);
  const Slice& slice = trace.slices[0];
  EXPECT_EQ(slice.name, "gemm");
  EXPECT_EQ(slice.begin_ns, 10'000U);
  EXPECT_EQ(slice.end_ns, 13'000U);
  EXPECT_THAT(slice.categories, ElementsAre("compute", "backward"));
  EXPECT_NEAR(slice.annotations.at("slowdown"), 1.5, 1e-9);
  EXPECT_NEAR(slice.annotations.at("isolated_us"), 2, 1e-9);
  EXPECT_NEAR(slice.annotations.at("cause_compute_units_us"), 0.6, 1e-9);
  EXPECT_NEAR(slice.annotations.at("cause_hbm_us"), 0.3, 1e-9);
  EXPECT_NEAR(slice.annotations.at("cause_cache_us"), 0.1, 1e-9);
  EXPECT_EQ(slice.annotations.at("op"), 42);
  EXPECT_FALSE(trace.slices[1].annotations.contains("slowdown"));
}

TEST(Timeline, AFlowConnectsACollectiveOnAllItsGpus) {
  const RunResult result = sample_result({4, 2, false});
  const Decoded trace(timeline_trace(result));
  std::map<std::uint64_t, std::set<std::uint64_t>> tracks_of_flow;
  std::map<std::uint64_t, std::set<std::pair<std::string, double>>> slices_of_flow;
  for (const Slice& slice : trace.slices) {
    const bool communication = slice.categories.front() == "communication";
    ASSERT_EQ(slice.flows.size(), communication ? 1U : 0U) << slice.name;
    if (!communication) continue;
    tracks_of_flow[slice.flows[0]].insert(slice.track);
    slices_of_flow[slice.flows[0]].insert({slice.name, slice.annotations.at("iteration")});
  }
  EXPECT_EQ(tracks_of_flow.size(), 10U);  // five buckets in two iterations
  for (const auto& [flow, tracks] : tracks_of_flow) EXPECT_EQ(tracks.size(), 4U);
  for (const auto& [flow, slices] : slices_of_flow) EXPECT_EQ(slices.size(), 1U);
}

TEST(Timeline, RepeatedCollectivesOfOneNameMeetByTheirOrder) {
  RunResult result;
  for (const std::uint32_t gpu : {0U, 1U}) {
    for (const double start : {0.0, 10.0}) {
      result.operations.push_back(operation(gpu, 1, "all_reduce", start + gpu, start + 5));
      result.operations.back().communication = true;
    }
  }
  result.operations.push_back(operation(0, 1, "only here", 20, 30));
  result.operations.back().communication = true;
  const auto flows = collective_flows(result, timeline_tracks(result));
  EXPECT_THAT(flows, ElementsAre(1, 2, 1, 2, 0));
}

TEST(Timeline, OverlapOnOneStreamGoesToATrackOfItsOwn) {
  RunResult result;
  result.operations = {operation(0, 0, "a", 0, 10), operation(0, 0, "b", 5, 15), operation(0, 0, "c", 10, 20)};
  const auto tracks = timeline_tracks(result);
  ASSERT_EQ(tracks.size(), 2U);
  EXPECT_THAT(tracks[0].operations, ElementsAre(0, 2));
  EXPECT_THAT(tracks[1].operations, ElementsAre(1));
  const Decoded trace(timeline_trace(result));
  std::set<std::string> names;
  for (const auto& [uuid, track] : trace.tracks) names.insert(track.name());
  EXPECT_THAT(names, Contains("stream 0 overlap 1"));
}

TEST(Timeline, CountersBecomeTracksSampledAtTheirPeriod) {
  RunResult result;
  result.operations = {operation(1, 0, "a", 0, 1)};
  result.counters.push_back({"HBM bandwidth", "GB/s", 1e-6, {1.5, 2.5, 0}, 1});
  const Decoded trace(timeline_trace(result));
  ASSERT_EQ(trace.counters.size(), 1U);
  const auto& [uuid, samples] = *trace.counters.begin();
  EXPECT_THAT(samples, ElementsAre(Pair(0U, 1.5), Pair(1000U, 2.5), Pair(2000U, 0.0)));
  EXPECT_EQ(trace.tracks.at(uuid).counter().unit_name(), "GB/s");
  const auto& group = trace.tracks.at(trace.tracks.at(uuid).parent_uuid());
  EXPECT_EQ(group.name(), "HBM");
  EXPECT_EQ(trace.tracks.at(group.parent_uuid()).process().process_name(), "GPU 1");
}

TEST(Timeline, ACounterIsWrittenWhereItChanges) {
  RunResult result;
  result.counters.push_back({"switch0->switch2", "%", 1e-6, {3, 3, 3, 7, 7}, std::nullopt, CounterKind::link});
  const Decoded trace(timeline_trace(result));
  ASSERT_EQ(trace.counters.size(), 1U);
  EXPECT_THAT(trace.counters.begin()->second, ElementsAre(Pair(0U, 3.0), Pair(3000U, 7.0)));
  const auto& group = trace.tracks.at(trace.tracks.at(trace.counters.begin()->first).parent_uuid());
  EXPECT_EQ(group.name(), "links");
  EXPECT_FALSE(group.has_parent_uuid());  // of no GPU
}

TEST(Timeline, PhasesAreATrackOfEachGpu) {
  RunResult result;
  const auto add = [&](std::uint32_t gpu, TrainingPhase phase, std::uint32_t iteration, double from, double to) {
    result.operations.push_back(operation(gpu, 0, "k", from, to));
    result.operations.back().phase = phase;
    result.operations.back().iteration = iteration;
  };
  for (const std::uint32_t gpu : {0U, 1U}) {
    add(gpu, TrainingPhase::forward, 0, 0, 4);
    add(gpu, TrainingPhase::forward, 0, 5, 9);
    add(gpu, TrainingPhase::backward, 0, 8, 20);  // begins before the last one ends
    add(gpu, TrainingPhase::other, 0, 20, 21);
    add(gpu, TrainingPhase::optimizer, 0, 22, 30);
    add(gpu, TrainingPhase::forward, 1, 30, 31);
  }
  const Decoded trace(timeline_trace(result));
  ASSERT_EQ(trace.phases.size(), 8U);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < 4; ++i) {
    names.push_back(trace.phases[i].name);
    EXPECT_EQ(trace.phases[i].track, trace.phases[0].track);
    EXPECT_GE(trace.phases[i].begin_ns, i == 0 ? 0 : trace.phases[i - 1].end_ns);
  }
  EXPECT_THAT(names, ElementsAre("forward", "backward", "optimizer", "forward"));
  EXPECT_EQ(trace.phases[0].end_ns, 9000U);
  EXPECT_EQ(trace.phases[1].end_ns, 20000U);
  EXPECT_EQ(trace.phases[3].annotations.at("iteration"), 1);
  EXPECT_EQ(trace.tracks.at(trace.phases[0].track).name(), "phases");
  EXPECT_EQ(trace.tracks.at(trace.tracks.at(trace.phases[7].track).parent_uuid()).process().process_name(), "GPU 1");
}

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

TEST(Timeline, OfARealRunIsWhole) {
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
TEST(Timeline, FieldNumbersAreThoseOfPerfetto) {
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
                                           {"DebugAnnotation.double_value", 5}};
  const auto* file = pb::Trace::descriptor()->file();
  for (const auto& [name, number] : numbers) {
    const auto* field = file->pool()->FindFieldByName("perfetto.protos." + name);
    ASSERT_NE(field, nullptr) << name;
    EXPECT_EQ(field->number(), number) << name;
  }
}

TEST(Timeline, TheSameRunGivesTheSameBytes) {
  EXPECT_EQ(timeline_trace(sample_result()), timeline_trace(sample_result()));
}

}  // namespace
}  // namespace weft
