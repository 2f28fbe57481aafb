#include "cli/run/simulate.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>

#include "cli/run/functional.h"
#include "cli/run/gather.h"
#include "cli/run/kernel_fits.h"
#include "cli/run/machine.h"
#include "cli/run/memory_check.h"
#include "cli/run/programs.h"
#include "cli/run/recorded_gpu.h"
#include "cli/run/scripts.h"
#include "cli/run/standstill.h"
#include "cli/sampled/ranks_apart.h"
#include "cli/sampled/sampled_run.h"
#include "gpu_model/alone.h"
#include "sim/hash.h"
#include "traces/packed_file.h"

namespace weft {

namespace {

using Progress = std::function<void(double, const std::string&)>;

std::int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

// How far the machine is, by operations that have ended.
double done_share(const Machine& machine) {
  std::size_t all = 0;
  std::size_t ended = 0;
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    for (const OpTimes& times : machine.gpu(g).times()) ended += times.end >= 0 ? 1 : 0;
    all += machine.gpu(g).times().size();
  }
  return all == 0 ? 1 : static_cast<double>(ended) / static_cast<double>(all);
}

// The kernels of each pass alone; then the demands of all programs are those that were found.
void fit_kernels(const RunConfig& config, std::vector<Program>& programs, const Progress& progress, AlonePasses& alone,
                 RunResult& result) {
  const std::span<const Program> different(programs.data(), alone.passes.size());
  const auto told = [&](double share) {
    if (progress) progress(0.2 * share, "kernels alone");
  };
  std::vector<std::vector<DemandFit>> fits;
  if (is_on_another_gpu(config)) {
    fits = no_fits(different);  // make_programs() has
  } else {
    fits = fits_of({config.system, config.threads, std::get_if<TraceWorkload>(&config.workload)}, different, told,
                   result.engine.memory_transactions);
    note_fits(different, fits, result.notes);
    apply_fits(fits, programs);
  }
  for (std::size_t p = 0; p < fits.size(); ++p) alone.passes[p].fits = std::move(fits[p]);
}

// Of programs that differ.
bool samples_ranks_apart(const RunConfig& config) {
  return config.fidelity == Fidelity::sampled && std::holds_alternative<TraceWorkload>(config.workload) &&
         config.collective.mover == Mover::compute_units && !config.functional && config.beside.empty() &&
         !config.system.gpu.power;
}

// Whether kernels have recorded times that their demands are fitted to.
bool is_calibrated(const Program& program) {
  return std::any_of(program.ops.begin(), program.ops.end(),
                     [](const ProgramOp& op) { return op.measured_alone > Time(0); });
}

void finish(std::chrono::steady_clock::time_point started, const Progress& progress, RunResult& result) {
  if (progress) progress(1, "done");
  result.engine.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  result.engine.peak_rss_bytes = peak_rss_bytes();
}

}  // namespace

RunResult simulate(const RunConfig& config, const Progress& progress) {
  const auto started = std::chrono::steady_clock::now();
  RunResult result;
  result.config = config.resolved;
  result.config_sha256 = config.sha256;
  if (const auto* trace = std::get_if<TraceWorkload>(&config.workload))
    result.trace_sha256 = sha256(read_packed(trace->file));
  result.engine.threads = config.threads;

  if (progress) progress(0, "reading the workload");
  std::vector<Program> programs = make_programs(config, result.notes, &progress);
  check_memory(config, programs, result);
  if (!result.out_of_memory) {
    const Scripts scripts(config, programs);  // first: what cannot be planned shall not cost a calibration
    for (const std::string& note : scripts.notes()) result.notes.push_back(note);
    std::int64_t& transactions = result.engine.memory_transactions;
    AlonePasses alone;
    alone.passes.resize(distinct_kernels(programs).size());
    std::string detail = config.fidelity == Fidelity::cycle ? "cycle" : why_not_sampled(config, programs);
    bool fitted = false;
    const auto fit_once = [&] {
      if (!std::exchange(fitted, true)) fit_kernels(config, programs, progress, alone, result);
    };
    try {
      if (detail.empty()) {
        if (is_calibrated(programs.front())) fit_once();
        simulate_sampled(config, programs, scripts, alone.of(0).fits, progress, result);
        finish(started, progress, result);
        return result;
      }
      if (samples_ranks_apart(config)) {
        simulate_ranks_apart(config, programs, scripts, progress, result);
        finish(started, progress, result);
        return result;
      }
    } catch (const Standstill& standstill) {
      detail = standstill.what();
    }
    fit_once();
    if (config.fidelity == Fidelity::sampled) {
      result.notes.push_back(fmt::format("Simulated in detail although asked for samples: {}.", detail));
    }
    if (progress) progress(0.2, "without communication");
    for (std::size_t p = 0; p < alone.passes.size(); ++p) {
      alone.passes[p].undisturbed = run_without_communication(scripts.work(p), config.system.gpu, transactions);
    }

    std::vector<GpuWork> work;
    for (std::size_t g = 0; g < programs.size(); ++g) work.push_back(scripts.work(g));
    std::optional<Functional> functional;
    if (config.functional) {
      functional.emplace(config, programs, scripts);
      for (std::size_t g = 0; g < programs.size(); ++g) work[g].values = &functional->gpu(g);
    }
    Machine machine(config.system, work, scripts.multicast_groups(),
                    functional ? functional->carried() : CarriedValues(), scripts.aggregation_groups(), config.seed);
    std::int64_t windows = 0;
    const bool finished = machine.run(config.threads, [&](Time) {
      if (progress && ++windows % 1024 == 0) progress(0.3 + 0.7 * done_share(machine), "simulating");
    });
    if (!finished) {
      result.status = "deadlock";
      if (const std::string why = why_at_a_standstill(machine, programs, scripts.collectives()); !why.empty())
        result.notes.push_back("Deadlock: " + why + ".");
    }
    gather(config, programs, alone, scripts, machine, result);
    if (functional && finished) result.functional = functional->result();
    result.engine.simulated_s = to_seconds(machine.end());
  }
  finish(started, progress, result);
  return result;
}

}  // namespace weft
