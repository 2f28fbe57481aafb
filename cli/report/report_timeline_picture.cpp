#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "cli/output/timeline_tracks.h"
#include "cli/report/report_pictures.h"

namespace weft {

namespace {

constexpr double kSeen =
    1.0 / 2000;  // of the width: what is shorter, or closer to its neighbour, is no mark of its own

struct Look {
  const char *name, *color;  // colours as on a run's page
};
constexpr std::array<Look, 8> kLooks{{{"communication", "#8a6bb8"},
                                      {"below 1.05× of the time alone", "#8fb8dc"},
                                      {"up to 1.5×", "#f2b34c"},
                                      {"1.5× and more", "#c8431b"},
                                      {"time alone unknown", "#cfd5dc"},
                                      {"forward", "#bcd2e6"},
                                      {"backward", "#3d7ebf"},
                                      {"optimizer", "#5a6675"}}};
constexpr std::size_t kFirstPhase = 5;

std::size_t look_of(const OperationRecord& operation) {
  if (operation.communication) return 0;
  if (!operation.isolated_s || *operation.isolated_s <= 0) return 4;
  const double slowdown = (operation.end_s - operation.start_s) / *operation.isolated_s;
  return slowdown < 1.05 ? 1 : slowdown < 1.5 ? 2 : 3;
}

void add_span(FigureSeries& series, double start, double end, std::size_t lane, double seen) {
  const auto row = static_cast<double>(lane);
  if (!series.z.empty() && series.z.back() == row && start - series.y.back() < seen) {
    series.y.back() = std::max(series.y.back(), end);
    return;
  }
  series.x.push_back(start);
  series.y.push_back(end);
  series.z.push_back(row);
}

}  // namespace

Figure timeline_figure(const RunResult& records) {
  Figure figure{"timeline", "", FigureKind::spans, {"time", FigureUnit::seconds}, {}};
  if (records.operations.empty()) return figure;
  std::uint32_t gpu = records.operations.front().gpu, last = 0;
  for (const OperationRecord& operation : records.operations) gpu = std::min(gpu, operation.gpu);
  for (const OperationRecord& operation : records.operations) last = std::max(last, operation.iteration);
  figure.title = "GPU " + std::to_string(gpu) + ", iteration " + std::to_string(last + 1);
  const auto shown = [&](const auto& one) { return one.gpu == gpu && one.iteration == last; };
  double begin = std::numeric_limits<double>::infinity(), end = 0;
  for (const OperationRecord& operation : records.operations) {
    if (!shown(operation)) continue;
    begin = std::min(begin, operation.start_s);
    end = std::max(end, operation.end_s);
  }

  std::vector<FigureSeries> all;
  for (const Look& look : kLooks) all.push_back({look.name, {}, {}, {}, look.color});
  const double seen = kSeen * (end - begin);
  for (const PhaseSpan& span : phase_spans(records)) {
    if (!shown(span)) continue;
    if (figure.categories.empty()) figure.categories.emplace_back("phase");
    const auto phase = static_cast<std::size_t>(span.phase);  // forward, backward, optimizer
    add_span(all[kFirstPhase + phase], span.start_s - begin, span.end_s - begin, 0, 0);
  }
  for (const TimelineTrack& track : timeline_tracks(records)) {
    if (track.gpu != gpu) continue;
    const std::size_t lane = figure.categories.size();
    bool any = false;
    for (const std::size_t i : track.operations) {
      const OperationRecord& operation = records.operations[i];
      if (!shown(operation)) continue;
      any = true;
      add_span(all[look_of(operation)], operation.start_s - begin, operation.end_s - begin, lane, seen);
    }
    if (any)
      figure.categories.push_back("stream " + std::to_string(track.stream) + (track.overflow > 0 ? " (more)" : ""));
  }
  for (FigureSeries& series : all) {
    if (!series.x.empty()) figure.series.push_back(std::move(series));
  }
  return figure;
}

}  // namespace weft
