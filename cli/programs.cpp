#include "cli/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/collective_config.h"
#include "cli/collective_times.h"
#include "network/group_rings.h"
#include "sim/error.h"
#include "traces/replay_graph.h"
#include "traces/trace_file.h"
#include "workloads/data_parallel.h"
#include "workloads/model_zoo.h"
#include "workloads/replay.h"

namespace weft {

namespace {

std::vector<Program> programs_of(const TraceWorkload& workload, const RunConfig& config,
                                 std::vector<std::string>& notes) {
  const Trace trace = read_trace(workload.file);
  const Graph graph = graph_from_trace(trace, 0);
  validate(graph, workload.file);
  if (trace.world_size > 1 || config.gpus > 1) {
    notes.push_back(fmt::format("Every GPU replays rank {} of {}: what the ranks did differently is not in the result.",
                                trace.ranks.front().rank, trace.world_size));
  }
  ReplaySpec spec{config.gpus, config.iterations, workload.host_time_scale, {}};
  if (workload.recorded_waits && trace.world_size > 1 && config.gpus > 1) {
    spec.collective_times = recorded_collective_times(graph, config);
    notes.emplace_back(
        "The last GPU comes to each collective as late as the recorded rank waited there: its time in the trace less "
        "what it takes when all come together.");
  }
  notes.push_back(
      fmt::format("Demands of kernels are guessed from name, grid and block, and fitted to the time alone on "
                  "the recorded GPU ({}), whatever GPU is simulated.",
                  trace.ranks.front().device.empty() ? "unknown" : trace.ranks.front().device));
  return replay(graph, spec);
}

std::vector<Program> programs_of(const ModelWorkload& workload, const RunConfig& config, std::vector<std::string>&) {
  const Graph graph = make_model({.model = workload.model,
                                  .batch = workload.batch,
                                  .precision = workload.precision,
                                  .sequence = workload.sequence,
                                  .compute_units = config.system.gpu.compute_units,
                                  .layers = workload.layers});
  const auto mebibytes = [](double n) { return Bytes(static_cast<std::int64_t>(n * (1 << 20))); };
  return data_parallel(graph, {.gpus = config.gpus,
                               .overlap = config.scheme.overlap,
                               .bucket = mebibytes(config.scheme.bucket_MiB),
                               .first_bucket = mebibytes(config.scheme.first_bucket_MiB),
                               .iterations = config.iterations});
}

// How late each GPU comes to each collective beyond its delay: uniform, by the run's seed.
void add_jitter(double most_ns, std::uint64_t seed, std::vector<Program>& programs) {
  for (std::size_t gpu = 0; gpu < programs.size(); ++gpu) {
    std::vector<ProgramOp>& ops = programs[gpu].ops;
    for (std::size_t op = 0; op < ops.size(); ++op) {
      const std::uint64_t bits = random_bits(seed, gpu << 32U | op);
      ops[op].start_delay += nanoseconds(static_cast<double>(bits >> 11U) * 0x1p-53 * most_ns);
    }
  }
}

std::vector<Program> programs_of(const CollectiveWorkload& workload, const RunConfig& config,
                                 std::vector<std::string>&) {
  std::vector<Program> programs = collective_series(series_of(config));
  if (workload.start_jitter_ns > 0) add_jitter(workload.start_jitter_ns, config.seed, programs);
  return programs;
}

// A copy between host and device, as the copy engine's one block: it moves lines at the rate of the host link.
ScriptedKernel copy_script(const CopyDemand& copy) {
  ScriptedKernel kernel;
  kernel.executor = Executor::host_copy_engine;
  WarpScript script;
  Phase phase;
  LineStream stream;
  stream.first = static_cast<LineAddress>(copy.address / kLineBytes);
  stream.lines = static_cast<std::uint32_t>((copy.bytes.count() + kLineBytes - 1) / kLineBytes);
  if (stream.lines > 0) copy.to_device ? phase.store(stream) : phase.load(stream);
  phase.rounds = std::max(1U, stream.lines / 32);
  phase.stages = 8;
  script.phases.push_back(phase);
  script.lines_in_flight = 256;
  kernel.programs = std::make_shared<WrittenPrograms>(std::vector<std::vector<WarpScript>>{{std::move(script)}});
  return kernel;
}

// Links by which a GPU reaches the others: where it sits behind a router, those to it.
std::uint32_t links_of_gpu(const NetworkSpec& network) {
  const bool direct = network.topology == TopologyKind::switched || network.topology == TopologyKind::fully_connected;
  return direct ? network.links_per_gpu : network.injection_lanes;
}

double nic_GBps_of_gpu(const NetworkSpec& network) {
  if (!network.cluster) return 0;
  const ClusterSpec& cluster = *network.cluster;
  return static_cast<double>(cluster.link.bandwidth.count()) * 1e-9 * cluster.nics_per_node / cluster.gpus_per_node;
}

}  // namespace

std::vector<Program> make_programs(const RunConfig& config, std::vector<std::string>& notes) {
  return std::visit([&](const auto& workload) { return programs_of(workload, config, notes); }, config.workload);
}

Scripts::Scripts(const RunConfig& config, const std::vector<Program>& programs)
    : programs_(&programs), host_(config.host), private_parts_(config.private_parts) {
  using Key = std::pair<GpuGroup, std::uint32_t>;
  std::map<Key, std::vector<std::pair<std::uint32_t, OpId>>> meetings;
  std::vector<Key> order;
  std::size_t copies = 0;
  for (std::uint32_t gpu = 0; gpu < programs.size(); ++gpu) {
    scripts_.emplace_back(programs[gpu].ops.size(), nullptr);
    for (std::uint32_t op = 0; op < programs[gpu].ops.size(); ++op) {
      const ProgramOp& described = programs[gpu].ops[op];
      if (described.kind == ProgramOpKind::copy) ++copies;
      if (described.kind != ProgramOpKind::collective) continue;
      const Key key{described.collective.group, described.collective.sequence};
      if (meetings.find(key) == meetings.end()) order.push_back(key);
      meetings[key].emplace_back(gpu, OpId{op});
    }
  }
  const auto& cluster = config.system.network.cluster;
  const std::uint32_t gpus_per_node = cluster ? cluster->gpus_per_node : static_cast<std::uint32_t>(programs.size());
  CollectiveContext context{.gpu = &config.system.gpu,
                            .library = &config.system.collectives,
                            .switch_reduces = config.system.switch_reduce.has_value(),
                            .links_per_gpu = links_of_gpu(config.system.network),
                            .gpus_per_node = gpus_per_node,
                            .link = config.system.network.injection.value_or(config.system.network.link).bandwidth,
                            .nic_GBps = nic_GBps_of_gpu(config.system.network)};
  std::vector<std::shared_ptr<const RingOrders>> rings;  // by group
  collectives_.reserve(order.size());
  for (const Key& key : order) {
    const auto& members = meetings[key];
    const CollectiveDemand& demand = programs[members.front().first].ops[members.front().second.value].collective;
    if (members.size() != demand.group.size()) {
      throw InputError(fmt::format("collective {} of a group: expected all {} GPUs of it to take part, got {}",
                                   key.second, demand.group.size(), members.size()));
    }
    Collective collective;
    collective.members = members;
    if (demand.group.size() > 1) {
      const auto known = std::find(groups_.begin(), groups_.end(), demand.group);
      context.multicast_group = static_cast<std::uint16_t>(known - groups_.begin());
      if (known == groups_.end()) {
        groups_.push_back(demand.group);
        rings.push_back(
            rings_of_group(config.system.network, static_cast<std::uint32_t>(programs.size()), demand.group));
      }
      context.ring_orders = rings[context.multicast_group];
      collective.plan = plan_collective(context, demand, config.collective, flags_);
      flags_ += collective.plan.flags;
    }
    collectives_.push_back(std::move(collective));
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      const auto& ranks = collectives_.back().plan.ranks;
      scripts_[members[rank].first][members[rank].second.value] = ranks.empty() ? &nothing_ : &ranks[rank];
    }
  }
  copies_.reserve(copies);
  for (std::size_t gpu = 0; gpu < programs.size(); ++gpu) {
    for (std::size_t op = 0; op < programs[gpu].ops.size(); ++op) {
      if (programs[gpu].ops[op].kind != ProgramOpKind::copy) continue;
      copies_.push_back(copy_script(programs[gpu].ops[op].copy));
      scripts_[gpu][op] = &copies_.back();
    }
  }
}

GpuWork Scripts::work(std::size_t gpu) const {
  return {&(*programs_)[gpu], scripts_[gpu], flags_, host_, private_parts_};
}

}  // namespace weft
