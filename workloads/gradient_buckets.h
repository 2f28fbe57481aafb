// PyTorch DDP's gradient buckets.
#pragma once

#include <vector>

#include "workloads/graph.h"

namespace weft {

struct GradientBucket {
  std::vector<TensorId> parameters;  // in the order in which their gradients become ready
  Bytes bytes;                       // of their gradients, without padding
  OpId last;                         // the node after which all are ready
};

// compute_bucket_assignment_by_size() of torch/csrc/distributed/c10d/reducer.cpp in the order that rebuild_buckets()
// uses from the second iteration on, that in which gradients became ready: a bucket is closed by the gradient that
// brings it to its limit or beyond, so it may exceed the limit by that gradient; the first bucket's limit is `first`,
// that of all others `limit`; what remains is the last bucket. Limits are positive. Of parameters that are
// `distributed` or of those that are not. Throws InputError when a parameter has no gradient.
[[nodiscard]] std::vector<GradientBucket> assign_buckets(const Graph& graph, Bytes first, Bytes limit,
                                                         bool distributed = false);

}  // namespace weft
