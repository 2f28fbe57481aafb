#include "workloads/single_sample/temporal_network.h"

#include <fmt/format.h>

#include "sim/error.h"
#include "workloads/models.h"
#include "workloads/optimizer.h"

namespace weft {

namespace {

// One kernel, as WaveNets in PyTorch have it (fused_add_tanh_sigmoid_multiply in NVIDIA's WaveGlow). Operations an
// element are counted by hand: forward a tanh, a sigmoid and a product; backward both again and their slopes.
Matrix gated(TrainingStep& step, const Matrix& halves) {
  const Matrix out{step.activation("gated", halves.elements() / 2), halves.rows, halves.columns / 2};
  const OpId op = step.elementwise("tanh_sigmoid_multiply", out.elements(), {halves.tensor}, {out.tensor}, 8);
  const Stack both = plain(halves.tensor, halves.rows, halves.columns);
  step.computes(
      op, [both, to = plain(out.tensor, out.rows, out.columns)](TensorValues& values) { gate(values, both, to); });
  step.on_backward([&step, halves, out, both] {
    const TensorId given = step.take_gradient(out.tensor);
    const TensorId gradient = step.activation("halves_gradient", halves.elements());
    const OpId back =
        step.elementwise("tanh_sigmoid_multiply_backward", out.elements(), {halves.tensor, given}, {gradient}, 15);
    step.computes(back,
                  [both, from = plain(given, out.rows, out.columns), to = plain(gradient, halves.rows, halves.columns)](
                      TensorValues& values) { gate_gradient(values, both, from, to); });
    step.add_gradient(halves.tensor, gradient);
  });
  return out;
}

class Blocks {
 public:
  Blocks(TrainingStep& step, const TimeAxis& axis, const TemporalShape& shape, std::string layer)
      : step_(&step), axis_(&axis), shape_(&shape), layer_(std::move(layer)) {}

  Matrix build(Matrix x) {
    for (std::int64_t i = 0; i < shape_->layers; ++i) {
      name_ = fmt::format("{}.{}", layer_, i);
      dilation_ = shape_->dilations[static_cast<std::size_t>(i) % shape_->dilations.size()];
      switch (shape_->block) {
        case TemporalBlock::plain:
          x = rectified("convolution", x);
          break;
        case TemporalBlock::tcn:
          x = residual(x);
          break;
        case TemporalBlock::wavenet:
          x = skipping(x, i + 1 == shape_->layers);
          break;
      }
    }
    return skips_.value_or(x);
  }

 private:
  void in_layer(const char* part) { step_->in_layer(name_ + "." + part); }

  Matrix convolution(const char* part, const Matrix& x, std::int64_t channels) {
    in_layer(part);
    return time_convolution(*step_, *axis_, x,
                            {.channels = channels,
                             .kernel = shape_->kernel,
                             .dilation = dilation_,
                             .causal = shape_->causal,
                             .bias = true});
  }

  Matrix rectified(const char* part, const Matrix& x) { return relu(*step_, convolution(part, x, shape_->channels)); }

  Matrix residual(const Matrix& x) {
    const Matrix first = rectified("convolution1", x);
    const Matrix second = rectified("convolution2", first);
    in_layer("residual");
    return relu(*step_, add(*step_, second, x));
  }

  Matrix skipping(const Matrix& x, bool last) {
    const Matrix both = convolution("dilated", x, 2 * shape_->channels);
    in_layer("gate");
    const Matrix acts = gated(*step_, both);
    in_layer("skip");
    const Matrix skip = linear(*step_, acts, shape_->skip_channels);
    skips_ = skips_ ? add(*step_, skip, *skips_) : skip;
    if (last) return x;
    in_layer("residual");
    return add(*step_, linear(*step_, acts, shape_->channels), x);
  }

