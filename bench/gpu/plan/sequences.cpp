#include <array>

#include "bench/gpu/plan/victims.h"

namespace weft::gpu_probe {
namespace {

Step matrix(StepKind kind, std::int64_t rows, std::int64_t columns) {
  return {kind, Element::bf16, Matrix{rows, columns}};
}

// Both gradients of y[tokens, out] = x[tokens, in] W[out, in]^T: for the data, then for the weights.
void linear_backward(std::vector<Step>& steps, std::int64_t tokens, std::int64_t in, std::int64_t out) {
  steps.push_back({StepKind::product, Element::bf16, Product{tokens, in, out, 1, false, false}});
  steps.push_back({StepKind::product, Element::bf16, Product{out, in, tokens, 1, true, false}});
}

}  // namespace

std::vector<Step> resnet50_backward(std::int64_t samples) {
  // He et al., Deep residual learning, table 1, with the stride in the 3 x 3 convolution as torchvision has it. Each
  // distinct layer of a stage once: channels, height, filters, side, stride.
  struct Layer {
    std::int64_t channels, height, filters, side, stride;
  };
  static constexpr auto kLayers = std::to_array<Layer>({
      {512, 7, 2048, 1, 1},
      {512, 7, 512, 3, 1},
      {2048, 7, 512, 1, 1},
      {512, 14, 512, 3, 2},
      {256, 14, 1024, 1, 1},
      {256, 14, 256, 3, 1},
      {1024, 14, 256, 1, 1},
      {512, 28, 1024, 1, 2},
      {128, 28, 512, 1, 1},
      {128, 28, 128, 3, 1},
      {512, 28, 128, 1, 1},
      {256, 56, 512, 1, 2},
      {64, 56, 256, 1, 1},
      {64, 56, 64, 3, 1},
      {256, 56, 64, 1, 1},
  });
  std::vector<Step> steps;
  for (const Layer& layer : kLayers) {
    const Convolution c{samples,       layer.channels, layer.height, layer.height,
                        layer.filters, layer.side,     layer.stride, layer.side / 2};
    steps.push_back({StepKind::conv_backward_data, Element::fp16, c});
    steps.push_back({StepKind::conv_backward_filter, Element::fp16, c});
  }
  return steps;
}

std::vector<Step> transformer_backward(const TransformerLayer& layer) {
  const std::int64_t tokens = layer.batch * layer.length;
  const std::int64_t matrices = layer.batch * layer.heads;
  const std::int64_t head_width = layer.width / layer.heads;
  const std::int64_t wide = 4 * layer.width;
  const auto bmm = [&](std::int64_t m, std::int64_t n, std::int64_t k, bool a_transposed, bool b_transposed) {
    return Step{StepKind::product, Element::bf16, Product{m, n, k, matrices, a_transposed, b_transposed}};
  };
  std::vector<Step> steps;
  steps.push_back(matrix(StepKind::dropout_backward, tokens, layer.width));
  linear_backward(steps, tokens, wide, layer.width);
  steps.push_back(matrix(StepKind::gelu_backward, tokens, wide));
  linear_backward(steps, tokens, layer.width, wide);
  steps.push_back(matrix(StepKind::layer_norm_backward, tokens, layer.width));
  steps.push_back(matrix(StepKind::add, tokens, layer.width));
  steps.push_back(matrix(StepKind::dropout_backward, tokens, layer.width));
  linear_backward(steps, tokens, layer.width, layer.width);
  // Of softmax(Q K^T) V: the values, the probabilities, the scores, then the queries and the keys.
  steps.push_back(bmm(layer.length, head_width, layer.length, true, false));
  steps.push_back(bmm(layer.length, layer.length, head_width, false, true));
  steps.push_back(matrix(StepKind::softmax_backward, matrices * layer.length, layer.length));
  steps.push_back(bmm(layer.length, head_width, layer.length, false, false));
  steps.push_back(bmm(layer.length, head_width, layer.length, true, false));
  linear_backward(steps, tokens, layer.width, 3 * layer.width);
  steps.push_back(matrix(StepKind::layer_norm_backward, tokens, layer.width));
  steps.push_back(matrix(StepKind::add, tokens, layer.width));
  return steps;
}

}  // namespace weft::gpu_probe
