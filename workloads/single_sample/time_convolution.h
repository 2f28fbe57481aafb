// Convolutions along time whose sample is split by its rows of time: a rank takes the rows that a filter reaches beyond
// its own from its neighbours (halos), forward of the input, backward of the output's gradient. Dryden et al.,
// "Improving Strong-Scaling of CNN Training by Exploiting Finer-Grained Parallelism" (arXiv 1903.06681), who do it in
// two dimensions; ParaDL (arXiv 2104.09075) calls it spatial parallelism.
#pragma once

#include "workloads/single_sample/sample_split.h"

namespace weft {

// The time of a sample and this rank's part of it. Rows of a matrix along time: place by place, in each the samples of
// the batch. All ranks have as many; those beyond the end nobody looks at.
struct TimeAxis {
  SampleSplit split;
  std::int64_t steps = 0;  // of the whole sample
  std::int64_t batch = 1;

  [[nodiscard]] std::int64_t own_steps() const { return rows_of_rank(SequenceSplit::plain, steps, split.size()); }
  [[nodiscard]] std::int64_t first_step() const { return std::int64_t{split.rank} * own_steps(); }
  [[nodiscard]] std::int64_t rows() const { return own_steps() * batch; }
};

// Throws InputError, with the path in a configuration, where the sample cannot be split so: another scheme, or fewer
// rows than GPUs (`allow_idle`: then some have none).
void validate(const TimeAxis& axis, bool allow_idle = false);

struct TimeConvolutionSpec {
  std::int64_t channels = 0;  // of the output
  std::int64_t kernel = 2;    // width of the filter: at least 2, one of 1 is a linear layer
  std::int64_t dilation = 1;
  bool causal = true;  // the filter ends at its own place; else it is centred ("same": of an odd reach more behind)
  bool bias = true;
};

// Implicit GEMM: forward M = rows, N = channels, K = kernel * channels of the input; gradient of the data the same the
// other way; gradient of the weights M = channels, N = kernel * channels of the input, K = rows. A block reads each row
// that its tile reaches once from L2. Halos come by shifts, from as many neighbours as they reach; kernels read them
// where they lie. With overlap they are under way beside rows that need none (`interior_first`), and backward beside
// the gradient of the weights, which needs the input's halo only: it is kept. Parameters: weight, bias.
[[nodiscard]] Matrix time_convolution(TrainingStep& step, const TimeAxis& axis, const Matrix& in,
                                      const TimeConvolutionSpec& spec);

}  // namespace weft
