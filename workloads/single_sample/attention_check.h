// Whether a scheme computes attention: a layer with projections and all of its gradients.
#pragma once

#include "workloads/single_sample/attention_layer.h"
#include "workloads/single_sample/sample_check.h"

namespace weft {

// The programs of all ranks beside the reference. `split` without GPUs and rank; `ranks` share the sample.
[[nodiscard]] ValueErrors check_attention(const AttentionGeometry& geometry, const SampleSplit& split,
                                          std::uint32_t ranks, std::uint64_t seed);

}  // namespace weft
