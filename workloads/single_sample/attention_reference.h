// A layer of attention with its projections and all of its gradients, straight from the formulas in double.
#pragma once

#include "workloads/single_sample/attention_layer.h"
#include "workloads/single_sample/sample_check.h"

namespace weft {

// Random operands of a layer whose hidden size is heads * head_size.
[[nodiscard]] Numbers random_operands(const AttentionGeometry& geometry, std::uint64_t seed);
[[nodiscard]] Numbers reference_attention(const AttentionGeometry& geometry, const Numbers& operands);

}  // namespace weft
