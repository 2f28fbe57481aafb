// Linear layers whose weights are distributed: on a sequence whose rows are, too (Korthikanti et al., arXiv
// 2205.05198), or of which every rank has all rows (Shoeybi et al., arXiv 1909.08053).
#pragma once

#include <memory>

#include "workloads/single_sample/sample_split.h"

namespace weft {

struct TensorGroup {
  std::vector<std::uint32_t> gpus;
  bool own_rows = true;  // each has rows of its own: they are gathered and scattered; else sums are all-reduced
  // The kernel that writes what is summed pushes it to switches as it stores it; of several layers' input gradients the
  // last one's, which adds up the others.
  bool fused = false;

  [[nodiscard]] bool alone() const { return gpus.size() == 1; }
};
// Of a split by `megatron`; others have a group of one.
[[nodiscard]] TensorGroup tensor_group(const SampleSplit& split);

// Rows of all ranks, gathered for several linear layers; in the backward pass they are gathered again, and the layers'
// input gradients are summed up and scattered.
struct GatheredInput;
[[nodiscard]] std::shared_ptr<GatheredInput> gather_rows(TrainingStep& step, const TensorGroup& group,
                                                         const Matrix& in);
// y = x * W^T + b of all rows, for this rank's `features` of the output.
[[nodiscard]] Matrix column_parallel(TrainingStep& step, const std::shared_ptr<GatheredInput>& in,
                                     std::int64_t features, bool biased = true);
// From this rank's part of the features of all rows, all `features` of the rows that it has: partial products, summed.
[[nodiscard]] Matrix row_parallel(TrainingStep& step, const TensorGroup& group, const Matrix& in, std::int64_t features,
                                  bool biased = true);

}  // namespace weft
