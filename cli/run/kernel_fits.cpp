#include "cli/run/kernel_fits.h"

#include <fmt/format.h>

#include "cli/run/demands_file.h"

namespace weft {

std::vector<std::vector<DemandFit>> fits_of(const FittingPlace& place, std::span<const Program> different,
                                            const std::function<void(double)>& progress, std::int64_t& transactions) {
  if (place.trace != nullptr && !place.trace->demands.empty())
    return read_demands(place.trace->demands, demands_origin(*place.trace, place.system, different), different);
  GpuSpec full_clock = place.system.gpu;  // a kernel by itself is shorter than what power is averaged over
  full_clock.power.reset();
  return run_kernels_alone(different, full_clock, place.threads, progress, transactions, place.skip_waves);
}

std::vector<std::vector<DemandFit>> no_fits(std::span<const Program> different) {
  std::vector<std::vector<DemandFit>> fits;
  for (const Program& program : different) {
    std::vector<DemandFit>& own = fits.emplace_back();
    for (const ProgramOp& op : program.ops) own.push_back({.alone = op.measured_alone});
  }
  return fits;
}

void apply_fits(const std::vector<std::vector<DemandFit>>& fits, std::vector<Program>& programs) {
  for (std::size_t g = 0; g < programs.size(); ++g) {
    const std::vector<DemandFit>& own = fits[fits.size() == 1 ? 0 : g];
    std::vector<ProgramOp>& ops = programs[g].ops.edit();
    for (std::size_t o = 0; o < ops.size(); ++o) {
      if (ops[o].kind == ProgramOpKind::kernel) apply(own[o], ops[o].kernel);
    }
  }
}

void note_fits(std::span<const Program> different, const std::vector<std::vector<DemandFit>>& fits,
               std::vector<std::string>& notes) {
  const CalibrationSummary summary = summarise(different, fits);
  if (summary.calibrated == 0) return;
  notes.push_back(
      fmt::format("{} kernels calibrated to their time alone, {} of them more than {:.0f} % off; {} "
                  "kernels have no time alone in the trace and keep the guessed demand.",
                  summary.calibrated, summary.missed, kCalibrationTolerance * 100, summary.uncalibrated));
}

}  // namespace weft
