#include "cli/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/beside.h"
#include "cli/collective_config.h"
#include "cli/collective_times.h"
#include "cli/sample_config.h"
#include "cli/why_not_in_switch.h"
#include "network/group_rings.h"
#include "network/network.h"
#include "sim/error.h"
#include "traces/replay_graph.h"
#include "traces/trace_file.h"
#include "workloads/data_parallel.h"
#include "workloads/model_zoo.h"
#include "workloads/replay.h"

namespace weft {

namespace {

// The place in the trace of the rank that every GPU replays.
std::size_t chosen_rank(const Trace& trace, const TraceWorkload& workload) {
  if (!workload.rank) return 0;
  std::string there;
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    if (trace.ranks[r].rank == *workload.rank) return r;
    there += fmt::format("{}{}", r == 0 ? "" : ", ", trace.ranks[r].rank);
  }
  throw InputError(workload.file, "/ranks",
                   fmt::format("expected rank {} (workload.rank), got a trace of {}", *workload.rank, there));
}

std::vector<Program> programs_of_one_rank(const Trace& trace, const TraceWorkload& workload, const RunConfig& config,
                                          ReplaySpec spec, std::vector<std::string>& notes) {
  const std::size_t chosen = chosen_rank(trace, workload);
  const Graph graph = graph_from_trace(trace, chosen);
  if (trace.world_size > 1 || config.gpus > 1) {
    notes.push_back(fmt::format("Every GPU replays rank {} of {}: what the ranks did differently is not in the result.",
                                trace.ranks[chosen].rank, trace.world_size));
  }
  if (workload.recorded_waits && trace.world_size > 1 && config.gpus > 1) {
    spec.collective_times = recorded_collective_times(graph, config);
    notes.emplace_back(
        "The last GPU comes to each collective as late as the recorded rank waited there: its time in the trace less "
        "what it takes when all come together.");
  }
  return replay(graph, spec);
}

bool some_are_measured(const std::vector<Program>& programs) {
  const auto measured = [](const ProgramOp& op) {
    return op.kind == ProgramOpKind::kernel && op.kernel.origin == DemandOrigin::counters;
  };
  return std::any_of(programs.begin(), programs.end(), [&](const Program& program) {
    return std::any_of(program.ops.begin(), program.ops.end(), measured);
  });
}

std::vector<Program> programs_of(const TraceWorkload& workload, const RunConfig& config,
                                 std::vector<std::string>& notes) {
  const Trace trace = read_trace(workload.file);
  const ReplaySpec spec{
      config.gpus, config.iterations, workload.host_time_scale, {}, config.system.gpu.launch.device_latency};
  const bool each = replays_each_rank(trace, workload);
  std::vector<Program> programs =
      each ? replay_ranks(graphs_from_trace(trace), spec) : programs_of_one_rank(trace, workload, config, spec, notes);
  if (each) notes.push_back(fmt::format("Each GPU replays its own of the {} recorded ranks.", programs.size()));
  notes.push_back(fmt::format(
      "Demands of {}kernels are {}, and fitted to the time alone on the recorded GPU ({}), whatever GPU is "
      "simulated.",
      some_are_measured(programs) ? "some " : "",
      some_are_measured(programs) ? "those of hardware counters, of the others guessed from name, grid and block"
                                  : "guessed from name, grid and block",
      trace.ranks.front().device.empty() ? "unknown" : trace.ranks.front().device));
  return programs;
}

std::vector<Program> programs_of(const ModelWorkload& workload, const RunConfig& config,
                                 std::vector<std::string>& notes) {
  if (is_sample_workload(config)) return sample_programs(config, &notes);
  const Graph graph = make_model({.model = workload.model,
                                  .batch = workload.batch,
                                  .precision = workload.precision,
                                  .sequence = workload.sequence,
                                  .compute_units = config.system.gpu.compute_units,
                                  .layers = workload.layers,
                                  .block_shared_memory = config.system.gpu.compute_unit.shared_memory_bytes});
  const auto mebibytes = [](double n) { return Bytes(static_cast<std::int64_t>(n * (1 << 20))); };
  return data_parallel(graph, {.gpus = config.gpus,
                               .overlap = config.scheme.overlap,
                               .bucket = mebibytes(config.scheme.bucket_MiB),
                               .first_bucket = mebibytes(config.scheme.first_bucket_MiB),
                               .iterations = config.iterations});
}

std::vector<Program> programs_of(const AttentionWorkload&, const RunConfig& config, std::vector<std::string>& notes) {
  return sample_programs(config, &notes);
}

std::vector<Program> programs_of(const ProductWorkload&, const RunConfig& config, std::vector<std::string>& notes) {
  return sample_programs(config, &notes);
}

std::vector<Program> programs_of(const TemporalWorkload&, const RunConfig& config, std::vector<std::string>& notes) {
  return sample_programs(config, &notes);
}

// How late each GPU comes to each collective beyond its delay: uniform, by the run's seed.
void add_jitter(double most_ns, std::uint64_t seed, std::vector<Program>& programs) {
  for (std::size_t gpu = 0; gpu < programs.size(); ++gpu) {
    std::vector<ProgramOp>& ops = programs[gpu].ops.edit();
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

// Links by which a GPU reaches the others: where it sits behind a router, those to it; of a hybrid cube mesh its six.
std::uint32_t links_of_gpu(const NetworkSpec& network) {
  if (network.topology == TopologyKind::hybrid_cube_mesh) return 6 * network.lanes;
  const bool direct = network.topology == TopologyKind::switched || network.topology == TopologyKind::fully_connected;
  return direct ? network.links_per_gpu : network.injection_lanes;
}

double nic_of_gpu_GBps(const NetworkSpec& network) {
  if (!network.cluster) return 0;
  const ClusterSpec& cluster = *network.cluster;
  return static_cast<double>(cluster.link.bandwidth.count()) * 1e-9 * cluster.nics_per_node / cluster.gpus_per_node;
}

// From GPU to GPU, by two NICs and a leaf switch.
Time latency_between_nodes(const NetworkSpec& network) {
  if (!network.cluster) return {};
  const ClusterSpec& cluster = *network.cluster;
  const Time to_switch = cluster.nic_link.latency + cluster.nic_latency + cluster.link.latency;
  return to_switch + cluster.switch_.latency + to_switch;
}

// The place of a group of GPUs and a type, or of a new one.
std::size_t find_group(const std::vector<AggregationGroup>& groups, const GpuGroup& members, DataType type) {
  const auto is_it = [&](const AggregationGroup& g) { return g.gpus == members.members() && g.type == type; };
  const auto known = std::find_if(groups.begin(), groups.end(), is_it);
  return static_cast<std::size_t>(known - groups.begin());
}

}  // namespace

bool replays_each_rank(const Trace& trace, const TraceWorkload& workload) {
  return !workload.rank && trace.ranks.size() > 1;
}

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
  const auto gpus = static_cast<std::uint32_t>(programs.size());
  CollectiveContext context{.gpu = &config.system.gpu,
                            .library = &config.system.collectives,
                            .links_per_gpu = links_of_gpu(config.system.network),
                            .gpus_per_node = cluster ? cluster->gpus_per_node : gpus,
                            .gpus_per_nic = cluster ? cluster->gpus_per_node / cluster->nics_per_node : 1,
                            .link = config.system.network.injection.value_or(config.system.network.link).bandwidth,
                            .nic_GBps = nic_of_gpu_GBps(config.system.network),
                            .node_latency = latency_between_nodes(config.system.network),
                            .values_travel = config.functional.has_value()};
  const bool faults = config.system.switch_reduce && !config.system.network.faults.empty();
  const std::unique_ptr<Network> network = faults ? make_network(config.system.network, gpus) : nullptr;
  if (config.system.switch_reduce) context.fan_in = config.system.switch_reduce->fan_in;
  std::vector<std::pair<GpuGroup, std::shared_ptr<const RingOrders>>> rings;
  struct Multicast {
    GpuGroup group;
    DataType type;
    std::size_t number;  // the first one
  };
  std::vector<Multicast> multicasts;
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
      auto ring = std::find_if(rings.begin(), rings.end(), [&](const auto& r) { return r.first == demand.group; });
      if (ring == rings.end()) {
        ring = rings.emplace(ring, demand.group, rings_of_group(config.system.network, gpus, demand.group));
      }
      context.ring_orders = ring->second;
      const auto known = std::find_if(multicasts.begin(), multicasts.end(), [&](const Multicast& m) {
        return m.group == demand.group && m.type == demand.type;
      });
      const std::size_t number = known == multicasts.end() ? multicast_groups_.size() : known->number;
      context.multicast_group = static_cast<std::uint16_t>(number);
      context.why_not_in_switch = why_not_in_switch(config, demand, number);
      if (network) context.switch_fault = switch_fault(config, *network, demand);
      const std::size_t tree = find_group(aggregation_groups_, demand.group, demand.type);
      context.aggregation_group = static_cast<std::uint16_t>(tree);
      context.why_not_in_network = why_not_in_network(config.system, demand);
      collective.plan = plan_collective(context, demand, config.collective, flags_);
      if (collective.plan.fell_back) ++fallen_back_[fallen_back(demand, collective.plan, context.switch_fault)];
      if (collective.plan.algorithm == kInNetwork) {
        if (tree == aggregation_groups_.size()) aggregation_groups_.push_back({demand.group.members(), demand.type});
        std::uint32_t& streams = aggregation_groups_[tree].streams;
        streams = std::max(streams, collective.plan.channels);
      }
      if (known == multicasts.end() && !collective.plan.multicasts.empty()) {
        multicasts.push_back({demand.group, demand.type, number});
        for (const GpuGroup& group : collective.plan.multicasts) {
          multicast_groups_.push_back({group.members(), demand.type});
        }
      }
      flags_ += collective.plan.flags;
    }
    collectives_.push_back(std::move(collective));
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      const auto& ranks = collectives_.back().plan.ranks;
      scripts_[members[rank].first][members[rank].second.value] = ranks.empty() ? &nothing_ : &ranks[rank];
    }
  }
  fused_.emplace(config, programs, multicast_groups_, flags_);
  beside_ = beside_kernels(config, flags_);
  if (!beside_.empty()) stop_flag_ = flags_++;
  copies_.reserve(copies);
  for (std::size_t gpu = 0; gpu < programs.size(); ++gpu) {
    for (std::size_t op = 0; op < programs[gpu].ops.size(); ++op) {
      if (programs[gpu].ops[op].kind != ProgramOpKind::copy) continue;
      copies_.push_back(copy_script(programs[gpu].ops[op].copy));
      scripts_[gpu][op] = &copies_.back();
    }
  }
}

std::vector<std::string> Scripts::notes() const {
  std::vector<std::string> notes;
  for (const auto& [what, count] : fallen_back_) notes.push_back(fmt::format("{} {}", count, what));
  return notes;
}

GpuWork Scripts::work(std::size_t gpu) const {
  GpuWork work{&(*programs_)[gpu], scripts_[gpu], flags_, host_, private_parts_};
  work.pushes = fused_->of(gpu);
  for (const ScriptedKernel& kernel : beside_) work.residents.push_back(&kernel);
  work.stop_flag = stop_flag_;
  return work;
}

}  // namespace weft
