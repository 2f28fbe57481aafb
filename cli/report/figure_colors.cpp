#include "cli/report/figure_colors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weft {

const std::array<const char*, 8>& figure_colors() {
  static constexpr std::array kColors{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000", "#8a6bb8"};
  return kColors;
}

std::string figure_shade(double t) {
  static constexpr std::array<std::array<int, 3>, 5> kStops{
      {{253, 231, 37}, {94, 201, 98}, {33, 145, 140}, {59, 82, 139}, {68, 1, 84}}};
  const double at = std::clamp(t, 0.0, 1.0) * (kStops.size() - 1);
  const auto low = std::min<std::size_t>(kStops.size() - 2, static_cast<std::size_t>(at));
  std::array<int, 3> mixed{};
  for (std::size_t c = 0; c < 3; ++c) {
    const double from = kStops[low][c], to = kStops[low + 1][c];
    mixed[c] = static_cast<int>(std::lround(from + (to - from) * (at - static_cast<double>(low))));
  }
  return fmt::format("rgb({},{},{})", mixed[0], mixed[1], mixed[2]);
}

}  // namespace weft
