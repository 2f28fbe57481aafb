#include "workloads/convolution_layers.h"

#include "sim/error.h"

namespace weft {
namespace {

// max_pool kernels: 256 threads of one output each, 26 and 32 registers.
StreamSpec pool_launch(std::int64_t elements, std::uint32_t registers) {
  StreamSpec spec;
  spec.blocks = static_cast<std::uint64_t>((elements + 255) / 256);
  spec.threads = 256;
  spec.registers = registers;
  spec.stages = 1;
  return spec;
}

}  // namespace

Image input_images(TrainingStep& step, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  step.in_layer("input");
  Image image{{}, n, c, h, w};
  image.tensor = step.temporary("images", 4 * image.elements(), MemoryClass::activations);
  if (step.precision().mixed) {
    const TensorId images = image.tensor;
    image.tensor = step.activation("images_fp16", image.elements());
    step.elementwise("cast_to_fp16", image.elements(), {images}, {image.tensor});
  }
  step.no_gradient(image.tensor);
  return image;
}

Image batch_norm(TrainingStep& step, const Image& in) {
  const TensorId weight = step.parameter("weight", in.c);
  const TensorId bias = step.parameter("bias", in.c);
  Image out = in;
  out.tensor = step.activation("output", out.elements());
  const TensorId statistics = step.temporary("mean_and_invstd", 2 * 4 * in.c, MemoryClass::activations);
  const StreamSpec launch = channels_launch(in.rows(), in.c, step.precision().element_bytes);
  const auto elements = static_cast<double>(in.elements());
  // Welford's update and the normalisation take about 4 and 2 operations an element.
  step.stream("batch_norm_statistics", launch, {in.tensor}, {statistics}, 4 * elements);
  step.stream("batch_norm_transform", launch, {in.tensor, statistics, weight, bias}, {out.tensor}, 2 * elements);
  step.on_backward([&step, in, out, weight, bias, statistics, launch, elements] {
    const TensorId gradient = step.take_gradient(out.tensor);
    const TensorId weight_target = step.gradient_target(weight, true);
    const TensorId bias_target = step.gradient_target(bias, true);
    const OpId reduce = step.stream("batch_norm_backward_reduce", launch, {gradient, in.tensor, statistics},
                                    {weight_target, bias_target}, 4 * elements);
    const TensorId input_gradient = step.activation("input_gradient", in.elements());
    step.stream("batch_norm_backward_elementwise", launch,
                {gradient, in.tensor, statistics, weight, weight_target, bias_target}, {input_gradient}, 4 * elements);
    step.gradient_written(weight, weight_target, reduce);
    step.gradient_written(bias, bias_target, reduce);
    step.add_gradient(in.tensor, input_gradient);
  });
  return out;
}

Image relu(TrainingStep& step, const Image& in) {
  step.relu(in.tensor, in.elements());
  return in;
}

Image add(TrainingStep& step, const Image& out, const Image& shortcut) {
  WEFT_CHECK(out.elements() == shortcut.elements(), step.layer());
  step.elementwise("add", out.elements(), {out.tensor, shortcut.tensor}, {out.tensor});
  step.on_backward([&step, out, shortcut] {
    const TensorId gradient = step.take_gradient(out.tensor);
    step.add_gradient(out.tensor, gradient);
    step.add_gradient(shortcut.tensor, gradient);
  });
  return out;
}

Image max_pool(TrainingStep& step, const Image& in, std::int64_t filter, std::int64_t stride, std::int64_t padding) {
  Image out{{}, in.n, in.c, (in.h + 2 * padding - filter) / stride + 1, (in.w + 2 * padding - filter) / stride + 1};
  out.tensor = step.activation("output", out.elements());
  const TensorId positions = step.temporary("positions", 8 * out.elements(), MemoryClass::activations);
  const auto comparisons = static_cast<double>(out.elements() * filter * filter);
  step.stream("max_pool_forward", pool_launch(out.elements(), 26), {in.tensor}, {out.tensor, positions}, comparisons);
  step.on_backward([&step, in, out, positions, comparisons] {
    const TensorId gradient = step.take_gradient(out.tensor);
    const TensorId input_gradient = step.activation("input_gradient", in.elements());
    step.stream("max_pool_backward", pool_launch(in.elements(), 32), {gradient, positions}, {input_gradient},
                comparisons);
    step.add_gradient(in.tensor, input_gradient);
  });
  return out;
}

Image average_pool(TrainingStep& step, const Image& in) {
  Image out{{}, in.n, in.c, 1, 1};
  out.tensor = step.activation("output", out.elements());
  // at::native::reduce_kernel<512, 1, ReduceOp<MeanOps>>: 32x16 threads, 32 registers, 16 results a block.
  StreamSpec launch;
  launch.blocks = static_cast<std::uint64_t>((out.elements() + 15) / 16);
  launch.threads = 512;
  launch.registers = 32;
  step.stream("average_pool", launch, {in.tensor}, {out.tensor}, static_cast<double>(in.elements()));
  step.on_backward([&step, in, out] {
    const TensorId gradient = step.take_gradient(out.tensor);
    const TensorId input_gradient = step.activation("input_gradient", in.elements());
    step.elementwise("average_pool_backward", in.elements(), {gradient}, {input_gradient});
    step.add_gradient(in.tensor, input_gradient);
  });
  return out;
}

}  // namespace weft
