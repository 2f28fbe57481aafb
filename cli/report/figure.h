// A figure for a paper: its numbers, drawn as SVG, and as data with a gnuplot script that draws the same.
#pragma once

#include <string>
#include <vector>

namespace weft {

enum class FigureUnit { number, seconds, bytes, bandwidth, share };  // base units: 1, s, B, GB/s, 1

struct FigureAxis {
  std::string label;
  FigureUnit unit = FigureUnit::number;
  bool log = false;
};

// lines, points: x and y of the same length. steps: lines whose value holds to the next x. areas: series on top of each
// other, all with the x of the first. bars: one stacked bar a category, y[i] of category i. heat: a row of cells a
// series, y[i] in column i, NaN where there is none. spans: from x to y in the lane of category z. network: the first
// series are nodes at x and y from 0 to 1, named by categories; the second are links between nodes x and y, z their
// load.
struct FigureSeries {
  std::string name;
  std::vector<double> x = {}, y = {}, z = {};
  std::string color = {};  // of spans
};

enum class FigureKind { lines, steps, points, areas, bars, heat, spans, network };

struct Figure {
  std::string name, title;  // name: of its files
  FigureKind kind = FigureKind::lines;
  FigureAxis x, y;  // of bars, x is the axis of values; of heat and network, y has the unit of cells and loads
  std::vector<std::string> categories = {};  // of bars, heat, spans and network
  std::vector<FigureSeries> series = {};
  std::string cells = {};  // of heat and network: what a cell or a load says
};

// A width of 640 and a height that fits; text stays text.
[[nodiscard]] std::string figure_svg(const Figure& figure);

// A table for gnuplot, tabs between columns, and the script that makes NAME.pdf of NAME.dat beside it.
[[nodiscard]] std::string figure_data(const Figure& figure);
[[nodiscard]] std::string figure_gnuplot(const Figure& figure);

}  // namespace weft
