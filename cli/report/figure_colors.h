// Colours of figures on white paper.
#pragma once

#include <array>
#include <string>

namespace weft {

// Of series 1, 2 and so on: Okabe and Ito's palette, told apart with every common form of colour blindness.
[[nodiscard]] const std::array<const char*, 8>& figure_colors();

// Viridis from its light end, t from 0 to 1: more is darker. "rgb(33,145,140)".
[[nodiscard]] std::string figure_shade(double t);

}  // namespace weft
