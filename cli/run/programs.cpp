#include "cli/run/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>

#include "cli/config/collective_config.h"
#include "cli/config/sample_config.h"
#include "cli/run/fitting_blocks.h"
#include "cli/run/recorded_gpu.h"
#include "cli/run/recorded_waits.h"
#include "network/network.h"
#include "sim/error.h"
#include "traces/replay_graph.h"
#include "traces/trace_file.h"
#include "workloads/data_parallel.h"
#include "workloads/model_zoo.h"
#include "workloads/replay.h"

namespace weft {

namespace {

// As they fit on the GPU that they are fitted on.
void cut_blocks(Graph& graph, const GpuSpec& gpu, std::vector<std::string>& notes) {
  FittingBlocks blocks(gpu);
  for (Node& node : graph.nodes) {
    if (node.kind == NodeKind::kernel) blocks.cut(node.kernel.shape, node.kernel.reads);
  }
  blocks.note(notes);
}

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

void tell_urgent_streams(std::span<const Graph> graphs, std::vector<std::string>& notes) {
  std::set<std::uint32_t> urgent;
  for (const Graph& graph : graphs) urgent.insert(graph.urgent_streams.begin(), graph.urgent_streams.end());
  for (const std::uint32_t stream : urgent) {
    notes.push_back(
        fmt::format("Stream {} has a higher priority, as recorded: it began while blocks of others waited.", stream));
  }
}

std::vector<Program> programs_of_one_rank(const Trace& trace, const TraceWorkload& workload, const RunConfig& config,
                                          ReplaySpec spec, const GpuSpec& fitted_on, std::vector<std::string>& notes,
                                          const Running* running) {
  const std::size_t chosen = chosen_rank(trace, workload);
  Graph graph = graph_from_trace(trace, chosen, workload.fit_overlapped);
  cut_blocks(graph, fitted_on, notes);
  if (trace.world_size > 1 || config.gpus > 1) {
    notes.push_back(fmt::format("Every GPU replays rank {} of {}: what the ranks did differently is not in the result.",
                                trace.ranks[chosen].rank, trace.world_size));
  }
  if (workload.recorded_waits && trace.world_size > 1 && config.gpus > 1) {
    spec.collective_times = recorded_collective_times(graph, config);
  }
  tell_urgent_streams({&graph, 1}, notes);
  std::vector<Program> programs = replay(graph, spec);
  if (spec.collective_times.empty()) return programs;
  const bool beside = running != nullptr && take_contention_from_waits(config, graph, spec, programs, *running);
  notes.push_back(fmt::format(
      "The last GPU comes to each collective as late as the recorded rank waited there: its time in the trace "
      "less what it takes when all come together{}.",
      beside ? ", and less what the kernels beside it cost it" : ""));
  return programs;
}

template <class Predicate>
bool some_are(Predicate predicate, const std::vector<Program>& programs) {
  const auto kernel = [&](const ProgramOp& op) { return op.kind == ProgramOpKind::kernel && predicate(op); };
  return std::any_of(programs.begin(), programs.end(), [&](const Program& program) {
    return std::any_of(program.ops.begin(), program.ops.end(), kernel);
  });
}

// What is known of the kernels, and what was made of it.
void tell_demands(const Trace& trace, const RunConfig& config, const std::vector<Program>& programs,
                  std::vector<std::string>& notes) {
  const bool counted =
      some_are([](const ProgramOp& op) { return op.kernel.origin == DemandOrigin::counters; }, programs);
  const std::string demands =
      fmt::format("Demands of {}kernels are {}", counted ? "some " : "",
                  counted ? "those counted in the trace, of the others guessed from name, grid and block"
                          : "guessed from name, grid and block");
  if (!some_are([](const ProgramOp& op) { return op.measured_alone > Time(0); }, programs)) {
    notes.push_back(demands + "; none has a time alone in the trace that it could be fitted to.");
    return;
  }
  const std::string& device = trace.ranks.front().device;
  notes.push_back(fmt::format(
      "{}, and fitted to the time alone on the recorded GPU ({}), {}.", demands, device.empty() ? "unknown" : device,
      is_on_another_gpu(config)
          ? fmt::format("as that of {}, and run on {}", std::get<TraceWorkload>(config.workload).recorded_on,
                        config.system.gpu.name)
          : "whatever GPU is simulated (workload.recorded_on: on which to fit them)"));
}

std::size_t overlapped_kernels(std::span<const Program> programs) {
  std::size_t count = 0;
  for (const Program& program : programs) {
    for (const ProgramOp& op : program.ops) {
      if (op.kind == ProgramOpKind::kernel && op.measured_overlapped) ++count;
    }
  }
  return count;
}

std::vector<Program> programs_of(const TraceWorkload& workload, const RunConfig& config,
                                 std::vector<std::string>& notes, const Running* running = nullptr) {
  Trace trace = read_trace(workload.file);
  trace.source = workload.file;  // what messages name: this file, not what it was imported from
  const ReplaySpec spec{
      config.gpus,         config.iterations, workload.host_time_scale, {}, config.system.gpu.launch.device_latency,
      config.high_priority};
  const bool each = replays_each_rank(trace, workload);
  const bool elsewhere = is_on_another_gpu(config);
  const GpuSpec fitted_on = elsewhere ? recorded_system(config).gpu : config.system.gpu;
  const auto each_rank = [&] {
    std::vector<Graph> graphs = graphs_from_trace(trace, workload.fit_overlapped);
    for (Graph& graph : graphs) cut_blocks(graph, fitted_on, notes);
    tell_urgent_streams(graphs, notes);
    return replay_ranks(graphs, spec);
  };
  std::vector<Program> programs =
      each ? each_rank() : programs_of_one_rank(trace, workload, config, spec, fitted_on, notes, running);
  if (each) notes.push_back(fmt::format("Each GPU replays its own of the {} recorded ranks.", programs.size()));
  tell_demands(trace, config, programs, notes);
  if (const std::size_t kernels = overlapped_kernels({programs.data(), each ? programs.size() : 1}); kernels > 0) {
    notes.push_back(fmt::format(
        "{} kernels never ran alone in the trace: they are fitted to their shortest time there, beside communication "
        "(workload.fit_overlapped).",
        kernels));
  }
  if (elsewhere && running != nullptr) bring_to_simulated_gpu(config, programs, *running, notes);
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
                               .iterations = config.iterations,
                               .high_priority = config.high_priority});
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

}  // namespace

bool replays_each_rank(const Trace& trace, const TraceWorkload& workload) {
  return !workload.rank && trace.ranks.size() > 1;
}

std::vector<Program> make_programs(const RunConfig& config, std::vector<std::string>& notes, const Running* running) {
  if (const auto* trace = std::get_if<TraceWorkload>(&config.workload))
    return programs_of(*trace, config, notes, running);
  return std::visit([&](const auto& workload) { return programs_of(workload, config, notes); }, config.workload);
}

}  // namespace weft
