// Layers of convolutional networks, channels last. Each emits its forward kernels, registers its backward ones and
// returns its output.
#pragma once

#include "workloads/training_step.h"

namespace weft {

// n images of h x w pixels with c channels; `tensor` in the step's precision.
struct Image {
  TensorId tensor;
  std::int64_t n = 0, c = 0, h = 0, w = 0;
  [[nodiscard]] std::int64_t rows() const { return n * h * w; }
  [[nodiscard]] std::int64_t elements() const { return rows() * c; }
};

struct ConvolutionSpec {
  std::int64_t channels = 0;  // of the output
  std::int64_t filter = 1;    // height and width
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool bias = false;
};

// The input batch, in GPU memory as FP32; amp casts it.
[[nodiscard]] Image input_images(TrainingStep& step, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w);

// Implicit GEMM (cuDNN): forward M = N*P*Q, N = K, K = C*R*S; data gradient M = N*H*W, N = C, K = K*R*S; weight
// gradient M = K, N = C*R*S, K = N*P*Q. A block reads each pixel of its input patch, halo included, once from L2: the
// R*S uses of a pixel come out of shared memory and L1. Parameters: weight, bias.
[[nodiscard]] Image convolution(TrainingStep& step, const Image& in, const ConvolutionSpec& spec);
// ATen's channels-last kernels: statistics and normalisation forward (two reads, one write), reduction and input
// gradient backward (four reads, one write); repeated reads hit L2 where they fit. Parameters: weight, bias.
[[nodiscard]] Image batch_norm(TrainingStep& step, const Image& in);
// In place, as torchvision's models do.
[[nodiscard]] Image relu(TrainingStep& step, const Image& in);
// out += shortcut, in place; the gradient goes to both unchanged.
[[nodiscard]] Image add(TrainingStep& step, const Image& out, const Image& shortcut);
// Saves the position of each maximum as int64, as PyTorch does.
[[nodiscard]] Image max_pool(TrainingStep& step, const Image& in, std::int64_t filter, std::int64_t stride,
                             std::int64_t padding);
// Global average: one pixel an image.
[[nodiscard]] Image average_pool(TrainingStep& step, const Image& in);

}  // namespace weft
