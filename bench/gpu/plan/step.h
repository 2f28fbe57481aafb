// One piece of work of a victim: a library call or an own kernel, as data. Shapes are those of PyTorch's operators, so
// that the reader of the results can build the same work from them.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace weft::gpu_probe {

enum class Element { bf16, fp16, fp32, tf32 };  // tf32: FP32 in memory, rounded for the tensor cores
[[nodiscard]] std::int64_t bytes_of(Element element);

// Row-major C[m, n] = A[m, k] B[k, n]. A transposed operand lies in memory the other way round, as gradients and
// weights do.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;
  bool a_transposed = false, b_transposed = false;
};

// Square filters, NHWC in memory, dilation and groups 1.
struct Convolution {
  std::int64_t samples = 0, channels = 0, height = 0, width = 0;
  std::int64_t filters = 0, filter_side = 1, stride = 1, padding = 0;
  [[nodiscard]] std::int64_t out_height() const { return (height + 2 * padding - filter_side) / stride + 1; }
  [[nodiscard]] std::int64_t out_width() const { return (width + 2 * padding - filter_side) / stride + 1; }
};

// Elementwise work uses it as rows * columns elements.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  [[nodiscard]] std::int64_t elements() const { return rows * columns; }
};

struct Heads {
  std::int64_t batch = 0, heads = 0, length = 0, width = 0;
};

// Blocks of a fixed time that need one unit each and touch no memory: what is left is the waves.
struct TimedBlocks {
  std::int64_t blocks = 0, cycles = 0;
};

enum class StepKind {
  product,
  conv_forward,
  conv_backward_data,
  conv_backward_filter,
  add,
  gelu,
  gelu_backward,
  dropout_backward,
  row_sum,
  layer_norm,
  layer_norm_backward,
  softmax,
  softmax_backward,
  attention,
  adam,
  timed_blocks,
};

struct Step {
  StepKind kind = StepKind::add;
  Element element = Element::fp32;
  std::variant<Product, Convolution, Matrix, Heads, TimedBlocks> shape;
};

// As PyTorch's profiler records it ("Input Dims", "Input type").
struct Operator {
  std::string name;
  std::vector<std::vector<std::int64_t>> inputs;
  std::string type;
};
[[nodiscard]] Operator operator_of(const Step& step);

// What moves through memory if nothing stays in a cache, and floating-point operations.
[[nodiscard]] double traffic_bytes(const Step& step);
[[nodiscard]] double flops(const Step& step);

// A rough time on a Hopper GPU, for plans only: no measurement uses it.
[[nodiscard]] double estimated_us(const Step& step);

enum class Library { none, cublas, cudnn };
[[nodiscard]] Library library_of(const Step& step);

}  // namespace weft::gpu_probe
