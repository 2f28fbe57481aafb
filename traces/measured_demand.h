// A kernel's demand where hardware counters were recorded (traces/kernel_counters.h).
#pragma once

#include <array>
#include <optional>

#include "sim/program.h"
#include "traces/kernel_counters.h"
#include "workloads/graph.h"

namespace weft {

// Operations by pipe, where measured. Types that have no pipe count by what they take of one: 8-bit types half and
// 4-bit types a quarter of tensor_fp16's time, packed FP16 half of fp32's.
[[nodiscard]] std::array<std::optional<double>, kPipeCount> pipe_operations(const KernelCounters& counters);

// Read and written together, of L2 or else of HBM; absent where neither was measured.
[[nodiscard]] std::optional<double> measured_bytes(const KernelCounters& counters);

// Gives `node`, whose structure was guessed, what was measured: the bytes that its blocks read and write are those of
// L2, else its footprint those of HBM; operations are those of their pipes. A footprint larger than any cache shrinks
// to the bytes that HBM read, in that blocks share slices. `tensors`, by TensorUse::tensor, become as large as is
// touched. The origin becomes `counters` where bytes were measured.
void apply_counters(const KernelCounters& counters, KernelNode& node, std::vector<Bytes>& tensors);

}  // namespace weft
