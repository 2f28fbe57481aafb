// The arithmetic of a reduction table's entries: types, orders, bounds, and what IEEE 754 says of the hard cases.
#include "switch_reduce/accumulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "network/sum_check.h"
#include "network/value_sets.h"

namespace weft {
namespace {

constexpr std::uint32_t kRanks = 8;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const std::vector<NumberFormat> kFormats{NumberFormat::fp32,     NumberFormat::fp16,     NumberFormat::bf16,
                                         NumberFormat::fp8_e4m3, NumberFormat::fp8_e5m2, NumberFormat::int32};

Packet contribution_of(std::uint32_t gpu) {
  Packet packet;
  packet.kind = PacketKind::partial_reply;
  packet.destination = static_cast<std::uint16_t>(gpu);
  return packet;
}

// What an entry makes of a line of each rank that come in this order.
LineValues sum_of(const AccumulationSpec& spec, NumberFormat format, const std::vector<LineValues>& lines,
                  const std::vector<std::uint32_t>& order) {
  Payloads payloads({});
  LineSums sums(spec, format, payloads);
  for (const std::uint32_t rank : order) {
    payloads.put(contribution_of(rank), 0, &lines[rank]);
    sums.add(3, contribution_of(rank));
  }
  Packet reply;
  reply.kind = PacketKind::read_reply;
  sums.send(3, reply);
  return payloads.take(reply, 0);
}

std::vector<LineValues> lines_of(ValueSet set, NumberFormat format, std::int64_t first_element = 0) {
  std::vector<LineValues> lines(kRanks);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    for (std::uint32_t i = 0; i < elements_per_line(format); ++i) {
      set_element(lines[rank], format, i, encode(format, value_of(set, format, 1, rank, kRanks, first_element + i)));
    }
  }
  return lines;
}

std::vector<std::uint32_t> order_of(unsigned seed) {
  std::vector<std::uint32_t> order(kRanks);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

// One number in each rank's line.
double scalar_sum(const AccumulationSpec& spec, NumberFormat format, const std::vector<double>& terms) {
  std::vector<LineValues> lines(terms.size());
  std::vector<std::uint32_t> order;
  for (std::uint32_t rank = 0; rank < terms.size(); ++rank) {
    set_element(lines[rank], format, 0, encode(format, terms[rank]));
    order.push_back(rank);
  }
  return element_of(sum_of(spec, format, lines, order), format, 0);
}

TEST(Accumulation, FixedOrderIsTheSameToTheBitForEverySeed) {
  const AccumulationSpec fixed{.order = AccumulationOrder::fixed};
  for (const NumberFormat format : kFormats) {
    for (const ValueSet set : {ValueSet::normal, ValueSet::cancellation, ValueSet::special}) {
      const std::vector<LineValues> lines = lines_of(set, format);
      const LineValues first = sum_of(fixed, format, lines, order_of(0));
      for (unsigned seed = 1; seed < 20; ++seed) {
        EXPECT_EQ(sum_of(fixed, format, lines, order_of(seed)), first) << to_string(format) << " seed " << seed;
      }
    }
  }
}

TEST(Accumulation, ArrivalOrderShowsInTheLastBitsOfFp32) {
  const std::vector<LineValues> lines = lines_of(ValueSet::normal, NumberFormat::fp32);
  const LineValues first = sum_of({}, NumberFormat::fp32, lines, order_of(0));
  int different = 0;
  for (unsigned seed = 1; seed < 20; ++seed) {
    const LineValues other = sum_of({}, NumberFormat::fp32, lines, order_of(seed));
    different += other == first ? 0 : 1;
    for (std::uint32_t i = 0; i < 32; ++i) {
      const double a = element_of(first, NumberFormat::fp32, i);
      EXPECT_NEAR(a, element_of(other, NumberFormat::fp32, i), 1e-5);
    }
  }
  EXPECT_GT(different, 10);
}

TEST(Accumulation, StaysWithinTheStandardBoundInEveryOrder) {
  for (const NumberFormat format : kFormats) {
    for (const ValueSet set : {ValueSet::uniform, ValueSet::normal, ValueSet::cancellation, ValueSet::overflow,
                               ValueSet::special, ValueSet::denormal}) {
      for (const AccumulationType type : {AccumulationType::fp32, AccumulationType::fp16, AccumulationType::operand}) {
        const NumberFormat accumulator = accumulators(type, format);
        const double roundoff = is_float(format) ? unit_roundoff(accumulator) : 0;
        SumCheck check({.operand = format, .accumulator = accumulator, .roundoff = roundoff});
        for (std::int64_t line = 0; line < 4; ++line) {
          const std::vector<LineValues> lines = lines_of(set, format, line * 128);
          const LineValues sum = sum_of({.type = type}, format, lines, order_of(static_cast<unsigned>(line)));
          for (std::uint32_t i = 0; i < elements_per_line(format); ++i) {
            std::vector<double> terms;
            for (const LineValues& one : lines) terms.push_back(element_of(one, format, i));
            check.add(terms, element_of(sum, format, i));
          }
        }
        EXPECT_EQ(check.wrong, 0) << to_string(format) << " set " << static_cast<int>(set) << " by "
                                  << to_string(accumulator);
        EXPECT_LE(check.max_bound_share, 1 + 1e-9);
      }
    }
  }
}

TEST(Accumulation, WiderAccumulatorsKeepWhatNarrowOnesLose) {
  const AccumulationSpec narrow{.type = AccumulationType::operand};
  // 2048 + 1 is a tie of FP16 and stays 2048 each time; in FP32 the ones add up.
  const std::vector<double> ones{2048, 1, 1, 1, 1};
  EXPECT_EQ(scalar_sum(narrow, NumberFormat::fp16, ones), 2048);
  EXPECT_EQ(scalar_sum({}, NumberFormat::fp16, ones), 2052);
  // Accumulating in FP16 overflows on the way; in FP32 it does not.
  EXPECT_EQ(scalar_sum(narrow, NumberFormat::fp16, {65504, 65504, -65504}), kInfinity);
  EXPECT_EQ(scalar_sum({}, NumberFormat::fp16, {65504, 65504, -65504}), 65504);
  // PTX's .acc::f16 of FP8.
  const AccumulationSpec half{.type = AccumulationType::fp16};
  EXPECT_EQ(scalar_sum(half, NumberFormat::fp8_e4m3, {448, 448, -448}), 448);
  EXPECT_TRUE(std::isnan(scalar_sum(narrow, NumberFormat::fp8_e4m3, {448, 448, -448})));
}

TEST(Accumulation, FollowsIeee754WhereItHurts) {
  const AccumulationSpec spec;
  for (const NumberFormat format :
       {NumberFormat::fp32, NumberFormat::fp16, NumberFormat::bf16, NumberFormat::fp8_e5m2}) {
    EXPECT_EQ(scalar_sum(spec, format, {1, kInfinity, -1}), kInfinity) << to_string(format);
    EXPECT_TRUE(std::isnan(scalar_sum(spec, format, {kInfinity, 1, -kInfinity}))) << to_string(format);
    EXPECT_TRUE(std::isnan(scalar_sum(spec, format, {1, kNaN}))) << to_string(format);
    const double most = largest(format);
    EXPECT_EQ(scalar_sum(spec, format, {most, most}), kInfinity) << to_string(format);
    EXPECT_EQ(scalar_sum({.overflow = Overflow::saturate}, format, {-most, -most}), -most) << to_string(format);
    const double least = smallest_denormal(format);
    EXPECT_EQ(scalar_sum(spec, format, {least, least, -least}), least) << to_string(format);
    EXPECT_FALSE(std::signbit(scalar_sum(spec, format, {-0.0, 0.0}))) << to_string(format);
    EXPECT_TRUE(std::signbit(scalar_sum(spec, format, {-0.0, -0.0}))) << to_string(format);
    EXPECT_FALSE(std::signbit(scalar_sum(spec, format, {1, -1}))) << to_string(format);
  }
  EXPECT_TRUE(std::isnan(scalar_sum(spec, NumberFormat::fp8_e4m3, {448, 448})));
  EXPECT_EQ(scalar_sum(spec, NumberFormat::fp8_e4m3, {448, 16}), 448);  // a tie, to even
  EXPECT_EQ(scalar_sum(spec, NumberFormat::int32, {2147483647, 1}), -2147483648.0);
}

TEST(Accumulation, EntriesKeepTheirSumsApart) {
  Payloads payloads({});
  LineSums sums({}, NumberFormat::fp32, payloads);
  LineValues one{};
  set_element(one, NumberFormat::fp32, 0, encode(NumberFormat::fp32, 1));
  for (const std::uint32_t entry : {5U, 2U, 5U}) {
    payloads.put(contribution_of(0), 0, &one);
    sums.add(entry, contribution_of(0));
  }
  for (const auto& [entry, sum] : {std::pair{5U, 2.0}, std::pair{2U, 1.0}}) {
    Packet reply;
    reply.kind = PacketKind::read_reply;
    sums.send(entry, reply);
    EXPECT_EQ(element_of(payloads.take(reply, 0), NumberFormat::fp32, 0), sum);
  }
  EXPECT_EQ(payloads.under_way(), 0U);
}

}  // namespace
}  // namespace weft
