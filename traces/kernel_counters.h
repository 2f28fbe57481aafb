// What hardware counters say of one kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

// Bytes are those that HBM moved, and those that compute units asked of L2. Operations count a multiply and an add as
// two; those of FP8, INT8 and narrower types are of the tensor pipe, fp16_ops are not.
enum class KernelCounter {
  hbm_read_bytes,
  hbm_written_bytes,
  l2_read_bytes,
  l2_written_bytes,
  tensor_fp16_ops,  // BF16 too
  tensor_tf32_ops,
  tensor_8bit_ops,
  tensor_4bit_ops,
  fp64_ops,  // of the tensor pipe, too
  fp32_ops,
  fp16_ops
};
inline constexpr std::size_t kKernelCounterCount = 11;

// By KernelCounter, as trace files name them.
inline constexpr std::array<std::string_view, kKernelCounterCount> kKernelCounterWords{
    "hbm_read_bytes",  "hbm_written_bytes", "l2_read_bytes", "l2_written_bytes", "tensor_fp16_ops", "tensor_tf32_ops",
    "tensor_8bit_ops", "tensor_4bit_ops",   "fp64_ops",      "fp32_ops",         "fp16_ops"};

// More is damage: bytes and operations of a kernel that keeps the largest GPU busy for minutes.
inline constexpr std::int64_t kMostCounted = std::int64_t{1} << 58;

struct KernelCounters {
  std::array<std::optional<std::int64_t>, kKernelCounterCount> values{};  // absent: not measured

  [[nodiscard]] const std::optional<std::int64_t>& operator[](KernelCounter counter) const {
    return values[static_cast<std::size_t>(counter)];
  }
  [[nodiscard]] std::optional<std::int64_t>& operator[](KernelCounter counter) {
    return values[static_cast<std::size_t>(counter)];
  }
  bool operator==(const KernelCounters&) const = default;
};

}  // namespace weft
