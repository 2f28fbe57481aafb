#include "cli/commands/calibration_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "gpu_model/alone.h"
#include "traces/kernel_class.h"

namespace weft {

namespace {

struct Row {
  std::array<std::uint32_t, 3> by_origin{};  // by DemandOrigin
  Time alone;                                // simulated
  std::uint32_t calibrated = 0;
  double error_sum = 0;
  double worst = 0;
  std::uint32_t bent = 0;  // kernels whose guessed traffic was too slow already

  void add(const ProgramOp& op, const DemandFit& fit) {
    ++by_origin[static_cast<std::size_t>(op.kernel.origin)];
    alone += fit.alone;
    if (op.measured_alone == Time(0)) return;
    ++calibrated;
    const double error = calibration_error(op, fit);
    error_sum += error;
    worst = std::max(worst, error);
    if (fit.memory_scale < 1) ++bent;
  }
};

void write_origins(const Row& row, Json& out) {
  out["measured"] = row.by_origin[static_cast<std::size_t>(DemandOrigin::counters)];
  out["derived"] = row.by_origin[static_cast<std::size_t>(DemandOrigin::shapes)];
  out["guessed"] = row.by_origin[static_cast<std::size_t>(DemandOrigin::name)];
}

}  // namespace

Json calibration_report(std::span<const Program> programs, const std::vector<std::vector<DemandFit>>& fits) {
  std::map<std::string, Row> classes;
  Row all;
  std::uint32_t kernels = 0;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    for (std::size_t i = 0; i < programs[p].ops.size(); ++i) {
      const ProgramOp& op = programs[p].ops[i];
      if (op.kind != ProgramOpKind::kernel) continue;
      ++kernels;
      classes[to_string(kernel_class(op.name))].add(op, fits[p][i]);
      all.add(op, fits[p][i]);
    }
  }
  const CalibrationSummary summary = summarise(programs, fits);
  Json out;
  out["kernels"] = kernels;
  write_origins(all, out);
  out["calibrated"] = summary.calibrated;
  out["fitted_to_overlapped_time"] = summary.overlapped;
  out["without_time_alone"] = summary.uncalibrated;
  out["off_by_1_percent"] = summary.missed;
  out["off_by_2_percent"] = summary.missed_twice;
  out["worst_error"] = summary.worst.empty() ? Json() : Json(summary.worst_error);
  out["worst_kernel"] = summary.worst.empty() ? Json() : Json(summary.worst);
  std::vector<std::pair<std::string, Row>> rows(classes.begin(), classes.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.alone > b.second.alone; });
  out["classes"] = Json::array();
  for (const auto& [name, row] : rows) {
    Json entry;
    entry["class"] = name;
    write_origins(row, entry);
    entry["alone_s"] = to_seconds(row.alone);
    entry["calibrated"] = row.calibrated;
    entry["mean_error"] = row.calibrated > 0 ? Json(row.error_sum / row.calibrated) : Json();
    entry["worst_error"] = row.calibrated > 0 ? Json(row.worst) : Json();
    entry["traffic_reduced"] = row.bent;
    out["classes"].push_back(std::move(entry));
  }
  return out;
}

std::string calibration_text(const Json& report) {
  const auto percent = [](const Json& share) {
    return share.is_null() ? std::string("-") : fmt::format("{:.2f} %", 100 * share.get<double>());
  };
  const auto count = [](const Json& object, const char* key) { return object[key].get<std::uint32_t>(); };
  std::string out = fmt::format("{:<20} {:>8} {:>8} {:>8} {:>11} {:>11} {:>11}\n", "kernels", "measured", "derived",
                                "guessed", "alone ms", "mean error", "worst");
  for (const Json& row : report["classes"]) {
    out += fmt::format("{:<20} {:>8} {:>8} {:>8} {:>11.3f} {:>11} {:>11}\n", row["class"].get<std::string>(),
                       count(row, "measured"), count(row, "derived"), count(row, "guessed"),
                       1e3 * row["alone_s"].get<double>(), percent(row["mean_error"]), percent(row["worst_error"]));
  }
  out += fmt::format("{} of {} kernels fitted to their time alone; {} more than 1 % off, {} more than 2 %",
                     count(report, "calibrated"), count(report, "kernels"), count(report, "off_by_1_percent"),
                     count(report, "off_by_2_percent"));
  if (!report["worst_kernel"].is_null()) {
    out += fmt::format("; worst {}: {}", percent(report["worst_error"]),
                       report["worst_kernel"].get<std::string>().substr(0, 90));
  }
  out += "\n";
  if (const std::uint32_t overlapped = count(report, "fitted_to_overlapped_time"); overlapped > 0) {
    out += fmt::format("{} of those never ran alone in the trace: that is their shortest time beside communication\n",
                       overlapped);
  }
  return out;
}

}  // namespace weft
