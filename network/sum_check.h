// How good the sums of a reduction are, against exact ones: errors, and whether each is what floating-point arithmetic
// allows it to be. The bound of a sum of n numbers in any order is (n - 1) u sum|x| (Jeannerod and Rump, "Improved
// error bounds for inner products in floating-point arithmetic", SIAM J. Matrix Anal. Appl. 34, 2013), and half an ulp
// more where the sum is rounded once more, to a narrower type.
#pragma once

#include <cstdint>
#include <span>

#include "sim/number_format.h"

namespace weft {

// The sum of finite numbers, rounded once to a double (Shewchuk, "Adaptive precision floating-point arithmetic", 1997).
// No partial sum may overflow.
[[nodiscard]] double exact_sum(std::span<const double> terms);

struct SumRules {
  NumberFormat operand = NumberFormat::fp32;
  NumberFormat accumulator = NumberFormat::fp32;        // each addition is rounded to it
  double roundoff = unit_roundoff(NumberFormat::fp32);  // relative, of one addition
  Overflow overflow = Overflow::ieee;
};

class SumCheck {
 public:
  explicit SumCheck(const SumRules& rules) : rules_(rules) {}

  // One element: what each rank gave, and what came out. Terms and result are of the operands' type.
  void add(std::span<const double> terms, double result);

  std::int64_t elements = 0;
  std::int64_t not_finite = 0;         // results that are infinite or NaN
  std::int64_t correctly_rounded = 0;  // the exact sum, rounded once
  std::int64_t wrong = 0;              // beyond the bound, or not what IEEE 754 says of infinities and NaN
  // Of finite results:
  double max_absolute = 0;
  double max_relative = 0;     // this and the next: where the exact sum is not 0
  double max_ulps = 0;         // of the operands' type at the exact sum
  double max_bound_share = 0;  // of the bound, where it is not 0

 private:
  [[nodiscard]] bool special_is_right(std::span<const double> terms, double result) const;
  [[nodiscard]] bool may_overflow(double exact, double magnitude, double bound) const;
  void add_finite(std::span<const double> terms, double exact, double magnitude, double result);

  SumRules rules_;
};

}  // namespace weft
