#include "cli/commands/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "cli/output/result_json.h"
#include "cli/report/report_figures.h"
#include "cli/report/report_units.h"

namespace weft {

namespace {

constexpr std::size_t kMostColumns = 4;  // runs side by side that fit 120 columns

using Grid = std::vector<std::vector<std::string>>;

std::string bold(const std::string& text, bool color) { return color ? "\x1b[1m" + text + "\x1b[0m" : text; }
std::string dim(const std::string& text, bool color) { return color ? "\x1b[2m" + text + "\x1b[0m" : text; }

std::string or_dash(const std::optional<double>& value, const std::function<std::string(double)>& text) {
  return value ? text(*value) : "-";
}

struct Metric {
  const char* name;
  std::function<std::string(const Figures&)> value;
};

std::vector<Metric> metrics() {
  return {
      {"iteration", [](const Figures& f) { return or_dash(f.iteration_s, time_text); }},
      {"backward alone", [](const Figures& f) { return or_dash(f.backward_isolated_s, time_text); }},
      {"backward overlapped", [](const Figures& f) { return or_dash(f.backward_s, time_text); }},
      {"backward slowdown", [](const Figures& f) { return or_dash(f.backward_slowdown, factor_text); }},
      {"exposed communication", [](const Figures& f) { return or_dash(f.exposed_s, time_text); }},
      {"bus bandwidth", [](const Figures& f) { return or_dash(f.busbw_GBps, bandwidth_text); }},
      {"HBM taken by communication", [](const Figures& f) { return or_dash(f.hbm_communication_bytes, bytes_text); }},
      {"unit time of communication",
       [](const Figures& f) { return or_dash(f.compute_unit_seconds_communication, time_text); }},
      {"throughput",
       [](const Figures& f) {
         if (f.samples_per_s) return number_text(*f.samples_per_s) + " samples/s";
         return f.tokens_per_s ? number_text(*f.tokens_per_s) + " tokens/s" : std::string("-");
       }},
  };
}

Grid transposed(const Grid& grid) {
  Grid turned(grid.front().size(), std::vector<std::string>(grid.size()));
  for (std::size_t row = 0; row < grid.size(); ++row) {
    for (std::size_t column = 0; column < grid[row].size(); ++column) turned[column][row] = grid[row][column];
  }
  return turned;
}

// Columns in a terminal: code points, which is exact for the Latin labels that configurations have.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string padded(const std::string& text, std::size_t to, bool left) {
  const std::string space(to - std::min(to, width(text)), ' ');
  return left ? text + space : space + text;
}

std::string grid_text(const Grid& grid, bool color) {
  std::vector<std::size_t> widths(grid.front().size(), 0);
  for (const auto& row : grid) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (std::size_t r = 0; r < grid.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < grid[r].size(); ++i) {
      line += (i == 0 ? "  " : "   ") + padded(grid[r][i], widths[i], i == 0);
    }
    text += (r == 0 ? bold(line, color) : line) + "\n";
    if (r == 0) {
      std::size_t total = 2 + 3 * (widths.size() - 1);
      for (const std::size_t w : widths) total += w;
      text += dim("  " + std::string(total - 2, '-'), color) + "\n";
    }
  }
  return text;
}

std::string causes_text(const Figures& figures) {
  double total = 0;
  for (const CauseFigure& cause : figures.causes) total += cause.seconds;
  std::string text;
  for (const CauseFigure& cause : figures.causes) {
    const std::string share = total > 0 ? " (" + percent_text(cause.seconds / total) + ")" : "";
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", cause.name, time_text(cause.seconds), share);
  }
  return text;
}

std::string functional_text(const FunctionalResult& functional) {
  const std::string order = functional.order.empty() ? "" : ", " + functional.order + " order";
  const std::string ranks = !functional.same_on_all_ranks   ? ""
                            : *functional.same_on_all_ranks ? "; the same on all ranks"
                                                            : "; NOT THE SAME ON ALL RANKS";
  return fmt::format("  {:<15} {:>10}   {} added in {}{}: off by {:.2g} at most, {} of the bound{}\n", "numbers",
                     functional.wrong == 0 ? "right" : fmt::format("{} wrong", functional.wrong), functional.type,
                     functional.accumulator, order, functional.max_absolute_error,
                     percent_text(functional.max_bound_share), ranks);
}

