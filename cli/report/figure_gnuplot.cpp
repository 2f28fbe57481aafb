#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/report/figure.h"
#include "cli/report/figure_colors.h"

namespace weft {

namespace {

// Quoted for gnuplot; in data, a tab or a line break would end the field.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? '\'' : (static_cast<unsigned char>(c) < 0x20 || c == '\\' ? ' ' : c);
  return out + "\"";
}

const char* tick_format(FigureUnit unit) {
  switch (unit) {
    case FigureUnit::seconds:
      return "%.1s %cs";
    case FigureUnit::bytes:
      return "%.1s %cB";
    case FigureUnit::bandwidth:
      return "%g GB/s";
    case FigureUnit::share:
    case FigureUnit::number:
      break;
  }
  return "%g";
}

// "$2+$3+$4": the first `count` columns of values.
std::string sum_of(std::size_t count) {
  std::string sum = "0";
  for (std::size_t i = 0; i < count; ++i) sum += fmt::format("+${}", i + 2);
  return sum;
}

// Viridis from its light end, as the SVG has it.
constexpr const char* kPalette =
    "set palette defined (0 '#fde725', 1 '#5ec962', 2 '#21918c', 3 '#3b528b', 4 '#440154')";

bool in_columns(FigureKind kind) { return kind == FigureKind::bars || kind == FigureKind::areas; }

std::string plot_of(const Figure& figure, std::size_t s) {
  const std::string title = quoted(figure.series[s].name);
  switch (figure.kind) {
    case FigureKind::bars:
      return fmt::format("using ({0}):0:({0}):({1}):($0-0.35):($0+0.35):ytic(1) with boxxyerror title {2}", sum_of(s),
                         sum_of(s + 1), title);
    case FigureKind::areas: {  // the highest first, so that the others cover it
      const std::size_t top = figure.series.size() - s;
      return fmt::format("using 1:({}) with fillsteps linetype {} title {}", sum_of(top), top,
                         quoted(figure.series[top - 1].name));
    }
    case FigureKind::heat:
      return "matrix rowheaders columnheaders with image notitle";
    case FigureKind::spans:
      return fmt::format("index {} using 1:3:1:2:($3-0.35):($3+0.35) with boxxyerror linecolor rgb {} title {}", s,
                         quoted(figure.series[s].color), title);
    case FigureKind::network:  // its nodes, over its links
      return s == 1 ? "index 0 using 1:2:3 with labels point pointtype 7 offset 0,0.8 notitle"
                    : "index 1 using 1:2:($3-$1):($4-$2):5 with vectors nohead linewidth 2 linecolor palette notitle";
    case FigureKind::steps:
      return fmt::format("index {} using 1:2 with steps title {}", s, title);
    case FigureKind::points:
      return fmt::format("index {} using 1:2 with points pointtype {} title {}", s, s + 4, title);
    case FigureKind::lines:
      break;
  }
  return fmt::format("index {0} using 1:2 with linespoints dashtype {1} pointtype {2} title {3}", s, s + 1, s + 4,
                     title);
}

std::string network_data(const Figure& figure) {
  std::string data = "# " + figure.title + "\n# x\ty\tnode\n";
  const FigureSeries &nodes = figure.series.at(0), &links = figure.series.at(1);
  for (std::size_t i = 0; i < nodes.x.size(); ++i) {
    fmt::format_to(std::back_inserter(data), "{}\t{}\t{}\n", nodes.x[i], nodes.y[i], quoted(figure.categories[i]));
  }
  data += "\n\n# x and y of both ends\t" + figure.cells + "\n";
  for (std::size_t i = 0; i < links.z.size(); ++i) {
    const auto a = static_cast<std::size_t>(links.x[i]), b = static_cast<std::size_t>(links.y[i]);
    fmt::format_to(std::back_inserter(data), "{}\t{}\t{}\t{}\t{}\n", nodes.x[a], nodes.y[a], nodes.x[b], nodes.y[b],
                   links.z[i]);
  }
  return data;
}

// Lanes by name, the first on top.
std::string lanes_of(const Figure& figure) {
  std::string lanes = "set yrange [:] reverse\nset ytics noenhanced (";
  for (std::size_t i = 0; i < figure.categories.size(); ++i) {
    lanes += fmt::format("{}{} {}", i == 0 ? "" : ", ", quoted(figure.categories[i]), i);
  }
  return lanes + ")\n";
}

}  // namespace

