// ResNet-50 v1.5 as in torchvision.models.resnet50: the stride of a block sits in its 3x3 convolution. 25,557,032
// parameters (torchvision, ResNet50_Weights meta num_params).
#include <fmt/format.h>

#include <array>

#include "sim/error.h"
#include "workloads/convolution_layers.h"
#include "workloads/dense_layers.h"
#include "workloads/models.h"
#include "workloads/optimizer.h"

namespace weft {
namespace {

Image convolution_and_norm(TrainingStep& step, const std::string& prefix, const std::string& convolution_name,
                           const std::string& norm_name, const Image& in, const ConvolutionSpec& spec) {
  step.in_layer(prefix + convolution_name);
  const Image convolved = convolution(step, in, spec);
  step.in_layer(prefix + norm_name);
  return batch_norm(step, convolved);
}

Image bottleneck(TrainingStep& step, const std::string& prefix, const Image& in, std::int64_t width,
                 std::int64_t stride) {
  constexpr std::int64_t kExpansion = 4;
  Image x = relu(step, convolution_and_norm(step, prefix, "conv1", "bn1", in, {width}));
  x = relu(step, convolution_and_norm(step, prefix, "conv2", "bn2", x, {width, 3, stride, 1}));
  x = convolution_and_norm(step, prefix, "conv3", "bn3", x, {width * kExpansion});
  Image shortcut = in;
  // After bn3, as torchvision runs it: autograd then goes through it first, which decides the gradient buckets.
  if (stride != 1 || in.c != width * kExpansion) {
    shortcut = convolution_and_norm(step, prefix, "downsample.0", "downsample.1", in, {width * kExpansion, 1, stride});
  }
  step.in_layer(prefix + "add");
  return relu(step, add(step, x, shortcut));
}

}  // namespace

Graph make_resnet50(const ModelSpec& spec) {
  std::uint32_t blocks_left = spec.layers == 0 ? kResNet50Blocks : spec.layers;
  TrainingStep step(spec, "resnet50");
  const Image images = input_images(step, spec.batch, 3, 224, 224);
  Image x = relu(step, convolution_and_norm(step, "", "conv1", "bn1", images, {64, 7, 2, 3}));
  step.in_layer("maxpool");
  x = max_pool(step, x, 3, 2, 1);
  constexpr std::array<std::int64_t, 4> kBlocks{3, 4, 6, 3};
  for (std::size_t stage = 0; stage < kBlocks.size(); ++stage) {
    const std::int64_t width = std::int64_t{64} << stage;
    for (std::int64_t block = 0; block < kBlocks[stage] && blocks_left > 0; ++block, --blocks_left) {
      const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      x = bottleneck(step, fmt::format("layer{}.{}.", stage + 1, block), x, width, stride);
    }
  }
  step.in_layer("avgpool");
  x = average_pool(step, x);
  step.in_layer("fc");
  const Matrix logits = linear(step, {x.tensor, x.n, x.c}, 1000);
  step.in_layer("loss");
  cross_entropy(step, logits);
  step.run_backward();
  sgd_with_momentum(step);
  return step.finish(spec.batch, 0);
}

}  // namespace weft
