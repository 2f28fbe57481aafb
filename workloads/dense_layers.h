// Layers on matrices of rows (samples or tokens) and features, shared by all models.
#pragma once

#include "workloads/training_step.h"

namespace weft {

struct Matrix {
  TensorId tensor;
  std::int64_t rows = 0, columns = 0;
  [[nodiscard]] std::int64_t elements() const { return rows * columns; }
};

// y = x * W^T + b, the bias in the GEMM's epilogue (cublasLt). Parameters: weight, bias; the bias' gradient comes
// first, as autograd's addmm returns it.
[[nodiscard]] Matrix linear(TrainingStep& step, const Matrix& in, std::int64_t features);
[[nodiscard]] Matrix linear_without_bias(TrainingStep& step, const Matrix& in, std::int64_t features);
// Its three products by themselves, for layers that communicate between them.
void linear_forward(TrainingStep& step, const Matrix& in, TensorId weight, const Matrix& out,
                    std::optional<TensorId> bias);
// `addend`: added to it (the GEMM's C).
void linear_data_gradient(TrainingStep& step, const Matrix& gradient, TensorId weight, const Matrix& input_gradient,
                          std::optional<TensorId> addend = std::nullopt);
void linear_weight_gradient(TrainingStep& step, const Matrix& gradient, const Matrix& in, TensorId weight);
// y = x * W^T with a weight that another layer owns.
[[nodiscard]] Matrix linear_tied(TrainingStep& step, const Matrix& in, TensorId weight, std::int64_t features,
                                 std::optional<TensorId> bias);
// Column sums of an output gradient (at::native::reduce_kernel).
void bias_gradient(TrainingStep& step, TensorId bias, TensorId gradient, std::int64_t rows, std::int64_t columns);
// at::native::fused_dropout_kernel_vec: writes a mask of one byte an element.
[[nodiscard]] Matrix dropout(TrainingStep& step, const Matrix& in);
[[nodiscard]] Matrix relu(TrainingStep& step, const Matrix& in);
// x + shortcut into a new matrix; the gradient goes to both unchanged.
[[nodiscard]] Matrix add(TrainingStep& step, const Matrix& in, const Matrix& shortcut);
// Softmax cross-entropy of each row against a class: log_softmax and nll_loss in FP32, and where training is mixed the
// loss scaled (torch.cuda.amp.GradScaler). The end of a forward pass: leaves the gradient of `logits` behind.
void cross_entropy(TrainingStep& step, const Matrix& logits);

}  // namespace weft
