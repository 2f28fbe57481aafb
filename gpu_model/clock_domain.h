// Time inside a GPU: 2^-16 of a cycle of its clock, as a plain integer for the hot paths. A service time rounded to it
// is off by less than 2e-5; conversions from and to femtoseconds are one 128-bit product each.
#pragma once

#include <cstdint>

#include "sim/units.h"

namespace weft {

using SubCycle = std::int64_t;  // 2^-16 cycles
inline constexpr int kSubCycleShift = 16;
inline constexpr SubCycle kCycle = SubCycle{1} << kSubCycleShift;

constexpr SubCycle cycles(std::int64_t n) { return n << kSubCycleShift; }
constexpr SubCycle cycles(double n) { return static_cast<SubCycle>(n * static_cast<double>(kCycle) + 0.5); }
// The tick of the event queue (a whole cycle) at or after t.
constexpr std::int64_t tick_at_or_after(SubCycle t) { return (t + kCycle - 1) >> kSubCycleShift; }

class ClockDomain {
 public:
  constexpr explicit ClockDomain(Frequency clock)
      : femtoseconds_(ratio(kFsPerSecond, clock.count(), kFractionBits - kSubCycleShift)),
        subcycles_(ratio(clock.count(), kFsPerSecond, kFractionBits + kSubCycleShift)) {}

  // Both round up, so that nothing happens before its cause.
  [[nodiscard]] constexpr Time to_time(SubCycle t) const { return Time(scale(t, femtoseconds_)); }
  [[nodiscard]] constexpr SubCycle to_subcycles(Time t) const { return scale(t.count(), subcycles_); }

 private:
  static constexpr int kFractionBits = 56;
  // Rounded down: the conversions round up, and a whole number of cycles stays one.
  static constexpr Int128 ratio(std::int64_t a, std::int64_t b, int shift) {
    return (static_cast<Int128>(a) << shift) / b;
  }
  static constexpr std::int64_t scale(std::int64_t t, Int128 factor) {
    const Int128 product = t * factor;
    return static_cast<std::int64_t>((product + (Int128{1} << kFractionBits) - 1) >> kFractionBits);
  }

  Int128 femtoseconds_;  // of a subcycle, 56 fraction bits
  Int128 subcycles_;     // in a femtosecond, 56 fraction bits
};

// By how much longer everything in the domain of the lowered clock takes.
class Stretch {
 public:
  Stretch() = default;
  // `share`: of the full clock, above 0 and at most 1.
  explicit Stretch(double share) : factor_(static_cast<std::int64_t>(kOne / share + 0.5)) {}
  [[nodiscard]] SubCycle operator()(SubCycle time) const {
    return static_cast<SubCycle>(static_cast<Int128>(time) * factor_ >> kShift);
  }
  // Of a time at this clock, what the full clock would have saved.
  [[nodiscard]] double lost(SubCycle time) const {
    return static_cast<double>(time) * (1 - kOne / static_cast<double>(factor_));
  }

 private:
  static constexpr int kShift = 16;
  static constexpr double kOne = 1 << kShift;
  std::int64_t factor_ = 1 << kShift;
};

}  // namespace weft
