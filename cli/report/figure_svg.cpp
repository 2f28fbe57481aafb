#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cli/report/axis_scale.h"
#include "cli/report/figure.h"
#include "cli/report/figure_colors.h"
#include "cli/report/svg_canvas.h"

namespace weft {

namespace {

constexpr double kTop = 42, kRight = 16, kPlotHeight = 280, kBar = 26;  // pixels

// Dashes tell lines apart without colour.
constexpr std::array<const char*, 8> kDashes{"", "7 3", "2 3", "9 3 2 3", "5 5", "1 2", "12 4", "3 3"};
struct Look {
  const char* color;
  const char* dash;
};
Look look(std::size_t i) { return {figure_colors()[i % figure_colors().size()], kDashes[i % kDashes.size()]}; }

class Drawing : private SvgCanvas {
 public:
  explicit Drawing(const Figure& figure) : figure_(figure) {
    left_ = 62;
    if (figure.kind == FigureKind::bars || figure.kind == FigureKind::heat || figure.kind == FigureKind::spans) {
      std::size_t longest = 0;
      for (const auto& name : rows()) longest = std::max(longest, name.size());
      left_ = std::clamp(kSvgLetter * static_cast<double>(longest) + 18, 62.0, 300.0);
      height_ = kBar * static_cast<double>(std::max<std::size_t>(1, rows().size()));
    }
  }

  std::string render() {
    switch (figure_.kind) {
      case FigureKind::bars:
        bars();
        break;
      case FigureKind::heat:
        heat();
        break;
      case FigureKind::spans:
        spans();
        break;
      default:
        curves();
    }
    const double bottom = kTop + height_ + 40;
    label(left_ + plot_width() / 2, bottom - 6, figure_.x.label, "middle");
    const double end = figure_.kind == FigureKind::heat ? heat_key(bottom + 8) : legend(bottom + 8);
    label(left_, 18, figure_.title, "start", "font-weight=\"bold\"");
    return document(end, figure_.title);
  }

 private:
  [[nodiscard]] std::vector<std::string> rows() const {
    if (figure_.kind != FigureKind::heat) return figure_.categories;
    std::vector<std::string> names;
    for (const FigureSeries& series : figure_.series) names.push_back(series.name);
    return names;
  }
  [[nodiscard]] double plot_width() const { return kSvgWidth - left_ - kRight; }

  [[nodiscard]] const char* color_of(std::size_t s) const {
    const std::string& own = figure_.series[s].color;
    return own.empty() ? look(s).color : own.c_str();
  }

  void x_axis(const AxisScale& x) {
    for (const double tick : x.ticks()) {
      line(x(tick), kTop, x(tick), kTop + height_, "#e4e4e4");
      label(x(tick), kTop + height_ + 14, figure_value_text(tick, figure_.x.unit), "middle");
    }
    line(left_, kTop + height_, left_ + plot_width(), kTop + height_, "#666666");
  }

  void curves() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    double x0 = kInfinity, x1 = -kInfinity, y0 = kInfinity, y1 = -kInfinity;
    std::vector<double> total;  // of areas
    for (const FigureSeries& series : figure_.series) {
      total.resize(std::max(total.size(), series.y.size()));
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        total[i] += series.y[i];
        const double y = figure_.kind == FigureKind::areas ? total[i] : series.y[i];
        x0 = std::min(x0, series.x[i]), x1 = std::max(x1, series.x[i]);
        y0 = std::min(y0, y), y1 = std::max(y1, y);
      }
    }
    if (!(x0 <= x1)) return;
    const AxisScale x(x0, x1, figure_.x.log, left_, left_ + plot_width());
    const AxisScale y(y0, figure_.y.log ? y1 : 1.05 * y1, figure_.y.log, kTop + height_, kTop);
    x_axis(x);
    for (const double tick : y.ticks()) {
      line(left_, y(tick), left_ + plot_width(), y(tick), "#e4e4e4");
      label(left_ - 6, y(tick) + 4, figure_value_text(tick, figure_.y.unit), "end");
    }
    line(left_, kTop, left_, kTop + height_, "#666666");
    label(left_, kTop - 5, figure_.y.label, "start", "fill=\"#555555\"");
    std::vector<double> below(total.size(), 0);
    for (std::size_t s = 0; s < figure_.series.size(); ++s) curve(s, x, y, below);
  }