// Means over GPUs.
std::string power_text(const RunResult& result) {
  PowerResult mean;
  double gpus = 0;
  for (const GpuResult& gpu : result.gpus) {
    if (!gpu.power) continue;
    ++gpus;
    mean.energy_J += gpu.power->energy_J;
    mean.mean_W += gpu.power->mean_W;
    mean.mean_clock_MHz += gpu.power->mean_clock_MHz;
  }
  const auto iterations = static_cast<double>(std::max<std::size_t>(1, result.per_iteration_s.size()));
  return fmt::format("  {:<15} {:>10}   {} J a GPU and iteration; clock {} MHz\n", "power",
                     number_text(mean.mean_W / gpus) + " W", number_text(mean.energy_J / gpus / iterations),
                     number_text(mean.mean_clock_MHz / gpus));
}

}  // namespace

std::string run_summary(const RunResult& result, bool color) {
  const Json json = result_to_json(result);
  const Figures f = figures_of(json);
  std::string text = bold(describe_run(result.config), color) + "\n" + verdict(json) + "\n\n";
  const auto row = [&](const char* name, const std::optional<double>& seconds, const std::string& detail) {
    if (seconds) text += fmt::format("  {:<15} {:>10}   {}\n", name, time_text(*seconds), detail);
  };
  std::string throughput;
  if (f.samples_per_s) throughput = number_text(*f.samples_per_s) + " samples/s";
  if (f.tokens_per_s) throughput += (throughput.empty() ? "" : ", ") + number_text(*f.tokens_per_s) + " tokens/s";
  if (f.scaling_efficiency) {
    throughput += (throughput.empty() ? "" : ", ") + percent_text(*f.scaling_efficiency) + " scaling efficiency";
  }
  row("iteration", f.iteration_s, throughput);
  row("forward", f.forward_s, "");
  row("backward", f.backward_s,
      f.backward_isolated_s && f.backward_slowdown
          ? fmt::format("alone {}, slowdown {}", time_text(*f.backward_isolated_s), factor_text(*f.backward_slowdown))
          : "");
  if (!f.causes.empty()) text += fmt::format("  {:<15} {:>10}   {}\n", "  because of", "", causes_text(f));
  row("optimizer", f.optimizer_s, "");
  row("communication", f.communication_s,
      f.exposed_s && f.overlapped_s
          ? fmt::format("exposed {}, overlapped {}", time_text(*f.exposed_s), time_text(*f.overlapped_s))
          : "");
  row("idle", f.idle_s, "");
  if (f.busbw_GBps) {
    text += fmt::format("  {:<15} {:>10}   over {} collective{}\n", "bus bandwidth", bandwidth_text(*f.busbw_GBps),
                        f.collectives, f.collectives == 1 ? "" : "s");
  }
  if (f.hbm_bytes && f.hbm_communication_bytes) {
    const double share = *f.hbm_bytes > 0 ? *f.hbm_communication_bytes / *f.hbm_bytes : 0;
    text += fmt::format("  {:<15} {:>10}   a GPU and iteration; communication takes {} ({})\n", "HBM traffic",
                        bytes_text(*f.hbm_bytes), bytes_text(*f.hbm_communication_bytes), percent_text(share));
  }
  if (!result.gpus.empty() && result.gpus.front().power) text += power_text(result);
  if (result.functional) text += functional_text(*result.functional);
  for (const std::string& note : result.notes) text += dim("  note: " + note, color) + "\n";
  return text;
}

std::string comparison_table(const std::vector<std::pair<std::string, Json>>& results, bool color) {
  if (results.empty()) return "";
  Grid grid;
  grid.push_back({""});
  std::vector<Figures> figures;
  for (const auto& [label, json] : results) {
    figures.push_back(figures_of(json));
    grid.front().push_back(label + (figures.back().status == "ok" ? "" : " (" + figures.back().status + ")"));
  }
  for (const Metric& metric : metrics()) {
    std::vector<std::string> row{metric.name};
    for (const Figures& one : figures) row.push_back(metric.value(one));
    grid.push_back(std::move(row));
  }
  const std::string difference = comparison_verdict(results);
  return grid_text(results.size() > kMostColumns ? transposed(grid) : grid, color) +
         dim("  times of one iteration; HBM of one GPU and iteration", color) + "\n" +
         (difference.empty() ? "" : "\n" + difference + "\n");
}

}  // namespace weft
