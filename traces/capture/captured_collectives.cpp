#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>

#include "traces/capture/captured_process.h"
#include "traces/kineto_names.h"

namespace weft {
namespace {

std::string text_of(const char* characters, std::size_t most) { return {characters, strnlen(characters, most)}; }

bool is_point_to_point(std::string_view function) { return function == "Send" || function == "Recv"; }

// What one kernel runs: NCCL puts the collectives of a group into few kernels. The one with the most elements tells
// kind and type, and those of its kind count. Of sends and receives the sends count, which are the rank's input.
CapturedCollective together(const std::vector<const capture::CollectiveRecord*>& records) {
  const auto largest = *std::max_element(records.begin(), records.end(),
                                         [](const auto* a, const auto* b) { return a->count < b->count; });
  CapturedCollective out;
  out.communicator = largest->communicator;
  out.function = text_of(largest->function, sizeof(largest->function));
  out.type = largest->type;
  out.in_bytes = largest->source == capture::CollectiveSource::nvtx_range;
  out.algorithm = text_of(largest->algorithm, sizeof(largest->algorithm));
  out.protocol = text_of(largest->protocol, sizeof(largest->protocol));
  out.channels = largest->channels;
  std::uint64_t sent = 0, received = 0;
  std::optional<std::int32_t> peer;
  bool one_peer = true;
  for (const capture::CollectiveRecord* record : records) {
    const std::string function = text_of(record->function, sizeof(record->function));
    if (is_point_to_point(function)) {
      (function == "Send" ? sent : received) += record->count;
      one_peer = one_peer && peer.value_or(record->peer) == record->peer;
      peer = record->peer;
    } else if (function == out.function && record->type == out.type) {
      out.count += record->count;
    }
  }
  if (is_point_to_point(out.function)) {
    out.function = "SendRecv";
    out.count = sent > 0 ? sent : received;
    if (one_peer) out.peer = *peer;
  }
  return out;
}

// Launches and collectives of one thread that belong together: as many of each, or all to one launch.
struct Run {
  std::vector<CapturedDetail*> launches;
  std::vector<const capture::CollectiveRecord*> collectives;

  void assign() {
    const std::size_t n = launches.size();
    for (std::size_t i = 0; i < n && i < collectives.size(); ++i) {
      // The last launch takes what is left.
      const auto first = collectives.begin() + static_cast<std::ptrdiff_t>(i);
      launches[i]->collective = together({first, i + 1 == n ? collectives.end() : first + 1});
    }
    launches.clear();
    collectives.clear();
  }
};

}  // namespace

void match_collectives_to_kernels(const std::vector<capture::CollectiveRecord>& collectives, CapturedProcess& process) {
  std::unordered_map<std::int64_t, const KinetoEvent*> calls;
  for (const KinetoEvent& event : process.profile.events)
    if (event.category == KinetoCategory::runtime) calls.emplace(event.correlation, &event);

  struct Moment {
    std::int64_t time;
    CapturedDetail* launch;
    const capture::CollectiveRecord* collective;
  };
  std::map<std::int64_t, std::vector<Moment>> threads;
  for (CapturedDetail& detail : process.details) {
    // What a graph launches was asked for when it was captured.
    if (detail.graph_node != 0 || !is_collective_kernel(detail.event->name)) continue;
    const auto call = calls.find(detail.event->correlation);
    if (call != calls.end()) threads[call->second->thread].push_back({call->second->start, &detail, nullptr});
  }
  for (const capture::CollectiveRecord& record : collectives)
    if (record.time < std::uint64_t{1} << 62)
      threads[record.thread].push_back({static_cast<std::int64_t>(record.time), nullptr, &record});

  for (auto& [thread, moments] : threads) {
    std::stable_sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) { return a.time < b.time; });
    Run run;
    for (const Moment& moment : moments) {
      if (moment.launch != nullptr) {
        // The plugin tells of a collective behind its launch: a launch after collectives begins the next run.
        const bool behind =
            !run.collectives.empty() && run.collectives.front()->source == capture::CollectiveSource::profiler_plugin;
        if (behind) run.assign();
        run.launches.push_back(moment.launch);
      } else {
        // A call comes before its launch.
        const bool before =
            !run.launches.empty() && moment.collective->source != capture::CollectiveSource::profiler_plugin;
        if (before) run.assign();
        run.collectives.push_back(moment.collective);
      }
    }
    run.assign();
  }
}

}  // namespace weft
