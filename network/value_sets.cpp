#include "network/value_sets.h"

#include <cmath>
#include <limits>

#include "sim/error.h"

namespace weft {

namespace {

// Uniform in [-1, 1).
double uniform(std::uint64_t bits) { return static_cast<double>(bits >> 11U) * 0x1p-52 - 1; }

// The sum of twelve uniform ones (Irwin and Hall): no library function whose last bits differ between machines.
double normal(std::uint64_t seed) {
  double sum = 0;
  for (std::uint64_t i = 0; i < 12; ++i) sum += uniform(random_bits(seed, i)) / 2;
  return sum;
}

// Neighbours of ranks cancel, but for the last two, which are small.
double cancelling(double large, std::uint32_t rank, std::uint32_t ranks, double small) {
  if (rank + 2 >= ranks - ranks % 2) return small;
  return rank % 2 == 0 ? large : -large;
}

double special(std::uint64_t scenario, std::uint32_t rank, std::uint32_t ranks, double usual) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool first = rank == scenario / 16 % ranks;
  const bool second = rank == (scenario / 16 + 1) % ranks;
  switch (scenario % 16) {
    case 0:
      return first ? kInfinity : usual;
    case 1:
      return first ? -kInfinity : usual;
    case 2:
      return first ? kInfinity : second ? -kInfinity : usual;
    case 3:
      return first ? std::numeric_limits<double>::quiet_NaN() : usual;
    case 4:
      return -0.0;
    case 5:
      return first ? 0.0 : -0.0;
    default:
      return usual;
  }
}

}  // namespace

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t z = seed + (number + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

double value_of(ValueSet set, NumberFormat format, std::uint64_t seed, std::uint32_t rank, std::uint32_t ranks,
                std::int64_t element) {
  const std::uint64_t common = random_bits(seed, static_cast<std::uint64_t>(element));  // of all ranks
  const std::uint64_t own = random_bits(common, rank + 1);
  if (!is_float(format)) {  // sums of the full range wrap around
    const bool wide = set == ValueSet::uniform || set == ValueSet::overflow;
    return static_cast<double>(static_cast<std::int32_t>(own >> (wide ? 32U : 44U)));
  }
  const double most = largest(format);
  double value = 0;
  switch (set) {
    case ValueSet::uniform:
      value = uniform(own);
      break;
    case ValueSet::normal:
      value = normal(own);
      break;
    case ValueSet::cancellation:
      value = cancelling(most / 4 * uniform(random_bits(common, 1 + ranks + rank / 2)), rank, ranks, normal(own));
      break;
    case ValueSet::overflow:
      value = most * (0.75 + uniform(own) / 4) * (own % 3 == 0 ? -1 : 1);
      break;
    case ValueSet::special:
      value = special(random_bits(common, 0), rank, ranks, normal(own));
      break;
    case ValueSet::denormal:
      value = std::floor(uniform(own) * 8) * smallest_denormal(format);
      break;
  }
  return rounded(format, value);
}

}  // namespace weft
