#include "workloads/single_sample/convolution_math.h"

#include <Eigen/Core>
#include <algorithm>

#include "sim/error.h"

namespace weft {

namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Mapped = Eigen::Map<RowMajor>;

// The samples of one place; null: zero.
const float* row_at(TensorValues& values, const ConvolutionValues& form, std::int64_t place, std::int64_t channels) {
  if (place < 0 || place >= form.steps) return nullptr;
  for (const TimeRows& rows : form.in) {
    if (place < rows.first || place >= rows.first + rows.count) continue;
    return values.data(rows.tensor) + (place - rows.first) * form.batch * channels;
  }
  throw InternalError("a convolution needs a row that is not there");
}

Mapped tap_of(TensorValues& values, const ConvolutionValues& form, TensorId weight, std::int64_t tap) {
  return {values.data(weight) + tap * form.out_channels * form.in_channels, form.out_channels, form.in_channels};
}

}  // namespace

void convolve(TensorValues& values, const ConvolutionValues& form, TensorId weight, const TimeRows& out,
              std::int64_t first, std::int64_t count) {
  WEFT_CHECK(first >= 0 && first + count <= out.count, "rows beyond a convolution's output");
  for (std::int64_t row = first; row < first + count; ++row) {
    const std::int64_t place = out.first + row;
    Mapped to(values.data(out.tensor) + row * form.batch * form.out_channels, form.batch, form.out_channels);
    to.setZero();
    for (std::int64_t tap = 0; place < form.steps && tap < form.taps.count; ++tap) {
      const std::int64_t at = place - form.taps.before + tap * form.taps.dilation;
      const float* x = row_at(values, form, at, form.in_channels);
      if (x == nullptr) continue;
      to += Eigen::Map<const RowMajor>(x, form.batch, form.in_channels) * tap_of(values, form, weight, tap).transpose();
    }
  }
}

void convolve_backward(TensorValues& values, const ConvolutionValues& form, TensorId weight, const TimeRows& out) {
  for (std::int64_t row = 0; row < out.count; ++row) {
    const std::int64_t place = out.first + row;
    Mapped to(values.data(out.tensor) + row * form.batch * form.in_channels, form.batch, form.in_channels);
    to.setZero();
    for (std::int64_t tap = 0; place < form.steps && tap < form.taps.count; ++tap) {
      const std::int64_t at = place + form.taps.before - tap * form.taps.dilation;
      const float* gradient = row_at(values, form, at, form.out_channels);
      if (gradient == nullptr) continue;
      to += Eigen::Map<const RowMajor>(gradient, form.batch, form.out_channels) * tap_of(values, form, weight, tap);
    }
  }
}

void convolution_weight_gradient(TensorValues& values, const ConvolutionValues& form, const TimeRows& gradient,
                                 TensorId weight_gradient) {
  for (std::int64_t tap = 0; tap < form.taps.count; ++tap) {
    Mapped to = tap_of(values, form, weight_gradient, tap);
    to.setZero();
    for (std::int64_t row = 0; row < gradient.count && gradient.first + row < form.steps; ++row) {
      const std::int64_t at = gradient.first + row - form.taps.before + tap * form.taps.dilation;
      const float* x = row_at(values, form, at, form.in_channels);
      if (x == nullptr) continue;
      const Mapped of_row(values.data(gradient.tensor) + row * form.batch * form.out_channels, form.batch,
                          form.out_channels);
      to += of_row.transpose() * Eigen::Map<const RowMajor>(x, form.batch, form.in_channels);
    }
  }
}

}  // namespace weft
