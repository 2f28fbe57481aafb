#include <algorithm>

#include "sim/error.h"
#include "workloads/convolution_layers.h"
#include "workloads/dense_layers.h"

namespace weft {
namespace {

// Panels of an image along its pixels, one a row of tiles, with the halo that a filter of `filter` rows reaches beyond
// the rows of a tile. A halo is part of the neighbouring panel; accesses are whole panels, so it is rounded to whole
// ones, at most filter - 1.
std::vector<TensorUse> patches(const GemmPlan& plan, const Image& image, std::uint64_t bytes, std::int64_t out_h,
                               std::int64_t out_w, std::int64_t filter, std::int64_t stride) {
  const TensorUse panel = row_panels(plan, image.tensor, bytes);
  std::vector<TensorUse> uses{panel};
  // Rows of the output that a tile covers; a tile of whole images has only padding around it.
  const double tile_rows = static_cast<double>(plan.tile_m) / static_cast<double>(out_w);
  if (tile_rows >= static_cast<double>(out_h) || plan.rows < 2 || plan.slices > 1) return uses;
  const double halo = static_cast<double>(filter - stride) / (tile_rows * static_cast<double>(stride));
  const auto neighbours =
      std::min<std::int64_t>({static_cast<std::int64_t>(halo + 0.5), filter - 1, std::int64_t{plan.rows} - 1});
  for (std::int64_t i = 1; i <= neighbours; ++i) {
    TensorUse next = panel;
    next.offset = static_cast<std::uint64_t>(i) * panel.bytes_per_block;
    next.modulo = plan.rows - static_cast<std::uint32_t>(i);
    uses.push_back(next);
  }
  return uses;
}

struct Convolution {
  Image in, out;
  ConvolutionSpec spec;
  TensorId weight;

  [[nodiscard]] std::int64_t taps() const { return spec.filter * spec.filter; }
  // A 1x1 filter with stride 2 touches one pixel in four.
  [[nodiscard]] std::uint64_t touched(std::uint64_t bytes) const {
    const std::int64_t skip = spec.stride > spec.filter ? spec.stride / spec.filter : 1;
    return bytes / static_cast<std::uint64_t>(skip * skip);
  }
};

void forward(TrainingStep& step, const Convolution& conv) {
  const GemmShape shape{conv.out.rows(), conv.out.c, conv.in.c * conv.taps()};
  const Precision& precision = step.precision();
  const GemmPlan plan = plan_gemm(shape, GemmKind::forward, precision.gemm_pipe, precision.element_bytes,
                                  step.compute_units(), step.block_shared_memory());
  const TensorId weight = step.weight(conv.weight);
  auto reads = patches(plan, conv.in, conv.touched(step.bytes(conv.in.tensor)), conv.out.h, conv.out.w,
                       conv.spec.filter, conv.spec.stride);
  reads.push_back(column_panels(plan, weight, step.bytes(weight)));
  step.gemm("implicit_gemm_forward", plan, shape, std::move(reads), conv.out.tensor);
}

void data_gradient(TrainingStep& step, const Convolution& conv, const Image& out_gradient) {
  // With a stride only one tap in stride^2 meets an output pixel, so the multiplications are those of the forward pass.
  const std::int64_t depth =
      std::max<std::int64_t>(1, conv.out.c * conv.taps() / (conv.spec.stride * conv.spec.stride));
  const GemmShape shape{conv.in.rows(), conv.in.c, depth};
  const Precision& precision = step.precision();
  const GemmPlan plan = plan_gemm(shape, GemmKind::forward, precision.gemm_pipe, precision.element_bytes,
                                  step.compute_units(), step.block_shared_memory());
  const TensorId gradient = step.activation("input_gradient", conv.in.elements());
  const TensorId weight = step.weight(conv.weight);
  auto reads = patches(plan, out_gradient, step.bytes(out_gradient.tensor), conv.in.h, conv.in.w, conv.spec.filter, 1);
  reads.push_back(column_panels(plan, weight, step.bytes(weight)));
  step.gemm("implicit_gemm_data_gradient", plan, shape, std::move(reads), gradient);
  step.add_gradient(conv.in.tensor, gradient);
}

void weight_gradient(TrainingStep& step, const Convolution& conv, const Image& out_gradient) {
  const GemmShape shape{conv.out.c, conv.in.c * conv.taps(), conv.out.rows()};
  const Precision& precision = step.precision();
  const GemmPlan plan = plan_gemm(shape, GemmKind::weight_gradient, precision.gemm_pipe, precision.element_bytes,
                                  step.compute_units(), step.block_shared_memory());
  // Columns run over the taps and, within a tap, over the channels: tiles of different taps read the same pixels.
  const auto channel_tiles = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>((conv.in.c + plan.tile_n - 1) / plan.tile_n, 1, plan.columns));
  const TensorId target = step.gradient_target(conv.weight);
  const OpId writer =
      step.gemm("implicit_gemm_weight_gradient", plan, shape,
                {row_panels(plan, out_gradient.tensor, step.bytes(out_gradient.tensor)),
                 column_panels(plan, conv.in.tensor, conv.touched(step.bytes(conv.in.tensor)), channel_tiles)},
                target);
  step.gradient_written(conv.weight, target, writer);
}

}  // namespace

Image convolution(TrainingStep& step, const Image& in, const ConvolutionSpec& spec) {
  Convolution conv{in, in, spec, step.parameter("weight", spec.channels * in.c * spec.filter * spec.filter)};
  conv.out.c = spec.channels;
  conv.out.h = (in.h + 2 * spec.padding - spec.filter) / spec.stride + 1;
  conv.out.w = (in.w + 2 * spec.padding - spec.filter) / spec.stride + 1;
  WEFT_CHECK(conv.out.h > 0 && conv.out.w > 0, step.layer());
  conv.out.tensor = step.activation("output", conv.out.elements());
  forward(step, conv);
  step.on_backward([&step, conv] {
    Image gradient = conv.out;
    gradient.tensor = step.take_gradient(conv.out.tensor);
    if (step.needs_gradient(conv.in.tensor)) data_gradient(step, conv, gradient);
    weight_gradient(step, conv, gradient);
  });
  if (!spec.bias) return conv.out;

  const TensorId bias = step.parameter("bias", spec.channels);
  const TensorId addend = step.weight(bias);
  step.elementwise("add_bias", conv.out.elements(), {conv.out.tensor, addend}, {conv.out.tensor});
  step.on_backward([&step, conv, bias] {
    const TensorId gradient = step.take_gradient(conv.out.tensor);
    bias_gradient(step, bias, gradient, conv.out.rows(), conv.out.c);
    step.add_gradient(conv.out.tensor, gradient);
  });
  return conv.out;
}

}  // namespace weft
