// Data parallelism as PyTorch's DistributedDataParallel runs it: a replica a GPU, gradients all-reduced in buckets.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/graph.h"

namespace weft {

// Defaults of torch.nn.parallel.DistributedDataParallel (bucket_cap_mb = 25) and of
// torch/csrc/distributed/c10d/reducer.hpp (kDefaultFirstBucketBytes).
struct DataParallelSpec {
  std::uint32_t gpus = 1;
  bool overlap = true;
  Bytes bucket{std::int64_t{25} << 20};
  Bytes first_bucket{std::int64_t{1} << 20};
  std::uint32_t iterations = 1;
  bool high_priority = false;  // streams of collectives before that of kernels
};

inline constexpr StreamId kComputeStream{0};
inline constexpr StreamId kCommunicationStream{1};
inline constexpr StreamId kSampleStream{2};  // collectives inside a sample

// One program a GPU, all of the same structure, for a graph of one step. A bucket's all-reduce is issued on the
// communication stream as soon as its last gradient is ready (overlap), or after the backward pass, one after another;
// the first operation behind the backward pass waits for all of them. With one GPU there is no collective.
//
// Gradients lie in their buckets (gradient_as_bucket_view): nothing is copied, the all-reduce is in place, and buckets
// count as gradients. Left out: the broadcast of buffers before a step (batch norm's running statistics), and the
// division by the number of GPUs, which is taken to be part of the reduction. Throws InputError for limits or counts of
// 0, or when the gradients of a bucket do not lie one after another.
[[nodiscard]] std::vector<Program> data_parallel(const Graph& graph, const DataParallelSpec& spec);

// Who sums up the gradients of one GPU's parameters: of those that all GPUs of a sample have, and of those of which
// they have a part each. A group of one sums nothing.
struct GradientGroups {
  GpuGroup same, distributed;
};
// The program of one of several GPUs that share a sample: the collectives of its graph, whose groups name GPUs of the
// run, go on a stream of their own, beside the kernels that do not need them (overlap), or between the kernels. All
// else as above; spec.gpus is not used.
[[nodiscard]] Program sample_parallel(const Graph& graph, const DataParallelSpec& spec, const GradientGroups& groups);

}  // namespace weft
