#include "cli/report/report_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "cli/report/report_data.h"
#include "cli/report/report_figures.h"
#include "cli/report/report_folder.h"
#include "cli/report/report_sweep.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostLinks = 8;     // the looks of lines
constexpr std::size_t kMostKernels = 15;  // rows that are readable in a column of a paper

using Runs = std::vector<std::pair<std::string, Json>>;

Figure bars(std::string name, std::string title, FigureAxis x, std::vector<std::string> parts) {
  Figure figure{std::move(name), std::move(title), FigureKind::bars, std::move(x), {}};
  for (std::string& part : parts) figure.series.push_back({std::move(part)});
  return figure;
}
void add_bar(Figure& figure, const std::string& category, const std::vector<double>& parts) {
  figure.categories.push_back(category);
  for (std::size_t i = 0; i < parts.size(); ++i) figure.series[i].y.push_back(parts[i]);
}

std::vector<Figure> figures_of_runs(const Runs& runs) {
  const FigureAxis seconds{"time of one iteration", FigureUnit::seconds};
  Figure iteration = bars("iteration", "The iteration", seconds, {"compute", "exposed communication", "idle"});
  Figure backward = bars("backward", "The backward pass: alone, and what each resource adds", seconds,
                         {"alone", "compute units", "HBM", "cache", "links"});
  Figure hbm =
      bars("hbm", "HBM traffic", {"bytes of one GPU and iteration", FigureUnit::bytes}, {"compute", "communication"});
  for (const auto& [label, result] : runs) {
    const Figures f = figures_of(result);
    if (f.compute_s) add_bar(iteration, label, {*f.compute_s, *f.exposed_s, *f.idle_s});
    if (f.backward_isolated_s && f.causes.size() == 4) {
      std::vector<double> parts{*f.backward_isolated_s};
      for (const CauseFigure& cause : f.causes) parts.push_back(cause.seconds);
      add_bar(backward, label, parts);
    }
    if (f.hbm_bytes) add_bar(hbm, label, {*f.hbm_bytes - *f.hbm_communication_bytes, *f.hbm_communication_bytes});
  }
  return {std::move(iteration), std::move(backward), std::move(hbm)};
}

Figure kernels_figure(const RunResult& records) {
  Figure figure =
      bars("kernels", "Kernels that lost most", {"time lost, over GPUs, iterations and calls", FigureUnit::seconds},
           {"compute units", "HBM", "cache", "links"});
  for (const Json& row : kernels_that_lost_most(records, kMostKernels)) {
    add_bar(figure, row.at("name").get<std::string>(), row.at("causes").get<std::vector<double>>());
  }
  return figure;
}

Figure collectives_figure(const Json& result) {
  Figure figure{"collectives",
                "Collectives",
                FigureKind::points,
                {"bytes", FigureUnit::bytes, true},
                {"bus bandwidth", FigureUnit::bandwidth}};
  std::map<std::string, std::size_t> series;
  for (const Json& one : result.at("collectives")) {
    if (one.at("bytes").get<double>() <= 0) continue;
    std::string name = one.at("kind").get<std::string>() + ", " + one.at("algorithm").get<std::string>();
    if (one.at("protocol").is_string()) name += ", " + one.at("protocol").get<std::string>();
    const auto place = series.try_emplace(name, figure.series.size());
    if (place.second) figure.series.push_back({name});
    figure.series[place.first->second].x.push_back(one.at("bytes").get<double>());
    figure.series[place.first->second].y.push_back(one.at("busbw_GBps").get<double>());
  }
  return figure;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

Figure load_figure(const RunResult& records, CounterKind kind, std::string name, std::string title) {
  const bool memory = kind == CounterKind::memory;
  Figure figure{std::move(name),
                std::move(title),
                memory ? FigureKind::areas : FigureKind::steps,
                {"time", FigureUnit::seconds},
                {}};
  std::vector<const CounterTrack*> shown;
  for (const CounterTrack& counter : records.counters) {
    const bool first_gpu = shown.empty() || counter.gpu == shown.front()->gpu;
    if (counter.kind == kind && !counter.values.empty() && first_gpu) shown.push_back(&counter);
  }
  if (kind == CounterKind::link) {
    std::stable_sort(shown.begin(), shown.end(),
                     [](const CounterTrack* a, const CounterTrack* b) { return sum(a->values) > sum(b->values); });
    shown.resize(std::min(shown.size(), kMostLinks));
  }
  for (const CounterTrack* counter : shown) {
    figure.y.label = counter->unit + (counter->limit ? fmt::format(" (limit {:.4g})", *counter->limit) : "");
    FigureSeries series{counter->name, {}, counter->values};
    for (std::size_t i = 0; i < counter->values.size(); ++i) {
      series.x.push_back(static_cast<double>(i) * counter->period_s);
    }
    figure.series.push_back(std::move(series));
  }
  return figure;
}

std::vector<Figure> run_figures(const fs::path& folder) {
  const Json result = read_document(folder / "result.json");
  const RunResult records = read_run_records(folder);
  std::vector<Figure> figures = figures_of_runs({{"", result}});
  figures.pop_back();  // one bar of bytes is a number, not a figure
  figures.push_back(timeline_figure(records));
  figures.push_back(kernels_figure(records));
  figures.push_back(collectives_figure(result));
  figures.push_back(load_figure(records, CounterKind::hbm, "hbm-load", "HBM load"));
  figures.push_back(load_figure(records, CounterKind::link, "link-load", "Link load"));
  figures.push_back(load_figure(records, CounterKind::memory, "memory-load", "Memory"));
  figures.push_back(load_figure(records, CounterKind::power, "power", "Power"));
  figures.push_back(load_figure(records, CounterKind::clock, "clock", "Clock"));
  figures.push_back(topology_figure(result.at("links")));
  return figures;
}

bool is_empty(const Figure& figure) {
  return std::all_of(figure.series.begin(), figure.series.end(), [](const auto& series) { return series.y.empty(); });
}

}  // namespace

std::vector<Figure> folder_figures(const fs::path& folder, const SweepChoice& choice) {
  std::vector<Figure> figures;
  switch (folder_kind(folder)) {
    case FolderKind::run:
      figures = run_figures(folder);
      break;
    case FolderKind::comparison:
      figures = figures_of_runs(read_comparison(folder));
      break;
    case FolderKind::sweep:
      figures = sweep_figures(sweep_report_data(folder, folder), choice);
  }
  figures.erase(std::remove_if(figures.begin(), figures.end(), is_empty), figures.end());
  return figures;
}

}  // namespace weft
