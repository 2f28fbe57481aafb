// Linear layers whose weights are distributed, on a sequence whose rows are (Korthikanti et al., arXiv 2205.05198).
#pragma once

#include <memory>

#include "workloads/single_sample/sample_split.h"

namespace weft {

// Rows of all ranks, gathered for several linear layers; in the backward pass they are gathered again, and the layers'
// input gradients are summed up and scattered.
struct GatheredInput;
[[nodiscard]] std::shared_ptr<GatheredInput> gather_rows(TrainingStep& step, const std::vector<std::uint32_t>& gpus,
                                                         const Matrix& in);
// y = x * W^T + b of all rows, for this rank's `features` of the output.
[[nodiscard]] Matrix column_parallel(TrainingStep& step, const std::shared_ptr<GatheredInput>& in,
                                     std::int64_t features, bool biased = true);
// From this rank's part of the features of all rows, all `features` of its own rows: partial products, reduce-scatter.
[[nodiscard]] Matrix row_parallel(TrainingStep& step, const std::vector<std::uint32_t>& gpus, const Matrix& in,
                                  std::int64_t features, bool biased = true);

}  // namespace weft
