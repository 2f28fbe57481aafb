// Strong types for time, sizes and rates. Simulated time is a whole number of femtoseconds in 64 bits: it reaches 2.5
// hours, and a clock period rounded to 1 fs is off by less than 1e-6, so rates add up without drift.
// GB is 10^9 bytes and GiB 2^30, as in the field's data sheets.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace weft {

// 128 bits, so that bytes * 10^15 and cycles * 10^15 do not overflow; a GCC and Clang extension.
__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

// A whole number of one unit. Tags keep different units from mixing; count() is the only way out.
template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(std::int64_t count) : count_(count) {}
  [[nodiscard]] constexpr std::int64_t count() const { return count_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.count_ + b.count_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.count_ - b.count_); }
  friend constexpr Quantity operator*(Quantity a, std::int64_t n) { return Quantity(a.count_ * n); }
  friend constexpr Quantity operator*(std::int64_t n, Quantity a) { return Quantity(a.count_ * n); }
  friend constexpr std::int64_t operator/(Quantity a, Quantity b) { return a.count_ / b.count_; }

  [[nodiscard]] static constexpr Quantity max() { return Quantity(std::numeric_limits<std::int64_t>::max()); }

 private:
  std::int64_t count_ = 0;
};

// By value: std::max takes its arguments by reference, for which GCC 12 stores them and loads the one it chose.
template <class Tag>
[[nodiscard]] constexpr Quantity<Tag> later(Quantity<Tag> a, Quantity<Tag> b) {
  return a.count() < b.count() ? b : a;
}
template <class Tag>
[[nodiscard]] constexpr Quantity<Tag> earlier(Quantity<Tag> a, Quantity<Tag> b) {
  return b.count() < a.count() ? b : a;
}

using Time = Quantity<struct TimeTag>;            // femtoseconds
using Bytes = Quantity<struct BytesTag>;          // bytes
using Cycles = Quantity<struct CyclesTag>;        // cycles of the clock at hand
using Bandwidth = Quantity<struct BandwidthTag>;  // bytes a second
using Frequency = Quantity<struct FrequencyTag>;  // hertz

inline constexpr std::int64_t kFsPerSecond = 1'000'000'000'000'000;

constexpr Time nanoseconds(double ns) { return Time(static_cast<std::int64_t>(ns * 1e6 + 0.5)); }
constexpr Time microseconds(double us) { return Time(static_cast<std::int64_t>(us * 1e9 + 0.5)); }
constexpr Time seconds(double s) { return Time(static_cast<std::int64_t>(s * 1e15 + 0.5)); }
constexpr double to_seconds(Time t) { return static_cast<double>(t.count()) * 1e-15; }
constexpr double to_microseconds(Time t) { return static_cast<double>(t.count()) * 1e-9; }

constexpr Bandwidth gigabytes_per_second(double gb) { return Bandwidth(static_cast<std::int64_t>(gb * 1e9 + 0.5)); }
constexpr Frequency megahertz(double mhz) { return Frequency(static_cast<std::int64_t>(mhz * 1e6 + 0.5)); }

// The time `size` takes at `rate`, rounded up to the next femtosecond. rate > 0.
constexpr Time transfer_time(Bytes size, Bandwidth rate) {
  const auto scaled = static_cast<Uint128>(size.count()) * static_cast<Uint128>(kFsPerSecond);
  const auto divisor = static_cast<Uint128>(rate.count());
  return Time(static_cast<std::int64_t>((scaled + divisor - 1) / divisor));
}

// A clock as a value: edges are computed from the cycle number, never by adding a rounded period.
class Clock {
 public:
  constexpr explicit Clock(Frequency f) : hertz_(f.count()) {}
  // The time of edge n, rounded up to 1 fs.
  [[nodiscard]] constexpr Time edge(std::int64_t n) const {
    const auto scaled = static_cast<Int128>(n) * kFsPerSecond;
    return Time(static_cast<std::int64_t>((scaled + hertz_ - 1) / hertz_));
  }

 private:
  std::int64_t hertz_;
};

}  // namespace weft
