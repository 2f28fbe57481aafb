// SVG as figures need it: shapes, text that stays text, values as people read them.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

#include "cli/report/figure.h"

namespace weft {

constexpr double kSvgWidth = 640, kSvgLetter = 6.3;  // pixels; of a letter its mean width at font size 11

// "1.5 ms", "2 MiB": short enough for a tick.
[[nodiscard]] std::string figure_value_text(double value, FigureUnit unit);

class SvgCanvas {
 public:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<Values>(values)...);
  }
  void label(double x, double y, const std::string& text, const char* anchor, const std::string& more = "");
  void line(double x1, double y1, double x2, double y2, const char* color);
  // All that was drawn, on white.
  [[nodiscard]] std::string document(double height, const std::string& title) const;

 private:
  std::string body_;
};

// A figure of FigureKind::network.
[[nodiscard]] std::string network_svg(const Figure& figure);

}  // namespace weft
