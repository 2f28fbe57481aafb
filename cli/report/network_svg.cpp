#include <algorithm>
#include <cmath>

#include "cli/report/figure_colors.h"
#include "cli/report/svg_canvas.h"

namespace weft {

namespace {

constexpr double kTop = 42, kHeight = 300, kSide = 14, kNodeHeight = 17;
constexpr std::size_t kMostNames = 80;  // in a drawing that is still readable

}  // namespace

std::string network_svg(const Figure& figure) {
  const FigureSeries &nodes = figure.series.at(0), &links = figure.series.at(1);
  double most = 0;
  for (const double load : links.z) most = std::max(most, load);
  const auto share = [&](double load) { return most > 0 ? load / most : 0; };
  const auto x = [&](double at) { return kSide + at * (kSvgWidth - 2 * kSide); };
  const auto y = [&](double at) { return kTop + 12 + (1 - at) * (kHeight - 24); };
  // Half of the way to the nearest node beside it.
  double half = 38;
  for (std::size_t a = 0; a < nodes.x.size(); ++a) {
    for (std::size_t b = 0; b < a && nodes.x.size() <= kMostNames; ++b) {
      if (std::fabs(y(nodes.y[a]) - y(nodes.y[b])) < kNodeHeight + 2) {
        half = std::min(half, 0.46 * std::fabs(x(nodes.x[a]) - x(nodes.x[b])));
      }
    }
  }

  SvgCanvas canvas;
  canvas.label(kSide, 18, figure.title, "start", "font-weight=\"bold\"");
  std::vector<std::size_t> order(links.z.size());  // the fullest on top
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return links.z[a] < links.z[b]; });
  for (const std::size_t i : order) {
    const auto a = static_cast<std::size_t>(links.x[i]), b = static_cast<std::size_t>(links.y[i]);
    canvas.add(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{:.1f}\"/>\n",
        x(nodes.x[a]), y(nodes.y[a]), x(nodes.x[b]), y(nodes.y[b]), figure_shade(share(links.z[i])),
        (order.size() > 300 ? 0.5 : 1) * (1 + 2.5 * share(links.z[i])));
  }
  for (std::size_t i = 0; i < nodes.x.size(); ++i) {
    const double cx = x(nodes.x[i]), cy = y(nodes.y[i]);
    if (nodes.x.size() > kMostNames || half < 6) {
      canvas.add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\" fill=\"#444444\"/>\n", cx, cy);
      continue;
    }
    canvas.add(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" fill=\"#f2f5f8\" "
        "stroke=\"#888888\"/>\n",
        cx - half, cy - kNodeHeight / 2, 2 * half, kNodeHeight);
    std::string name = figure.categories[i];
    if (kSvgLetter * static_cast<double>(name.size()) > 2 * half) {
      name.erase(0, std::min(name.size(), name.find_first_of("0123456789")));
    }
    canvas.label(cx, cy + 4, name, "middle");
  }
  const double key = kTop + kHeight + 16;
  for (int i = 0; i < 50; ++i) {
    canvas.add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"3\" height=\"10\" fill=\"{}\"/>\n", kSide + 3 * i, key,
               figure_shade(i / 49.0));
  }
  canvas.label(kSide + 158, key + 9, "0 to " + figure_value_text(most, figure.y.unit) + ", " + figure.cells, "start");
  return canvas.document(key + 24, figure.title);
}

}  // namespace weft
