// The figures of a folder's page for papers.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/report/figure.h"
#include "cli/run/result.h"
#include "sim/json_reader.h"

namespace weft {

// What the figures of a sweep show; empty: as its page does at first.
struct SweepChoice {
  std::string x, by;            // parameters: the axis, and a curve or row for each value of the other
  std::string metric, against;  // metrics: the one shown, and the Pareto front's other
};

// Of a run: iteration, backward, timeline, kernels, collectives, hbm-load, link-load, memory-load, topology; of a
// comparison: iteration, backward, hbm; of a sweep: curves, heat, pareto; those for which there are numbers. Throws
// InputError for a folder of something else, and for a choice that the sweep does not have.
[[nodiscard]] std::vector<Figure> folder_figures(const std::filesystem::path& folder, const SweepChoice& choice);

// `data` as sweep_report_data makes it.
[[nodiscard]] std::vector<Figure> sweep_figures(const Json& data, const SweepChoice& choice);

// The network: nodes, and links coloured by the share of time in which they send. `links` as in result.json; empty
// where their names do not say what they join.
[[nodiscard]] Figure topology_figure(const Json& links);

// The last iteration on the first GPU: a lane a stream, kernels by how much slower they are than alone.
[[nodiscard]] Figure timeline_figure(const RunResult& records);

}  // namespace weft
