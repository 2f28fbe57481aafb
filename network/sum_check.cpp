#include "network/sum_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace weft {

namespace {
// What this file computes bounds with is rounded, too.
constexpr double kSlack = 1 + 1e-12;

double largest_before_overflow(NumberFormat format) { return largest(format) + ulp(format, largest(format)) / 2; }
}  // namespace

double exact_sum(std::span<const double> terms) {
  std::vector<double> parts;  // that do not overlap, ascending
  for (double x : terms) {
    std::size_t kept = 0;
    for (double y : parts) {
      if (std::abs(x) < std::abs(y)) std::swap(x, y);
      const double high = x + y;
      const double low = y - (high - x);
      if (low != 0) parts[kept++] = low;
      x = high;
    }
    parts.resize(kept);
    parts.push_back(x);
  }
  double sum = parts.empty() ? 0 : parts.back();
  for (std::size_t i = parts.size(); i-- > 1;) {
    // What is left decides only where the two above it tie.
    const double high = sum;
    sum = high + parts[i - 1];
    const double low = parts[i - 1] - (sum - high);
    if (low == 0) continue;
    if (i > 1 && (low < 0) == (parts[i - 2] < 0) && parts[i - 2] != 0) {
      const double away = sum + 2 * low;
      if (away - sum == 2 * low) sum = away;
    }
    break;
  }
  return sum;
}

// Of terms that are not all finite: one NaN, or infinities of both signs, make NaN, else they win.
bool SumCheck::special_is_right(std::span<const double> terms, double result) const {
  bool plus = false;
  bool minus = false;
  bool nan = false;
  for (const double term : terms) {
    nan = nan || std::isnan(term);
    if (std::isinf(term)) (term > 0 ? plus : minus) = true;
  }
  if (nan || (plus && minus)) return std::isnan(result);
  const double infinite = rounded(rules_.operand, plus ? INFINITY : -INFINITY, rules_.overflow);
  return result == infinite || (std::isnan(infinite) && std::isnan(result));
}

// Whether a finite sum may come out as an overflow: itself, or a partial sum on the way.
bool SumCheck::may_overflow(double exact, double magnitude, double bound) const {
  return std::abs(exact) + bound >= largest_before_overflow(rules_.operand) / kSlack ||
         magnitude >= largest_before_overflow(rules_.accumulator) / kSlack;
}

void SumCheck::add_finite(std::span<const double> terms, double exact, double magnitude, double result) {
  std::vector<double> difference(terms.begin(), terms.end());
  difference.push_back(-result);
  const double error = std::abs(exact_sum(difference));
  double bound = static_cast<double>(terms.size() - 1) * rules_.roundoff * magnitude;
  if (rules_.accumulator != rules_.operand) bound += ulp(rules_.operand, std::abs(exact) + bound) / 2;
  const bool overflow = may_overflow(exact, magnitude, bound);
  if (!std::isfinite(result)) {
    wrong += overflow ? 0 : 1;
    return;
  }
  // Saturating, the largest number stands for all that is beyond it, also on the way.
  const bool on_the_way = magnitude >= largest_before_overflow(rules_.accumulator) / kSlack;
  if (rules_.overflow == Overflow::saturate && overflow &&
      (on_the_way || std::abs(result) == largest(rules_.operand))) {
    return;
  }
  if (error > bound * kSlack) ++wrong;
  max_absolute = std::max(max_absolute, error);
  if (exact != 0) {
    max_relative = std::max(max_relative, error / std::abs(exact));
    max_ulps = std::max(max_ulps, error / ulp(rules_.operand, exact));
  }
  if (bound > 0) max_bound_share = std::max(max_bound_share, error / bound);
}

void SumCheck::add(std::span<const double> terms, double result) {
  ++elements;
  if (!std::isfinite(result)) ++not_finite;
  if (!std::all_of(terms.begin(), terms.end(), [](double x) { return std::isfinite(x); })) {
    const bool right = special_is_right(terms, result);
    (right ? correctly_rounded : wrong) += 1;
    return;
  }
  double exact = exact_sum(terms);
  if (!is_float(rules_.operand)) {  // modulo 2^32, exactly
    exact = rounded(rules_.operand, exact);
    (exact == result ? correctly_rounded : wrong) += 1;
    max_absolute = std::max(max_absolute, std::abs(exact - result));
    return;
  }
  const double nearest = rounded(rules_.operand, exact, rules_.overflow);
  if (nearest == result || (std::isnan(nearest) && std::isnan(result))) ++correctly_rounded;
  double magnitude = 0;
  for (const double term : terms) magnitude += std::abs(term);
  add_finite(terms, exact, magnitude, result);
}

}  // namespace weft
