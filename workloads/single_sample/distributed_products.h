// Products of matrices whose rows are distributed (J. Margffoy Tuay, "Distributed dot product", Uniandes 2020;
// github.com/andfoy/py-distributed-dot-product, distributed_dot_product/multiplication/functions.py). Every rank has R
// rows; T = N * R. With the copies and the buffers of that program, and what its names hold, so that memory peaks are
// its own.
#pragma once

#include "workloads/single_sample/sample_split.h"

namespace weft {

// A * B^T: from A [count][R x d] and B, d columns of each matrix beside each other, [count][R x T]: `offset` rows of B
// are gathered at a time.
[[nodiscard]] TensorId product_nt(TrainingStep& step, const SampleSplit& split, const Stack& a, const Stack& b);
// A * B: from A [count][R x T] and B [R x count * d] the result [count][R x d]: `offset` columns of each matrix of B
// are gathered at a time.
[[nodiscard]] TensorId product_all(TrainingStep& step, const SampleSplit& split, const Stack& a, const Stack& b);
// A^T * B: from A [count][R x T] and B [R x count * d] the result [R x count * d]: N all-reduces of which each rank
// keeps its own, or one reduce-scatter.
[[nodiscard]] TensorId product_tn(TrainingStep& step, const SampleSplit& split, const Stack& a, const Stack& b);

}  // namespace weft
