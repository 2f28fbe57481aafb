// One sample over several GPUs: how its sequence is split, and who takes part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/dense_layers.h"
#include "workloads/sequence_split.h"
#include "workloads/tensor_math.h"
#include "workloads/training_step.h"

namespace weft {

// How a sample is distributed: the first and the last one of convolutions along time, all but the last of attention.
enum class SampleScheme {
  whole,                // each GPU has its own sample
  single_sample,        // distributed products nt, all, tn (Margffoy Tuay 2020)
  ring_self_attention,  // Li et al., arXiv 2105.13120
  ring_attention,       // Liu et al., arXiv 2310.01889
  context_parallel,     // keys and values gathered (Megatron, Llama 3)
  ulysses,              // Jacobs et al., arXiv 2309.14509
  ulysses_ring,         // Fang and Zhao, arXiv 2405.07719
  megatron,             // tensor and sequence parallel, arXiv 2205.05198
  spatial,              // rows of time, and halos from neighbours (Dryden et al., arXiv 1903.06681)
};

// How ranks get their part of a sum to which all contribute: as published, an all-reduce of everything, or what would
// do.
enum class PartialSum { all_reduce, reduce_scatter };

struct SampleSplit {
  SampleScheme scheme = SampleScheme::whole;
  SequenceSplit split = SequenceSplit::plain;
  std::int64_t offset = 0;                   // single_sample: rows or columns that are gathered at a time; 0: all
  PartialSum sums = PartialSum::all_reduce;  // single_sample, ring_self_attention
  bool overlap = true;                       // communication beside what does not need it
  std::uint32_t ulysses_gpus = 1;            // ulysses_ring: neighbours that exchange heads
  bool interior_first = true;                // spatial: rows that need no halo in a kernel of their own, beside it
  bool sequence_parallel = true;             // megatron: ranks have rows of their own between the layers
  bool fused = false;                        // megatron: kernels push what is summed to switches
  std::vector<std::uint32_t> gpus = {};      // that share the sample
  std::uint32_t rank = 0;                    // among them

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(gpus.size()); }
  // Each of them has the whole sequence, and computes what is not distributed as all others do.
  [[nodiscard]] bool has_all_rows() const { return scheme == SampleScheme::megatron && !sequence_parallel; }
};

// Attention of one layer. A rank's matrices have a row for each of its places, and in it the heads of all samples of
// the batch, one after another.
struct AttentionGeometry {
  std::int64_t tokens = 0;  // of the whole sequence
  std::int64_t batch = 1;
  std::int64_t heads = 1, key_heads = 1, head_size = 1;
  bool causal = false;
};

// `count` matrices of `columns` beside each other in the rows of a tensor, from element `offset` on.
[[nodiscard]] Stack beside(TensorId tensor, std::int64_t rows, std::int64_t count, std::int64_t columns,
                           std::int64_t offset = 0);
// One after another.
[[nodiscard]] Stack behind(TensorId tensor, std::int64_t count, std::int64_t rows, std::int64_t columns,
                           std::int64_t offset = 0);

// A training step of one rank, and the tensors by which its result is judged.
struct SampleGraph {
  Graph graph;
  TensorId input, output, output_gradient, input_gradient;
};
// The backward pass from `out`, whose gradient is there, to the sample's input, which is known.
void run_backward_from(TrainingStep& step, const Matrix& out, SampleGraph& sample);

// A collective of the ranks in `gpus`, on numbers of the step's precision or, where it is given, another type. `fused`:
// see CollectiveNode.
OpId communicate(TrainingStep& step, const std::string& name, CollectiveKind kind,
                 const std::vector<std::uint32_t>& gpus, const TensorRange& source, const TensorRange& target,
                 std::optional<DataType> type = std::nullopt, bool fused = false);
[[nodiscard]] TensorRange whole(TrainingStep& step, TensorId tensor);
// `count` elements of the step's precision from element `first` on.
[[nodiscard]] TensorRange elements(TrainingStep& step, TensorId tensor, std::int64_t first, std::int64_t count);

// The same plan without a split of K: for sums that go to places in larger tensors.
[[nodiscard]] GemmPlan without_split(GemmPlan plan, std::int64_t batch);
// c = scale * a * b as batched GEMM.
OpId product(TrainingStep& step, const std::string& name, const Stack& a, const Stack& b, const Stack& c,
             const ProductForm& form, GemmKind kind = GemmKind::forward);
// A kernel that moves stacks from one layout to another: `moves` of as many matrices.
struct Move {
  Stack from, to;
  bool add = false;
};
OpId rearrange(TrainingStep& step, const std::string& name, const std::vector<Move>& moves);

// softmax(scale * scores + mask) over rows that are whole, in one kernel; and its gradient.
[[nodiscard]] TensorId row_softmax(TrainingStep& step, const Stack& scores, float scale, const AttentionMask& mask);
[[nodiscard]] TensorId row_softmax_backward(TrainingStep& step, const Stack& probabilities, TensorId gradient,
                                            float scale);

}  // namespace weft