  void curve(std::size_t s, const AxisScale& x, const AxisScale& y, std::vector<double>& below) {
    const FigureSeries& series = figure_.series[s];
    const bool areas = figure_.kind == FigureKind::areas, holds = areas || figure_.kind == FigureKind::steps;
    std::string path, back;
    double base_before = 0;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const double base = areas ? below[i] : 0;
      if (holds && i > 0 && i + 1 < series.x.size() && series.y[i] == series.y[i - 1] && base == base_before) {
        below[i] += series.y[i];  // nothing to draw until it changes
        continue;
      }
      const double px = x(series.x[i]), py = y(base + series.y[i]);
      if (holds && i > 0) path += fmt::format("H{:.1f}", px);
      path += fmt::format("{}{:.1f},{:.1f}", i == 0 ? "M" : "L", px, py);
      if (areas) {
        back =
            fmt::format("L{:.1f},{:.1f}", px, y(base)) + (i > 0 ? fmt::format("V{:.1f}", y(base_before)) : "") + back;
        below[i] += series.y[i];
      }
      base_before = base;
      if (!holds) mark(s, px, py);
    }
    if (areas) {
      add("<path d=\"{}{}Z\" fill=\"{}\"/>\n", path, back, look(s).color);
    } else if (figure_.kind != FigureKind::points) {
      add("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" stroke-dasharray=\"{}\"/>\n", path,
          look(s).color, look(s).dash);
    }
  }

  // Marks of series differ in form, too.
  void mark(std::size_t s, double x, double y) {
    static constexpr std::array<const char*, 4> kForms{"m-3,0a3,3 0 1 0 6,0a3,3 0 1 0 -6,0",
                                                       "m0,-4.4l4.4,4.4l-4.4,4.4l-4.4,-4.4z", "m-3,-3h6v6h-6z",
                                                       "m0,-4l3.8,6.6h-7.6z"};
    add("<path d=\"M{:.1f},{:.1f}{}\" fill=\"{}\"/>\n", x, y, kForms[s % kForms.size()], look(s).color);
  }

  void bars() {
    double most = 0;
    for (std::size_t i = 0; i < figure_.categories.size(); ++i) {
      double sum = 0;
      for (const FigureSeries& series : figure_.series) sum += std::max(0.0, series.y[i]);
      most = std::max(most, sum);
    }
    const AxisScale x(0, most, false, left_, left_ + plot_width());
    x_axis(x);
    for (std::size_t i = 0; i < figure_.categories.size(); ++i) {
      const double top = kTop + kBar * static_cast<double>(i) + 4;
      row_name(i);
      double sum = 0;
      for (std::size_t s = 0; s < figure_.series.size(); ++s) {
        const double value = std::max(0.0, figure_.series[s].y[i]);
        add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x(sum), top,
            x(sum + value) - x(sum), kBar - 8, look(s).color);
        sum += value;
      }
    }
  }

  void spans() {
    double last = 0;
    for (const FigureSeries& series : figure_.series) {
      for (const double end : series.y) last = std::max(last, end);
    }
    const AxisScale x(0, last, false, left_, left_ + plot_width());
    x_axis(x);
    for (std::size_t i = 0; i < figure_.categories.size(); ++i) row_name(i);
    for (std::size_t s = 0; s < figure_.series.size(); ++s) {
      const FigureSeries& series = figure_.series[s];
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        add("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x(series.x[i]),
            kTop + kBar * series.z[i] + 3, std::max(0.15, x(series.y[i]) - x(series.x[i])), kBar - 6, color_of(s));
      }
    }
  }

  void row_name(std::size_t i) {
    const std::string name = rows()[i];
    const auto fit = static_cast<std::size_t>((left_ - 14) / kSvgLetter);
    label(left_ - 6, kTop + kBar * (static_cast<double>(i) + 0.5) + 4, name.size() > fit ? name.substr(0, fit) : name,
          "end");
  }

  void heat() {
    range();
    const double width = plot_width() / static_cast<double>(std::max<std::size_t>(1, figure_.categories.size()));
    for (std::size_t row = 0; row < figure_.series.size(); ++row) {
      row_name(row);
      for (std::size_t i = 0; i < figure_.series[row].y.size(); ++i) {
        const double value = figure_.series[row].y[i];
        if (!std::isfinite(value)) continue;
        const double x = left_ + width * static_cast<double>(i), y = kTop + kBar * static_cast<double>(row);
        const double t = share(value);
        add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x + 0.5, y + 0.5,
            width - 1, kBar - 1, figure_shade(t));
        const std::string text = figure_value_text(value, figure_.y.unit);
        if (kSvgLetter * static_cast<double>(text.size()) < width)
          label(x + width / 2, y + kBar / 2 + 4, text, "middle", t > 0.45 ? "fill=\"#ffffff\"" : "");
      }
    }
    const auto every = static_cast<std::size_t>(std::ceil(60 / width));
    for (std::size_t i = 0; i < figure_.categories.size(); i += every) {
      label(left_ + width * (static_cast<double>(i) + 0.5), kTop + height_ + 14, figure_.categories[i], "middle");
    }
    label(6, kTop - 5, figure_.y.label, "start", "fill=\"#555555\"");
  }
  void range() {
    least_ = std::numeric_limits<double>::infinity(), most_ = -least_;
    for (const FigureSeries& series : figure_.series) {
      for (const double value : series.y) {
        if (std::isfinite(value)) least_ = std::min(least_, value), most_ = std::max(most_, value);
      }
    }
  }
  [[nodiscard]] double share(double value) const {
    if (!(most_ > least_)) return 0.5;
    return figure_.y.log ? std::log(value / least_) / std::log(most_ / least_) : (value - least_) / (most_ - least_);
  }
  double heat_key(double y) {
    for (int i = 0; i < 50; ++i) {
      add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"3\" height=\"10\" fill=\"{}\"/>\n", left_ + 3 * i, y,
          figure_shade(i / 49.0));
    }
    label(left_ + 158, y + 9,
          fmt::format("{} to {}, {}", figure_value_text(least_, figure_.y.unit),
                      figure_value_text(most_, figure_.y.unit), figure_.cells),
          "start");
    return y + 24;
  }

  double legend(double y) {
    double x = left_;
    for (std::size_t s = 0; s < figure_.series.size(); ++s) {
      const double width = 34 + kSvgLetter * static_cast<double>(figure_.series[s].name.size());
      if (x > left_ && x + width > kSvgWidth) x = left_, y += 16;
      const bool drawn = figure_.kind == FigureKind::lines || figure_.kind == FigureKind::steps;
      if (drawn) {
        add("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"1.8\" "
            "stroke-dasharray=\"{}\"/>\n",
            x, y + 5, x + 22, y + 5, look(s).color, look(s).dash);
      }
      if (figure_.kind == FigureKind::lines || figure_.kind == FigureKind::points) {
        mark(s, x + 11, y + 5);
      } else if (!drawn) {
        add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n", x + 8, y, color_of(s));
      }
      label(x + 26, y + 9, figure_.series[s].name, "start");
      x += width;
    }
    return y + 24;
  }

  const Figure& figure_;
  double left_ = 62, height_ = kPlotHeight, least_ = 0, most_ = 0;
};

}  // namespace

std::string figure_svg(const Figure& figure) {
  return figure.kind == FigureKind::network ? network_svg(figure) : Drawing(figure).render();
}

}  // namespace weft
