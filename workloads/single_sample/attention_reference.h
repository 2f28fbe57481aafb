// Whether a scheme computes attention: a layer with projections and all of its gradients, straight from the formulas in
// double, beside what the generated programs make of the same numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "workloads/single_sample/attention_layer.h"

namespace weft {

// Numbers by name: "input", "output_gradient", "query.weight", "query.bias", ...; results "output", "input_gradient",
// "query.weight.grad", ...
using Numbers = std::map<std::string, std::vector<double>>;

// Random operands of a layer whose hidden size is heads * head_size.
[[nodiscard]] Numbers random_operands(const AttentionGeometry& geometry, std::uint64_t seed);
[[nodiscard]] Numbers reference_attention(const AttentionGeometry& geometry, const Numbers& operands);

// The programs of all ranks carried out in FP32, and what comes of it beside the reference: by name of the result, the
// largest difference as a share of the largest number. `split` without GPUs and rank; `ranks` share the sample.
using ValueErrors = std::map<std::string, double>;
[[nodiscard]] ValueErrors check_attention(const AttentionGeometry& geometry, const SampleSplit& split,
                                          std::uint32_t ranks, std::uint64_t seed);

}  // namespace weft
