#include "cli/report/axis_scale.h"

#include <algorithm>
#include <cmath>

namespace weft {

AxisScale::AxisScale(double least, double most, bool log, double from, double to)
    : log_(log && least > 0), from_(from), to_(to) {
  low_ = log_ ? std::log10(least) : std::min(0.0, least);
  high_ = log_ ? std::log10(most) : most;
  if (!(high_ > low_)) high_ = low_ + 1;
  if (log_) {  // marks at the ends stay whole
    const double margin = 0.03 * (high_ - low_);
    low_ -= margin;
    high_ += margin;
  }
}

double AxisScale::operator()(double value) const {
  const double v = log_ ? std::log10(std::max(value, 1e-300)) : value;
  return from_ + (to_ - from_) * (v - low_) / (high_ - low_);
}

std::vector<double> AxisScale::ticks() const {
  std::vector<double> out;
  if (!log_) {
    const double rough = (high_ - low_) / 5, power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {5.0, 2.0, 1.0}) step = factor * power >= rough ? factor * power : step;
    const auto last = static_cast<long>(std::floor(high_ / step + 1e-9));
    for (auto k = static_cast<long>(std::ceil(low_ / step)); k <= last; ++k) {
      out.push_back(static_cast<double>(k) * step);
    }
    return out;
  }
  const bool fine = high_ - low_ < 2.5;  // decades with room for 2 and 5 between them
  const int every = std::max(1, static_cast<int>(std::ceil((high_ - low_) / 7)));
  for (int power = static_cast<int>(std::floor(low_)); power <= high_; power += every) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10, power), at = std::log10(value);
      if ((factor == 1.0 || fine) && at >= low_ - 1e-9 && at <= high_ + 1e-9) out.push_back(value);
    }
  }
  return out;
}

}  // namespace weft
