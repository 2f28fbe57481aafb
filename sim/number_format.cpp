#include "sim/number_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "sim/error.h"

namespace weft {

namespace {

struct Layout {
  const char* name;
  std::uint32_t bytes;
  int exponent_bits;
  int fraction_bits;
};

// By NumberFormat; int32 has neither exponent nor fraction.
constexpr std::array<Layout, 7> kLayouts{{{"fp32", 4, 8, 23},
                                          {"fp16", 2, 5, 10},
                                          {"bf16", 2, 8, 7},
                                          {"fp8_e4m3", 1, 4, 3},
                                          {"fp8_e5m2", 1, 5, 2},
                                          {"int32", 4, 0, 0},
                                          {"fp64", 8, 11, 52}}};

const Layout& layout_of(NumberFormat format) { return kLayouts.at(static_cast<std::size_t>(format)); }

int bias(const Layout& layout) { return (1 << (layout.exponent_bits - 1)) - 1; }

// Bit patterns without the sign.
std::uint64_t infinity_bits(const Layout& layout) {
  return ((std::uint64_t{1} << layout.exponent_bits) - 1) << layout.fraction_bits;
}
std::uint64_t nan_bits(NumberFormat format) {
  const Layout& layout = layout_of(format);
  if (format == NumberFormat::fp8_e4m3) return 0x7F;
  return infinity_bits(layout) | std::uint64_t{1} << (layout.fraction_bits - 1);
}
std::uint64_t largest_bits(NumberFormat format) {
  return format == NumberFormat::fp8_e4m3 ? 0x7E : infinity_bits(layout_of(format)) - 1;
}
// What overflows becomes this.
std::uint64_t overflow_bits(NumberFormat format, Overflow overflow) {
  if (overflow == Overflow::saturate) return largest_bits(format);
  return format == NumberFormat::fp8_e4m3 ? nan_bits(format) : infinity_bits(layout_of(format));
}

// The exponent of the last place of a number of this size.
int last_place(const Layout& layout, double magnitude) {
  const int exponent = magnitude == 0 ? 1 - bias(layout) : std::ilogb(magnitude);
  return std::max(exponent, 1 - bias(layout)) - layout.fraction_bits;
}

std::uint64_t encode_magnitude(NumberFormat format, double magnitude, Overflow overflow) {
  const Layout& layout = layout_of(format);
  if (std::isinf(magnitude)) return overflow_bits(format, overflow);
  const int place = last_place(layout, magnitude);
  // A significand that rounds up to the next power of two carries into the exponent, as one of a denormal does.
  const auto significand = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(magnitude, -place)));
  const int exponent = place + layout.fraction_bits + bias(layout) - 1;  // the field, less the leading bit
  const std::uint64_t bits = (static_cast<std::uint64_t>(exponent) << layout.fraction_bits) + significand;
  return bits > largest_bits(format) ? overflow_bits(format, overflow) : bits;
}

double decode_magnitude(NumberFormat format, std::uint64_t bits) {
  const Layout& layout = layout_of(format);
  if (bits > largest_bits(format)) {
    const bool infinite = format != NumberFormat::fp8_e4m3 && bits == infinity_bits(layout);
    return infinite ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  const std::uint64_t leading = std::uint64_t{1} << layout.fraction_bits;
  const auto field = static_cast<int>(bits >> layout.fraction_bits);
  const std::uint64_t significand = (bits & (leading - 1)) | (field == 0 ? 0 : leading);
  return std::ldexp(static_cast<double>(significand), std::max(field, 1) - bias(layout) - layout.fraction_bits);
}

}  // namespace

const char* to_string(NumberFormat format) { return layout_of(format).name; }
std::uint32_t bytes_of(NumberFormat format) { return layout_of(format).bytes; }
bool is_float(NumberFormat format) { return format != NumberFormat::int32; }

double decode(NumberFormat format, std::uint64_t bits) {
  switch (format) {
    case NumberFormat::fp64:
      return std::bit_cast<double>(bits);
    case NumberFormat::fp32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case NumberFormat::int32:
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
    default:
      break;
  }
  const std::uint64_t sign = std::uint64_t{1} << (8 * bytes_of(format) - 1);
  const double magnitude = decode_magnitude(format, bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

std::uint64_t encode(NumberFormat format, double value, Overflow overflow) {
  if (format == NumberFormat::int32) {
    WEFT_CHECK(std::abs(value) < 9e15, "an integer that a double does not hold");
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
  }
  if (std::isnan(value)) return nan_bits(format);
  if (format == NumberFormat::fp64) return std::bit_cast<std::uint64_t>(value);
  if (format == NumberFormat::fp32 && overflow == Overflow::ieee) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  }
  const std::uint64_t sign = std::signbit(value) ? std::uint64_t{1} << (8 * bytes_of(format) - 1) : 0;
  return sign | encode_magnitude(format, std::abs(value), overflow);
}

double rounded(NumberFormat format, double value, Overflow overflow) {
  if (format == NumberFormat::fp64) return value;
  if (format == NumberFormat::fp32 && overflow == Overflow::ieee) return static_cast<float>(value);
  return decode(format, encode(format, value, overflow));
}

double largest(NumberFormat format) { return decode_magnitude(format, largest_bits(format)); }

double smallest_denormal(NumberFormat format) { return decode_magnitude(format, 1); }

double unit_roundoff(NumberFormat format) { return std::ldexp(0.5, -layout_of(format).fraction_bits); }

double ulp(NumberFormat format, double value) {
  return std::ldexp(1.0, last_place(layout_of(format), std::abs(value)));
}

}  // namespace weft
