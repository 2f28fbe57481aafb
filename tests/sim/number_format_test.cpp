// Number formats: all values of the small ones, and rounding between them against other ways of finding the nearest.
#include "sim/number_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const std::vector<NumberFormat> kSmall{NumberFormat::fp16, NumberFormat::bf16, NumberFormat::fp8_e4m3,
                                       NumberFormat::fp8_e5m2};

// Non-negative finite values in the order of their bit patterns, which is ascending.
std::vector<double> finite_values(NumberFormat format) {
  std::vector<double> values;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << (8 * bytes_of(format) - 1); ++bits) {
    const double value = decode(format, bits);
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

TEST(NumberFormat, EveryPatternOfTheSmallFormatsSurvives) {
  for (const NumberFormat format : kSmall) {
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << (8 * bytes_of(format)); ++bits) {
      const double value = decode(format, bits);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode(format, encode(format, value)))) << to_string(format) << " " << bits;
      } else {
        EXPECT_EQ(encode(format, value), bits) << to_string(format);
      }
    }
  }
}

TEST(NumberFormat, LimitsAreThoseOfTheStandards) {
  // IEEE 754-2019 table 3.5; OFP8 table 1.
  EXPECT_EQ(largest(NumberFormat::fp16), 65504);
  EXPECT_EQ(largest(NumberFormat::fp8_e4m3), 448);
  EXPECT_EQ(largest(NumberFormat::fp8_e5m2), 57344);
  EXPECT_EQ(largest(NumberFormat::fp32), std::numeric_limits<float>::max());
  EXPECT_EQ(largest(NumberFormat::fp64), std::numeric_limits<double>::max());
  EXPECT_EQ(smallest_denormal(NumberFormat::fp16), std::ldexp(1, -24));
  EXPECT_EQ(smallest_denormal(NumberFormat::bf16), std::ldexp(1, -133));
  EXPECT_EQ(smallest_denormal(NumberFormat::fp8_e4m3), std::ldexp(1, -9));
  EXPECT_EQ(smallest_denormal(NumberFormat::fp8_e5m2), std::ldexp(1, -16));
  EXPECT_EQ(smallest_denormal(NumberFormat::fp32), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(unit_roundoff(NumberFormat::fp32), std::numeric_limits<float>::epsilon() / 2);
  EXPECT_EQ(unit_roundoff(NumberFormat::fp8_e4m3), 1.0 / 16);
}

TEST(NumberFormat, HalfAgreesWithTheCompilersOwn) {
  __extension__ typedef _Float16 Half;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = std::bit_cast<Half>(static_cast<std::uint16_t>(bits));
    const double value = decode(NumberFormat::fp16, bits);
    if (std::isnan(value)) continue;
    ASSERT_EQ(value, static_cast<double>(half)) << bits;
    const double above = decode(NumberFormat::fp16, bits + 1);
    if (!std::isfinite(value) || !std::isfinite(above)) continue;
    const double middle = (value + above) / 2;
    for (const double between : {middle, std::nextafter(middle, value), std::nextafter(middle, above)}) {
      ASSERT_EQ(encode(NumberFormat::fp16, between), std::bit_cast<std::uint16_t>(static_cast<Half>(between)));
    }
  }
}

TEST(NumberFormat, NearestOfNeighboursAndTiesToEven) {
  for (const NumberFormat format : kSmall) {
    const std::vector<double> values = finite_values(format);
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      const double middle = (values[i] + values[i + 1]) / 2;
      const std::size_t even = i + i % 2;  // the last place is the last bit of the pattern
      ASSERT_EQ(rounded(format, middle), values[even]) << to_string(format) << " " << middle;
      ASSERT_EQ(rounded(format, -middle), -values[even]);
      ASSERT_EQ(rounded(format, std::nextafter(middle, 0)), values[i]) << to_string(format) << " " << middle;
      ASSERT_EQ(rounded(format, std::nextafter(middle, kInfinity)), values[i + 1]) << to_string(format);
      ASSERT_EQ(ulp(format, values[i]), values[i + 1] - values[i]) << to_string(format) << " " << values[i];
    }
  }
}

TEST(NumberFormat, OverflowsFromHalfAPlaceBeyondTheLargest) {
  for (const NumberFormat format :
       {NumberFormat::fp32, NumberFormat::fp16, NumberFormat::bf16, NumberFormat::fp8_e4m3, NumberFormat::fp8_e5m2}) {
    const double most = largest(format);
    const double limit = most + ulp(format, most) / 2;
    const bool even = encode(format, most) % 2 == 0;  // then a tie stays: only E4M3, whose 448 is even
    EXPECT_EQ(rounded(format, std::nextafter(limit, 0)), most) << to_string(format);
    EXPECT_EQ(std::isfinite(rounded(format, limit)), even) << to_string(format);
    const double beyond = rounded(format, std::nextafter(limit, kInfinity));
    if (format == NumberFormat::fp8_e4m3) {
      EXPECT_TRUE(std::isnan(beyond));
      EXPECT_TRUE(std::isnan(rounded(format, kInfinity)));
    } else {
      EXPECT_EQ(beyond, kInfinity) << to_string(format);
      EXPECT_EQ(rounded(format, -kInfinity), -kInfinity) << to_string(format);
    }
    for (const double large : {std::nextafter(limit, kInfinity), 1e300, kInfinity}) {
      EXPECT_EQ(rounded(format, large, Overflow::saturate), most) << to_string(format);
      EXPECT_EQ(rounded(format, -large, Overflow::saturate), -most) << to_string(format);
    }
    EXPECT_TRUE(std::isnan(rounded(format, kNaN, Overflow::saturate))) << to_string(format);
  }
}

TEST(NumberFormat, UnderflowsGraduallyAndKeepsTheSignOfZero) {
  for (const NumberFormat format : kSmall) {
    const double least = smallest_denormal(format);
    EXPECT_EQ(rounded(format, least), least) << to_string(format);
    EXPECT_EQ(rounded(format, least / 2), 0) << to_string(format);
    EXPECT_EQ(rounded(format, std::nextafter(least / 2, 1)), least) << to_string(format);
    EXPECT_TRUE(std::signbit(rounded(format, -least / 4))) << to_string(format);
    EXPECT_TRUE(std::signbit(decode(format, encode(format, -0.0)))) << to_string(format);
  }
}

TEST(NumberFormat, IntegersWrapAround) {
  EXPECT_EQ(decode(NumberFormat::int32, encode(NumberFormat::int32, -5)), -5);
  EXPECT_EQ(rounded(NumberFormat::int32, 2147483648.0), -2147483648.0);
  EXPECT_EQ(rounded(NumberFormat::int32, 3 * 2147483647.0), 2147483645.0);
}

}  // namespace
}  // namespace weft
