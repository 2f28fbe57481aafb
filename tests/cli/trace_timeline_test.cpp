#include "cli/output/trace_timeline.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cli/output/chrome_trace.h"
#include "sim/error.h"
#include "sim/json_reader.h"
#include "tests/cli/decoded_trace.h"
#include "tests/cli/run_weft.h"
#include "tests/cli/small_trace.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Both ranks of small_trace(), the second one 5 us behind and on other streams.
Trace two_ranks() {
  Trace trace = small_trace();
  trace.ranks[0].device = "NVIDIA A100";
  trace.ranks[0].ops[0].phase = TrainingPhase::forward;
  trace.ranks.push_back(trace.ranks[0]);
  TraceRank& second = trace.ranks[1];
  second.rank = 1;
  for (TraceOp& op : second.ops) {
    op.start += microseconds(5);
    op.stream += 4'000'000'000;  // AMD's queues have such numbers
  }
  return trace;
}

std::string process_of(const Decoded& trace, std::uint64_t track) {
  while (!trace.tracks.at(track).has_process()) track = trace.tracks.at(track).parent_uuid();
  return trace.tracks.at(track).process().process_name();
}

// "rank 0/stream 7" and the like, of all tracks with slices.
std::multiset<std::string> tracks_with_slices(const Decoded& trace) {
  std::set<std::uint64_t> tracks;
  for (const auto* slices : {&trace.slices, &trace.phases})
    for (const Slice& slice : *slices) tracks.insert(slice.track);
  std::multiset<std::string> names;
  for (const std::uint64_t track : tracks) {
    const auto& descriptor = trace.tracks.at(track);
    names.insert(process_of(trace, track) + "/" +
                 (descriptor.has_thread() ? descriptor.thread().thread_name() : descriptor.name()));
  }
  return names;
}

const Slice& slice_of(const Decoded& trace, const std::string& name) {
  const auto found =
      std::find_if(trace.slices.begin(), trace.slices.end(), [&](const Slice& s) { return s.name == name; });
  EXPECT_NE(found, trace.slices.end()) << name;
  return *found;
}

