// What convolutions along time do to numbers (tensor_values.h). Rows are places in time, in each the samples of the
// batch one after another, in each their channels; places before the beginning and behind the end are zero.
#pragma once

#include <vector>

#include "workloads/tensor_values.h"

namespace weft {

// Rows of consecutive places in time that lie in one tensor, from its first element on.
struct TimeRows {
  TensorId tensor;
  std::int64_t first = 0, count = 0;  // places
};

// A dilated filter: y[t] = sum over n < count of W[n] * x[t - before + n * dilation]. With the same W, mirrored and
// transposed, and `after` for `before`, it is the way back of the gradient.
struct Taps {
  std::int64_t count = 1, dilation = 1;
  std::int64_t before = 0;  // rows that it reaches back

  [[nodiscard]] std::int64_t reach() const { return (count - 1) * dilation; }
  [[nodiscard]] std::int64_t after() const { return reach() - before; }
};

struct ConvolutionValues {
  std::vector<TimeRows> in;  // not overlapping
  std::int64_t in_channels = 1, out_channels = 1;
  std::int64_t batch = 1;
  std::int64_t steps = 0;  // of the whole sample
  Taps taps;               // of the forward pass; weights are [count][out_channels][in_channels]
};

// Rows [first, first + count) of `out`, counted from its own first. Rows beyond the sample become zero.
void convolve(TensorValues& values, const ConvolutionValues& form, TensorId weight, const TimeRows& out,
              std::int64_t first, std::int64_t count);
// The same of the gradient: form.in are rows of the output's gradient, `out` those of the input's.
void convolve_backward(TensorValues& values, const ConvolutionValues& form, TensorId weight, const TimeRows& out);
// W[n] = sum over t of gradient[t]^T * x[t - before + n * dilation].
void convolution_weight_gradient(TensorValues& values, const ConvolutionValues& form, const TimeRows& gradient,
                                 TensorId weight_gradient);

}  // namespace weft
