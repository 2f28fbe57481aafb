#include "cli/run/recorded_waits.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cli/config/run_config.h"
#include "cli/run/collective_times.h"
#include "cli/run/recorded_gpu.h"
#include "cli/sampled/ranks_apart.h"

namespace weft {

namespace {

// Recorded runs of more ranks take longer to simulate than what is asked for.
constexpr std::uint32_t kMostRanks = 8;

// The recorded GPUs and links with collectives as they were.
RunConfig as_recorded(const Graph& graph, const RunConfig& config, std::uint32_t gpus) {
  RunConfig recorded = config;
  recorded.system = recorded_system(config);
  recorded.gpus = gpus;
  auto* trace = std::get_if<TraceWorkload>(&recorded.workload);
  const bool whole = trace != nullptr && !std::exchange(trace->recorded_on, "").empty();
  have_links_among(gpus, whole ? recorded.system.max_gpus : config.gpus, recorded.system);
  recorded.collective = {};
  recorded.collective.algorithm = AllReduceAlgorithm::ring;
  recorded.functional.reset();
  recorded.beside.clear();
  recorded.system.gpu.power.reset();
  std::uint32_t channels = 0;
  for (const Node& node : graph.nodes)
    if (node.kind == NodeKind::collective) channels = std::max(channels, node.collective.channels);
  if (channels > 0) recorded.system.collectives.ring.channels = channels;
  return recorded;
}

}  // namespace

std::vector<Time> recorded_collective_times(const Graph& graph, const RunConfig& config) {
  std::vector<Time> times(graph.nodes.size());
  const std::uint32_t most_gpus = recorded_system(config).max_gpus;
  std::vector<CollectiveSignature> wanted;
  std::uint32_t gpus = 1;
  const auto signature = [&](const CollectiveNode& c) {
    const std::uint32_t recorded = c.group_size != 0 ? c.group_size : std::max(1U, graph.recorded_world);
    return CollectiveSignature{c.kind, c.bytes.count(), c.type, 0, GpuGroup::first(std::min(recorded, most_gpus))};
  };
  const auto counts = [&](const Node& node) {
    return node.kind == NodeKind::collective && node.iteration < config.iterations &&
           signature(node.collective).group.size() > 1 && node.collective.bytes > Bytes();
  };
  for (const Node& node : graph.nodes) {
    if (!counts(node)) continue;
    wanted.push_back(signature(node.collective));
    gpus = std::max(gpus, static_cast<std::uint32_t>(wanted.back().group.size()));
  }
  if (wanted.empty()) return times;
  const std::map<CollectiveSignature, Time> found =
      times_by_themselves(as_recorded(graph, config, gpus), std::move(wanted));
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (counts(graph.nodes[i])) times[i] = found.at(signature(graph.nodes[i].collective));
  }
  return times;
}

bool take_contention_from_waits(const RunConfig& config, const Graph& graph, ReplaySpec spec,
                                std::vector<Program>& programs,
                                const std::function<void(double, const std::string&)>& progress) {
  const std::uint32_t ranks = graph.recorded_world;
  if (ranks < 2 || ranks > recorded_system(config).max_gpus || ranks > std::max(kMostRanks, config.gpus)) return false;
  spec.gpus = ranks;
  spec.high_priority = false;
  std::vector<Program> recorded = replay(graph, spec);
  const auto told = [&](double done, const std::string& what) {
    if (progress) progress(0.2 * done, "the recorded ranks: " + what);
  };
  const std::vector<Time> longer = longer_beside_kernels(as_recorded(graph, config, ranks), recorded, told);
  for (Program& program : programs) {
    if (program.ops.size() != longer.size()) return false;  // collectives of single GPUs are left out
    for (std::size_t o = 0; o < longer.size(); ++o) {
      const ProgramOp& op = program.ops[o];
      if (op.kind != ProgramOpKind::collective || op.start_delay == Time(0) || longer[o] == Time(0)) continue;
      program.ops.edit()[o].start_delay = std::max(Time(0), op.start_delay - longer[o]);
    }
  }
  return true;
}

}  // namespace weft
