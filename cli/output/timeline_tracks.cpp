#include "cli/output/timeline_tracks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

namespace weft {

std::uint64_t trace_ns(double seconds) { return static_cast<std::uint64_t>(std::llround(seconds * 1e9)); }

std::vector<TimelineTrack> timeline_tracks(const RunResult& result) {
  const auto& operations = result.operations;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::size_t>> streams;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    streams[{operations[i].gpu, operations[i].stream}].push_back(i);
  }
  std::vector<TimelineTrack> tracks;
  for (auto& [key, indices] : streams) {
    std::stable_sort(indices.begin(), indices.end(),
                     [&](std::size_t a, std::size_t b) { return operations[a].start_s < operations[b].start_s; });
    std::vector<TimelineTrack> lanes;
    std::vector<std::uint64_t> free_from;  // ns, of each lane
    for (const std::size_t i : indices) {
      const std::uint64_t start = trace_ns(operations[i].start_s);
      std::size_t lane = 0;
      while (lane < lanes.size() && free_from[lane] > start) ++lane;
      if (lane == lanes.size()) {
        lanes.push_back({key.first, key.second, static_cast<std::uint32_t>(lane), false, false, {}});
        free_from.push_back(0);
      }
      lanes[lane].operations.push_back(i);
      (operations[i].communication ? lanes[lane].communication : lanes[lane].compute) = true;
      free_from[lane] = std::max(start, trace_ns(operations[i].end_s));
    }
    tracks.insert(tracks.end(), lanes.begin(), lanes.end());
  }
  return tracks;
}

std::vector<std::uint64_t> collective_flows(const RunResult& result, const std::vector<TimelineTrack>& tracks) {
  using Key = std::tuple<std::uint32_t, std::string, std::uint32_t>;  // iteration, name, occurrence
  std::map<Key, std::vector<std::size_t>> members;
  std::map<Key, std::uint32_t> seen;  // by (iteration, name, gpu)
  for (const TimelineTrack& track : tracks) {
    for (const std::size_t i : track.operations) {
      const OperationRecord& operation = result.operations[i];
      if (!operation.communication) continue;
      const std::uint32_t occurrence = seen[{operation.iteration, operation.name, operation.gpu}]++;
      members[{operation.iteration, operation.name, occurrence}].push_back(i);
    }
  }
  std::vector<std::uint64_t> flows(result.operations.size(), 0);
  std::uint64_t next = 1;
  for (const auto& [key, indices] : members) {
    if (indices.size() < 2) continue;
    for (const std::size_t i : indices) flows[i] = next;
    ++next;
  }
  return flows;
}

std::vector<PhaseSpan> phase_spans(const RunResult& result) {
  std::vector<const OperationRecord*> compute;
  for (const OperationRecord& operation : result.operations) {
    if (!operation.communication && operation.phase != TrainingPhase::other) compute.push_back(&operation);
  }
  std::stable_sort(compute.begin(), compute.end(), [](const OperationRecord* a, const OperationRecord* b) {
    return std::tie(a->gpu, a->start_s) < std::tie(b->gpu, b->start_s);
  });
  std::vector<PhaseSpan> spans;
  for (const OperationRecord* operation : compute) {
    const bool same_gpu = !spans.empty() && spans.back().gpu == operation->gpu;
    if (same_gpu && spans.back().phase == operation->phase && spans.back().iteration == operation->iteration) {
      spans.back().end_s = std::max(spans.back().end_s, operation->end_s);
      continue;
    }
    const double start = same_gpu ? std::max(spans.back().end_s, operation->start_s) : operation->start_s;
    if (operation->end_s <= start) continue;
    spans.push_back({operation->gpu, operation->iteration, operation->phase, start, operation->end_s});
  }
  return spans;
}

}  // namespace weft
