// VGG-16 (configuration D) as in torchvision.models.vgg16, without batch norm. 138,357,544 parameters (torchvision,
// VGG16_Weights meta num_params).
#include <fmt/format.h>

#include <array>

#include "workloads/convolution_layers.h"
#include "workloads/dense_layers.h"
#include "workloads/models.h"
#include "workloads/optimizer.h"

namespace weft {

Graph make_vgg16(const ModelSpec& spec) {
  TrainingStep step(spec, "vgg16");
  Image x = input_images(step, spec.batch, 3, 224, 224);
  constexpr std::int64_t kPool = 0;
  constexpr std::array<std::int64_t, 18> kLayers{64,    64,  kPool, 128, 128,   kPool, 256, 256, 256,
                                                 kPool, 512, 512,   512, kPool, 512,   512, 512, kPool};
  // Indices of torchvision's `features`, where each ReLU is a layer of its own.
  int index = 0;
  for (const std::int64_t channels : kLayers) {
    step.in_layer(fmt::format("features.{}", index));
    if (channels == kPool) {
      x = max_pool(step, x, 2, 2, 0);
      index += 1;
      continue;
    }
    x = convolution(step, x, {channels, 3, 1, 1, true});
    step.in_layer(fmt::format("features.{}", index + 1));
    x = relu(step, x);
    index += 2;
  }
  // The adaptive pool to 7x7 does nothing at 224 x 224; flattening is a view.
  Matrix y{x.tensor, x.n, x.c * x.h * x.w};
  for (const int layer : {0, 3}) {
    step.in_layer(fmt::format("classifier.{}", layer));
    y = linear(step, y, 4096);
    step.in_layer(fmt::format("classifier.{}", layer + 1));
    y = relu(step, y);
    step.in_layer(fmt::format("classifier.{}", layer + 2));
    y = dropout(step, y);
  }
  step.in_layer("classifier.6");
  const Matrix logits = linear(step, y, 1000);
  step.in_layer("loss");
  cross_entropy(step, logits);
  step.run_backward();
  sgd_with_momentum(step);
  return step.finish(spec.batch, 0);
}

}  // namespace weft
