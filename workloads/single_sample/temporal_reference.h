// Networks of convolutions along time and all of their gradients, straight from the formulas in double; and whether the
// programs of ranks that share a sample compute them.
#pragma once

#include "workloads/single_sample/sample_check.h"
#include "workloads/single_sample/temporal_network.h"

namespace weft {

// Draws the operands into `operands` (of a part of the network "3.convolution1.weight", ...), and returns the results.
[[nodiscard]] Numbers reference_temporal(const TemporalShape& shape, std::int64_t steps, std::int64_t batch,
                                         std::uint64_t seed, Numbers& operands);

// The programs of all ranks beside the reference. `axis.split` without GPUs and rank; `ranks` share the sample.
[[nodiscard]] ValueErrors check_temporal(const TemporalShape& shape, const TimeAxis& axis, std::uint32_t ranks,
                                         std::uint64_t seed, const SeeNode& finished = {});

}  // namespace weft