std::string figure_data(const Figure& figure) {
  if (figure.kind == FigureKind::network) return network_data(figure);
  std::string data = "# " + figure.title + "\n";
  const auto number = [&](double value) { fmt::format_to(std::back_inserter(data), "\t{}", value); };
  if (figure.kind == FigureKind::heat) {
    data = quoted(figure.y.label + " by " + figure.x.label);
    for (const std::string& column : figure.categories) data += "\t" + quoted(column);
    data += "\n";
    for (const FigureSeries& series : figure.series) {
      data += quoted(series.name);
      for (const double value : series.y) number(value);
      data += "\n";
    }
  } else if (in_columns(figure.kind)) {
    data += "# " + (figure.kind == FigureKind::bars ? "" : figure.x.label);
    for (const FigureSeries& series : figure.series) data += "\t" + quoted(series.name);
    data += "\n";
    const std::size_t rows = figure.kind == FigureKind::bars ? figure.categories.size()
                                                             : (figure.series.empty() ? 0 : figure.series[0].x.size());
    for (std::size_t i = 0; i < rows; ++i) {
      data += figure.kind == FigureKind::bars ? quoted(figure.categories[i]) : fmt::format("{}", figure.series[0].x[i]);
      for (const FigureSeries& series : figure.series) number(series.y[i]);
      data += "\n";
    }
  } else {
    for (const FigureSeries& series : figure.series) {
      data += "# " + series.name + "\n";
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        fmt::format_to(std::back_inserter(data), "{}\t{}", series.x[i], series.y[i]);
        if (!series.z.empty()) number(series.z[i]);
        data += "\n";
      }
      data += "\n\n";
    }
  }
  return data;
}

std::string figure_gnuplot(const Figure& figure) {
  std::string script = fmt::format(
      "# gnuplot {0}.gp makes {0}.pdf of {0}.dat\nset terminal pdfcairo size 12cm,8cm font \"Sans,9\"\n"
      "set output \"{0}.pdf\"\nset datafile separator \"\\t\"\nset title {1} noenhanced\nset key below noenhanced\n"
      "set xlabel {2} noenhanced\nset style fill solid noborder\nset grid\n",
      figure.name, quoted(figure.title), quoted(figure.x.label));
  for (std::size_t i = 0; i < figure_colors().size(); ++i) {
    script += fmt::format("set linetype {} linecolor rgb \"{}\"\n", i + 1, figure_colors()[i]);
  }
  if (figure.kind != FigureKind::heat) script += fmt::format("set format x \"{}\"\n", tick_format(figure.x.unit));
  if (figure.kind == FigureKind::bars) script += "set yrange [:] reverse\nset ytics noenhanced\nunset grid\n";
  if (figure.kind == FigureKind::heat) {
    script += fmt::format(
        "set cblabel {} noenhanced\nset format cb \"{}\"\nset xtics noenhanced rotate by -40\nset ytics noenhanced\n"
        "set yrange [:] reverse\n{}\nunset grid\n",
        quoted(figure.cells), tick_format(figure.y.unit), kPalette);
  } else if (figure.kind == FigureKind::spans) {
    script += lanes_of(figure);
  } else if (figure.kind == FigureKind::network) {
    script += fmt::format("unset border\nunset tics\nunset grid\nunset xlabel\nset cblabel {} noenhanced\n{}\n",
                          quoted(figure.cells), kPalette);
  } else if (figure.kind != FigureKind::bars) {
    script += fmt::format("set ylabel {} noenhanced\nset format y \"{}\"\n", quoted(figure.y.label),
                          tick_format(figure.y.unit));
    if (!figure.y.log) script += "set yrange [0:]\n";
  }
  if (figure.kind == FigureKind::heat && figure.y.log) script += "set logscale cb\n";
  if (figure.x.log && figure.kind != FigureKind::heat) script += "set logscale x\n";
  if (figure.y.log && figure.kind != FigureKind::heat) script += "set logscale y\n";
  script += "plot ";
  const std::size_t plots = figure.kind == FigureKind::heat ? 1 : figure.series.size();
  for (std::size_t s = 0; s < plots; ++s) {
    script += fmt::format("{}{} {}", s == 0 ? "" : ", \\\n     ", quoted(figure.name + ".dat"), plot_of(figure, s));
  }
  return script + "\n";
}

}  // namespace weft
