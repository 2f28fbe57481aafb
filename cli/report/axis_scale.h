// An axis of a figure: where values lie on it, and its ticks.
#pragma once

#include <vector>

namespace weft {

class AxisScale {
 public:
  // From `least` at `from` to `most` at `to` (pixels); linear ones begin at zero or below. Logarithmic only where all
  // is above zero.
  AxisScale(double least, double most, bool log, double from, double to);

  [[nodiscard]] double operator()(double value) const;
  // At 1, 2 or 5 times a power of ten.
  [[nodiscard]] std::vector<double> ticks() const;

 private:
  bool log_;
  double from_, to_, low_ = 0, high_ = 1;
};

}  // namespace weft
