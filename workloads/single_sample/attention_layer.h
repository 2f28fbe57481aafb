// A layer of attention with its projections, distributed as a scheme says, and a model that is made of such layers.
#pragma once

#include "workloads/graph.h"
#include "workloads/model_zoo.h"
#include "workloads/single_sample/sample_split.h"

namespace weft {

// Throws InputError, with the path in a configuration, where a scheme cannot take this shape: fewer rows than GPUs
// (`allow_idle`: then some have none), heads that GPUs do not divide, an odd size.
void validate(const SampleSplit& split, const AttentionGeometry& geometry, bool allow_idle = false);

struct ProjectionForm {
  bool biased = true;
  bool rotary = false;  // queries and keys turned by their place (Su et al., arXiv 2104.09864)
};
// Projections of query, key and value, attention, projection of the output: x [rows * batch, hidden] in and out. With
// `megatron` the projections' weights are distributed too.
[[nodiscard]] Matrix attention_layer(TrainingStep& step, const SampleSplit& split, const AttentionGeometry& geometry,
                                     const Matrix& in, const ProjectionForm& form = {});

// Rows of one rank.
[[nodiscard]] std::int64_t rows_of(const SampleSplit& split, const AttentionGeometry& geometry);

struct AttentionModel {
  AttentionGeometry geometry;
  std::uint32_t layers = 1;
};
// Forward and backward pass of this rank, without an optimizer: the input and the output's gradient are there.
[[nodiscard]] SampleGraph make_attention(const ModelSpec& spec, const AttentionModel& model, const SampleSplit& split);

// A distributed product by itself: nt, all or tn, of operands that are there. rows: of the whole.
enum class DistributedProduct { nt, all, tn };
[[nodiscard]] Graph make_distributed_product(const ModelSpec& spec, DistributedProduct product, std::int64_t rows,
                                             std::int64_t columns, const SampleSplit& split);

}  // namespace weft