  TrainingStep* step_;
  const TimeAxis* axis_;
  const TemporalShape* shape_;
  std::string layer_, name_;
  std::int64_t dilation_ = 1;
  std::optional<Matrix> skips_;  // their sum so far
};

double share_of(const TimeAxis& axis) { return 1.0 / axis.split.size(); }

// wavenet_params.json of ibab/tensorflow-wavenet: amplitudes, one-hot.
constexpr std::int64_t kAmplitudes = 256;

}  // namespace

Matrix temporal_blocks(TrainingStep& step, const TimeAxis& axis, const TemporalShape& shape, const Matrix& in,
                       const std::string& layer) {
  return Blocks(step, axis, shape, layer).build(in);
}

SampleGraph make_temporal_convolution(const ModelSpec& spec, const TimeAxis& axis, const TemporalShape& shape,
                                      bool update) {
  TrainingStep step(spec, "temporal_convolution");
  SampleGraph result;
  step.in_layer("temporal");
  const Matrix x{step.activation("input", axis.rows() * shape.channels), axis.rows(), shape.channels};
  result.input = x.tensor;
  const Matrix out = temporal_blocks(step, axis, shape, x, "temporal");
  step.in_layer("temporal");
  run_backward_from(step, out, result);
  if (update) {
    fused_adam(step);
  } else {
    step.begin_optimizer();
  }
  result.graph = step.finish(static_cast<double>(axis.batch) * share_of(axis),
                             static_cast<double>(axis.batch * axis.steps) * share_of(axis));
  return result;
}

// wavenet_params.json of ibab/tensorflow-wavenet: filter_width 2, residual_channels and dilation_channels 32,
// skip_channels 512, dilations 1 to 512 five times, use_biases. Filter and gate are one convolution here.
TemporalShape wavenet_shape() {
  TemporalShape shape{.channels = 32, .kernel = 2, .layers = 50, .block = TemporalBlock::wavenet, .skip_channels = 512};
  shape.dilations.clear();
  for (std::int64_t dilation = 1; dilation <= 512; dilation *= 2) shape.dilations.push_back(dilation);
  return shape;
}

TimeAxis wavenet_axis(const ModelSpec& spec, const SampleSplit& split) {
  return {split, spec.sequence == 0 ? kWaveNetSteps : std::int64_t{spec.sequence}, spec.batch};
}

// Layers as model.py of the same has them: a causal convolution of one-hot samples without bias, the blocks, then twice
// ReLU and a convolution of width 1 on the sum of the skips. Its last block's residual layer, which nobody uses, is
// left out, and so is what is cut off at the beginning of the sample where the receptive field reaches beyond it.
Graph make_wavenet(const ModelSpec& spec, const SampleSplit& split) {
  TemporalShape shape = wavenet_shape();
  WEFT_CHECK(spec.layers <= shape.layers, spec.model);
  if (spec.layers > 0) shape.layers = spec.layers;
  const TimeAxis axis = wavenet_axis(spec, split);
  validate(axis);
  TrainingStep step(spec, kWaveNet);
  step.in_layer("input");
  const Matrix samples{step.activation("one_hot", axis.rows() * kAmplitudes), axis.rows(), kAmplitudes};
  step.no_gradient(samples.tensor);
  step.in_layer("causal");
  Matrix x = time_convolution(step, axis, samples, {.channels = shape.channels, .kernel = shape.kernel, .bias = false});
  x = relu(step, temporal_blocks(step, axis, shape, x, "block"));
  step.in_layer("postprocess1");
  x = relu(step, linear(step, x, shape.skip_channels));
  step.in_layer("postprocess2");
  x = linear(step, x, kAmplitudes);
  step.in_layer("loss");
  cross_entropy(step, x);
  step.run_backward();
  fused_adam(step);
  return step.finish(static_cast<double>(axis.batch) * share_of(axis),
                     static_cast<double>(axis.batch * axis.steps) * share_of(axis));
}

Graph make_whole_wavenet(const ModelSpec& spec) {
  SampleSplit whole;
  whole.gpus = {0};
  return make_wavenet(spec, whole);
}

}  // namespace weft
