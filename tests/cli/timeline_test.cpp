#include "cli/output/timeline.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "cli/output/timeline_tracks.h"
#include "tests/cli/decoded_trace.h"
#include "tests/cli/sample_result.h"

namespace weft {
namespace {

namespace pb = perfetto::protos;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;
using weft::testing::sample_result;

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

TEST(Timeline, TheSameRunGivesTheSameBytes) {
  EXPECT_EQ(timeline_trace(sample_result()), timeline_trace(sample_result()));
}

}  // namespace
}  // namespace weft
