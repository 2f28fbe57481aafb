// How numbers lie in memory: IEEE 754 binary16, 32 and 64, bfloat16, and the two FP8 of the OCP 8-bit Floating Point
// Specification (OFP8, 1.0, 2023). E5M2 is like IEEE 754; E4M3 has no infinities and one NaN a sign, and goes up to
// 448. All values of all of them but FP64 are doubles, and a sum of two of a format of up to 24 bits rounds to it from
// double as it would from infinite precision (53 >= 2 * 24 + 2: Figueroa, "When is double rounding innocuous?", SIGNUM
// 1995).
#pragma once

#include <cstdint>

namespace weft {

enum class NumberFormat : std::uint8_t { fp32, fp16, bf16, fp8_e4m3, fp8_e5m2, int32, fp64 };
[[nodiscard]] const char* to_string(NumberFormat format);
[[nodiscard]] std::uint32_t bytes_of(NumberFormat format);
[[nodiscard]] bool is_float(NumberFormat format);

// What rounds to more than the largest number: infinity, NaN in E4M3; or, saturating, the largest number, also for
// infinities. OFP8 allows both of FP8. Integers wrap around.
enum class Overflow : std::uint8_t { ieee, saturate };

// The value of a bit pattern, exactly; of an integer, too.
[[nodiscard]] double decode(NumberFormat format, std::uint64_t bits);
// Rounds to nearest, ties to even, with gradual underflow. NaN becomes the quiet NaN of positive sign.
[[nodiscard]] std::uint64_t encode(NumberFormat format, double value, Overflow overflow = Overflow::ieee);
// The number of the format that `value` rounds to.
[[nodiscard]] double rounded(NumberFormat format, double value, Overflow overflow = Overflow::ieee);

// Of a floating-point format:
[[nodiscard]] double largest(NumberFormat format);
[[nodiscard]] double smallest_denormal(NumberFormat format);
[[nodiscard]] double unit_roundoff(NumberFormat format);  // half the distance from 1 to the next number
// The distance of neighbours in the binade of `value`; of denormals and smaller, the smallest one.
[[nodiscard]] double ulp(NumberFormat format, double value);

}  // namespace weft