TEST(TraceTimeline, HasTheStreamsIterationsAndPhasesOfEachRank) {
  const Decoded trace(trace_timeline(two_ranks()));
  EXPECT_THAT(tracks_with_slices(trace),
              UnorderedElementsAre("rank 0 (NVIDIA A100)/iterations", "rank 0 (NVIDIA A100)/phases",
                                   "rank 0 (NVIDIA A100)/stream 7", "rank 0 (NVIDIA A100)/stream 20 (communication)",
                                   "rank 1 (NVIDIA A100)/iterations", "rank 1 (NVIDIA A100)/phases",
                                   "rank 1 (NVIDIA A100)/stream 4000000007",
                                   "rank 1 (NVIDIA A100)/stream 4000000020 (communication)"));
  const Slice& step = slice_of(trace, "step");
  EXPECT_EQ(step.begin_ns, 0u);
  EXPECT_EQ(step.end_ns, 100'000u);
  ASSERT_EQ(trace.phases.size(), 2u);
  EXPECT_EQ(trace.phases[0].name, "forward");
  std::set<std::int32_t> ids;
  for (const auto& [uuid, track] : trace.tracks) {
    if (track.has_process()) {
      EXPECT_TRUE(ids.insert(track.process().pid()).second);
    }
    if (track.has_thread()) {
      EXPECT_TRUE(ids.insert(track.thread().tid()).second);
    }
  }
  EXPECT_FALSE(ids.contains(0));
}

TEST(TraceTimeline, ASliceSaysWhatTheTraceKnowsOfItsOperation) {
  Trace recorded = two_ranks();
  TraceOp& kernel = recorded.ranks[0].ops[0];
  kernel.op = "aten::relu";
  kernel.layer = "layer1";
  KernelCounters counters;
  counters[KernelCounter::hbm_read_bytes] = 4096;
  kernel.counters = std::make_shared<const KernelCounters>(counters);
  const Decoded trace(trace_timeline(recorded));
  const Slice& slice = slice_of(trace, "elementwise_kernel");
  EXPECT_EQ(slice.begin_ns, 10'000u);
  EXPECT_EQ(slice.end_ns, 15'000u);
  EXPECT_THAT(slice.categories, ElementsAre("compute", "forward"));
  EXPECT_THAT(slice.annotations, UnorderedElementsAre(Pair("iteration", 0), Pair("op", 0), Pair("issued_us", 0),
                                                      Pair("hbm_read_bytes", 4096)));
  EXPECT_THAT(slice.texts, UnorderedElementsAre(Pair("operator", "aten::relu"), Pair("layer", "layer1"),
                                                Pair("grid", "256x1x1"), Pair("block", "256x1x1")));
  const Slice& collective = slice_of(trace, "ncclKernel_AllReduce");
  EXPECT_THAT(collective.categories, ElementsAre("communication", "other"));
  EXPECT_EQ(collective.annotations.at("elements"), 65'536);
  EXPECT_EQ(collective.annotations.at("ranks"), 2);
  EXPECT_EQ(collective.texts.at("collective"), "all_reduce");
  EXPECT_EQ(collective.texts.at("type"), "fp32");
  EXPECT_EQ(collective.texts.at("group"), "world");
}

TEST(TraceTimeline, AFlowConnectsACollectiveOnItsRanks) {
  const Decoded trace(trace_timeline(two_ranks()));
  std::map<std::uint64_t, std::set<std::string>> ranks;
  for (const Slice& slice : trace.slices)
    for (const std::uint64_t flow : slice.flows) ranks[flow].insert(process_of(trace, slice.track));
  EXPECT_THAT(ranks, ElementsAre(Pair(1, ElementsAre("rank 0 (NVIDIA A100)", "rank 1 (NVIDIA A100)"))));
  for (const Slice& slice : Decoded(trace_timeline(small_trace())).slices) EXPECT_THAT(slice.flows, ElementsAre());
}

// Two threads wait, the second within the first.
TEST(TraceTimeline, WaitsOfTheHostAreNoOperationsOfAStream) {
  Trace recorded = small_trace();
  for (const int start : {60, 70}) {
    TraceOp wait;
    wait.kind = TraceOpKind::host_wait;
    wait.name = "cudaStreamSynchronize";
    wait.issued = wait.start = microseconds(start);
    wait.duration = microseconds(20);
    recorded.ranks[0].ops.push_back(wait);
  }
  const Decoded trace(trace_timeline(recorded));
  EXPECT_THAT(tracks_with_slices(trace),
              UnorderedElementsAre("rank 0/iterations", "rank 0/stream 7", "rank 0/stream 20 (communication)",
                                   "rank 0/host waits", "rank 0/host waits"));
  EXPECT_THAT(slice_of(trace, "cudaStreamSynchronize").categories, ElementsAre("host_wait", "other"));
}

TEST(TraceTimeline, WhatOverlapsOnAStreamOrAmongIterationsDoesNotCross) {
  Trace recorded = small_trace();
  recorded.ranks[0].iterations.push_back({"next", microseconds(90), microseconds(120)});
  TraceOp beside = recorded.ranks[0].ops[0];
  beside.issued = microseconds(2);
  beside.start += microseconds(1);
  recorded.ranks[0].ops.push_back(beside);
  const Decoded trace(trace_timeline(recorded));
  EXPECT_EQ(tracks_with_slices(trace).count("rank 0/stream 7 overlap 1"), 1u);
  EXPECT_EQ(slice_of(trace, "next").begin_ns, 100'000u);
}

// Bytes over time: what is sampled holds until its end, and nothing is said to move where nothing was sampled.
TEST(TraceTimeline, TrafficBecomesCountersOfItsRank) {
  Trace recorded = two_ranks();
  TraceTraffic& traffic = recorded.ranks[1].traffic;
  traffic.start = {microseconds(10), microseconds(20), microseconds(30), microseconds(60)};
  traffic.duration = {microseconds(10), microseconds(10), microseconds(10), microseconds(20)};
  traffic.bytes[0] = {10'000'000, 10'000'000, 5'000'000, 0};
  traffic.bytes[3] = {0, 0, 1'000'000, 4'000'000};
  const Decoded trace(trace_timeline(recorded));
  std::map<std::string, std::vector<std::pair<std::uint64_t, long>>> values;
  for (const auto& [uuid, samples] : trace.counters) {
    const auto& track = trace.tracks.at(uuid);
    EXPECT_EQ(track.counter().unit_name(), "GB/s");
    auto& of_track =
        values[process_of(trace, uuid) + "/" + trace.tracks.at(track.parent_uuid()).name() + "/" + track.name()];
    for (const auto& [ns, value] : samples) of_track.emplace_back(ns, std::lround(value));
  }
  EXPECT_THAT(values, ElementsAre(Pair("rank 1 (NVIDIA A100)/HBM/HBM read",
                                       ElementsAre(Pair(10'000, 1000), Pair(30'000, 500), Pair(40'000, 0))),
                                  Pair("rank 1 (NVIDIA A100)/NVLink/NVLink sent",
                                       ElementsAre(Pair(10'000, 0), Pair(30'000, 100), Pair(40'000, 0),
                                                   Pair(60'000, 200), Pair(80'000, 0)))));
}

TEST(TraceTimelineEndToEnd, ExportTakesATraceWhereItTakesARun) {
  const TemporaryFolder folder;
  const Trace recorded = two_ranks();
  write_trace(recorded, folder.path() / "t.json.gz");
  ASSERT_EQ(weft("export perfetto t.json.gz -o t.pftrace", folder).code, 0);
  EXPECT_EQ(read_file(folder.path() / "t.pftrace"), trace_timeline(recorded));
  ASSERT_EQ(weft("export perfetto t.json.gz --chrome -o t.json", folder).code, 0);
  const Json chrome = parse_json(read_file(folder.path() / "t.json"), "t.json");
  std::set<std::string> grids;
  for (const Json& event : chrome.at("traceEvents"))
    if (event.at("name") == "elementwise_kernel") grids.insert(event.at("args").at("grid"));
  EXPECT_THAT(grids, ElementsAre("256x1x1"));
  folder.write("other.json", "{}");
  const Ran refused = weft("export perfetto other.json -o x", folder);
  EXPECT_EQ(refused.code, 65);
  EXPECT_THAT(refused.errors, HasSubstr("not a weft trace"));
}

}  // namespace
}  // namespace weft
