// Exact sums, and what is held against them.
#include "network/sum_check.h"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "network/value_sets.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

SumCheck checked(const SumRules& rules, const std::vector<double>& terms, double result) {
  SumCheck check(rules);
  check.add(terms, result);
  return check;
}

TEST(ExactSum, KeepsWhatRoundingEachSumLoses) {
  EXPECT_EQ(exact_sum(std::vector<double>{1e30, 1, -1e30}), 1);
  EXPECT_EQ(exact_sum(std::vector<double>{1, 1e100, 1, -1e100}), 2);
  EXPECT_EQ(exact_sum(std::vector<double>{}), 0);
  // 2^53 + 1 + 2^-60 lies above the tie: up, not to even.
  EXPECT_EQ(exact_sum(std::vector<double>{std::ldexp(1, 53), 1, std::ldexp(1, -60)}), std::ldexp(1, 53) + 2);
  EXPECT_EQ(exact_sum(std::vector<double>{std::ldexp(1, 53), 1}), std::ldexp(1, 53));
}

TEST(ExactSum, AgreesWithAWideAccumulator) {
  using Wide = boost::multiprecision::number<
      boost::multiprecision::cpp_bin_float<700, boost::multiprecision::digit_base_2>>;  // all of FP32's range and more
  for (const ValueSet set : {ValueSet::normal, ValueSet::cancellation, ValueSet::overflow, ValueSet::denormal}) {
    for (std::int64_t element = 0; element < 50; ++element) {
      std::vector<double> terms;
      Wide sum = 0;
      for (std::uint32_t rank = 0; rank < 8; ++rank) {
        terms.push_back(value_of(set, NumberFormat::fp32, 3, rank, 8, element));
        sum += terms.back();
      }
      ASSERT_EQ(exact_sum(terms), static_cast<double>(sum)) << element;
    }
  }
}

TEST(SumCheck, AcceptsWhatTheBoundAllowsAndNoMore) {
  const SumRules fp16{
      .operand = NumberFormat::fp16, .accumulator = NumberFormat::fp32, .roundoff = unit_roundoff(NumberFormat::fp32)};
  // 1 + 2^-11 is a tie of FP16: either neighbour is within half an ulp, the next ones are not.
  const std::vector<double> terms{1, std::ldexp(1, -11)};
  EXPECT_EQ(checked(fp16, terms, 1).wrong, 0);
  EXPECT_EQ(checked(fp16, terms, 1).correctly_rounded, 1);
  EXPECT_EQ(checked(fp16, terms, 1 + std::ldexp(1, -10)).wrong, 0);
  EXPECT_EQ(checked(fp16, terms, 1 + std::ldexp(1, -10)).correctly_rounded, 0);
  EXPECT_EQ(checked(fp16, terms, 1 + std::ldexp(1, -9)).wrong, 1);
  EXPECT_NEAR(checked(fp16, terms, 1 + std::ldexp(1, -9)).max_ulps, 1.5, 1e-12);
}

TEST(SumCheck, KnowsWhatInfinitiesAndNaNMake) {
  const SumRules fp32;
  EXPECT_EQ(checked(fp32, {1, kInfinity, 2}, kInfinity).wrong, 0);
  EXPECT_EQ(checked(fp32, {1, kInfinity, 2}, kNaN).wrong, 1);
  EXPECT_EQ(checked(fp32, {kInfinity, -kInfinity}, kNaN).wrong, 0);
  EXPECT_EQ(checked(fp32, {kInfinity, -kInfinity}, kInfinity).wrong, 1);
  EXPECT_EQ(checked(fp32, {1, kNaN}, 1).wrong, 1);
  EXPECT_EQ(checked(fp32, {1, kNaN}, kNaN).not_finite, 1);
}

TEST(SumCheck, AllowsOverflowOnlyWhereASumCanReachIt) {
  const double most = largest(NumberFormat::fp32);
  EXPECT_EQ(checked({}, {most, most}, kInfinity).wrong, 0);
  EXPECT_EQ(checked({}, {most, most, -most}, kInfinity).wrong, 0);  // on the way
  EXPECT_EQ(checked({}, {most / 2, most / 4}, kInfinity).wrong, 1);
  const SumRules saturating{.operand = NumberFormat::fp8_e4m3, .overflow = Overflow::saturate};
  EXPECT_EQ(checked(saturating, {448, 448}, 448).wrong, 0);
  EXPECT_EQ(checked(saturating, {448, -32}, 448).wrong, 1);
}

TEST(SumCheck, IntegersAreExactModuloTheirRange) {
  const SumRules integers{.operand = NumberFormat::int32, .accumulator = NumberFormat::int32};
  EXPECT_EQ(checked(integers, {2147483647, 1}, -2147483648.0).wrong, 0);
  EXPECT_EQ(checked(integers, {5, 6}, 12).wrong, 1);
}

TEST(ValueSets, AreNumbersOfTheFormatAndTheSameEveryTime) {
  for (const ValueSet set : {ValueSet::uniform, ValueSet::normal, ValueSet::cancellation, ValueSet::overflow,
                             ValueSet::special, ValueSet::denormal}) {
    for (const NumberFormat format :
         {NumberFormat::fp32, NumberFormat::fp16, NumberFormat::bf16, NumberFormat::fp8_e4m3, NumberFormat::int32}) {
      for (std::int64_t e = 0; e < 64; ++e) {
        const double value = value_of(set, format, 1, 2, 8, e);
        ASSERT_EQ(encode(format, value), encode(format, value_of(set, format, 1, 2, 8, e)));
        if (!std::isnan(value)) {
          ASSERT_EQ(rounded(format, value), value);
        }
      }
    }
  }
  EXPECT_NE(value_of(ValueSet::normal, NumberFormat::fp32, 1, 0, 8, 0),
            value_of(ValueSet::normal, NumberFormat::fp32, 2, 0, 8, 0));
}

}  // namespace
}  // namespace weft
