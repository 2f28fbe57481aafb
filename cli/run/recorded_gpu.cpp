#include "cli/run/recorded_gpu.h"

#include "cli/config/system_json.h"
#include "cli/config/system_of.h"
#include "cli/run/fitting_blocks.h"
#include "cli/run/kernel_fits.h"

namespace weft {

namespace {

const TraceWorkload* recorded_elsewhere(const RunConfig& config) {
  const auto* trace = std::get_if<TraceWorkload>(&config.workload);
  return trace != nullptr && !trace->recorded_on.empty() ? trace : nullptr;
}

template <class Function>
void each_kernel(std::vector<Program>& programs, Function&& function) {
  for (std::size_t g = 0; g < programs.size(); ++g) {
    std::vector<ProgramOp>& ops = programs[g].ops.edit();
    for (std::size_t o = 0; o < ops.size(); ++o) {
      if (ops[o].kind == ProgramOpKind::kernel) function(ops[o], g, o);
    }
  }
}

}  // namespace

SystemSpec recorded_system(const RunConfig& config) {
  const TraceWorkload* trace = recorded_elsewhere(config);
  return trace != nullptr ? preset_system(trace->recorded_on) : config.system;
}

bool is_on_another_gpu(const RunConfig& config) {
  if (recorded_elsewhere(config) == nullptr) return false;
  const auto gpu = [](const SystemSpec& system) { return system_to_json(system)["gpu"]; };
  return gpu(recorded_system(config)) != gpu(config.system);
}

void bring_to_simulated_gpu(const RunConfig& config, std::vector<Program>& programs, const Running& running,
                            std::vector<std::string>& notes) {
  const SystemSpec recorded = recorded_system(config);
  const std::size_t kinds = distinct_kernels(programs).size();
  const auto told = [&](const std::string& where, double from) {
    return [&running, where, from](double share) {
      if (running) running(from + 0.1 * share, "kernels alone on " + where);
    };
  };
  const bool sampled = config.fidelity == Fidelity::sampled;
  std::int64_t transactions = 0;
  const auto fits = fits_of({recorded, config.threads, recorded_elsewhere(config)}, {programs.data(), kinds},
                            told(recorded.gpu.name, 0), transactions);
  note_fits({programs.data(), kinds}, fits, notes);
  apply_fits(fits, programs);

  FittingBlocks blocks(config.system.gpu), again(config.system.gpu);  // of the first program, of the others
  each_kernel(programs, [&](ProgramOp& op, std::size_t g, std::size_t) {
    op.measured_alone = Time(0);
    (g == 0 ? blocks : again).cut(op.kernel.shape, op.kernel.reads);
  });
  blocks.note(notes);
  const auto here = fits_of({config.system, config.threads, nullptr, sampled}, {programs.data(), kinds},
                            told(config.system.gpu.name, 0.1), transactions);
  each_kernel(programs, [&](ProgramOp& op, std::size_t g, std::size_t o) {
    op.measured_alone = here[here.size() == 1 ? 0 : g][o].alone;
    op.measured_overlapped = false;
  });
}

}  // namespace weft
