// Numbers that ranks give to a reduction whose arithmetic is to be seen: random ones, and those that hurt.
#pragma once

#include <cstdint>

#include "sim/number_format.h"

namespace weft {

enum class ValueSet : std::uint8_t {
  uniform,       // of [-1, 1)
  normal,        // of mean 0 and variance 1
  cancellation,  // large ones that cancel, and two small ones that are left
  overflow,      // of the order of the largest, two of three positive
  special,       // elements with an infinity, with two opposite ones, with a NaN, of zeros of both signs; normal ones
  denormal,      // a few times the smallest denormal
};

// Of element `element` at rank `rank` of `ranks`; of integers, the same in their range. The same on every machine.
[[nodiscard]] double value_of(ValueSet set, NumberFormat format, std::uint64_t seed, std::uint32_t rank,
                              std::uint32_t ranks, std::int64_t element);

// A number of 64 random bits for two that name it (splitmix64, Steele et al., OOPSLA 2014).
[[nodiscard]] std::uint64_t random_bits(std::uint64_t seed, std::uint64_t number);

}  // namespace weft
