#include "workloads/dense_layers.h"

#include <algorithm>

namespace weft {
namespace {

Matrix multiply(TrainingStep& step, const Matrix& in, TensorId weight, std::int64_t features,
                std::optional<TensorId> bias) {
  const Matrix out{step.activation("output", in.rows * features), in.rows, features};
  linear_forward(step, in, weight, out, bias);
  step.on_backward([&step, in, out, weight, bias] {
    const TensorId gradient = step.take_gradient(out.tensor);
    if (bias) bias_gradient(step, *bias, gradient, out.rows, out.columns);
    if (step.needs_gradient(in.tensor)) {
      const Matrix input_gradient{step.activation("input_gradient", in.elements()), in.rows, in.columns};
      linear_data_gradient(step, {gradient, out.rows, out.columns}, weight, input_gradient);
      step.add_gradient(in.tensor, input_gradient.tensor);
    }
    linear_weight_gradient(step, {gradient, out.rows, out.columns}, in, weight);
  });
  return out;
}

// A product as one kernel: rows of the first operand by columns of the second.
struct Product {
  Product(const TrainingStep& step, const GemmShape& of, TensorId rows, TensorId columns)
      : shape(of),
        plan(plan_gemm(of, GemmKind::forward, step.precision().gemm_pipe, step.precision().element_bytes,
                       step.compute_units(), step.block_shared_memory())),
        reads{row_panels(plan, rows, step.bytes(rows)), column_panels(plan, columns, step.bytes(columns))} {}
  GemmShape shape;
  GemmPlan plan;
  std::vector<TensorUse> reads;
};

}  // namespace

void linear_forward(TrainingStep& step, const Matrix& in, TensorId weight, const Matrix& out,
                    std::optional<TensorId> bias) {
  const TensorId copy = step.weight(weight);
  Product product(step, {in.rows, out.columns, in.columns}, in.tensor, copy);
  GemmValues values{
      plain(in.tensor, in.rows, in.columns), plain(copy, out.columns, in.columns), {false, true, 1, false}};
  if (bias) {
    const TensorId addend = step.weight(*bias);
    const auto columns = product.plan.columns;
    product.reads.push_back(sliced(addend, 0, step.bytes(addend), columns, 1, columns));
    values.row = addend;
  }
  step.gemm("linear", product.plan, product.shape, std::move(product.reads), out.tensor, values);
}

void linear_data_gradient(TrainingStep& step, const Matrix& gradient, TensorId weight, const Matrix& input_gradient,
                          std::optional<TensorId> addend) {
  const TensorId weights = step.weight(weight);
  Product product(step, {gradient.rows, input_gradient.columns, gradient.columns}, gradient.tensor, weights);
  GemmValues values{plain(gradient.tensor, gradient.rows, gradient.columns),
                    plain(weights, gradient.columns, input_gradient.columns),
                    {},
                    {}};
  if (addend) {
    product.reads.push_back(output_tiles(product.plan, *addend, step.bytes(*addend)));
    values.into = [a = values.a, b = values.b, from = *addend, m = product.shape.m, n = product.shape.n](
                      TensorValues& numbers, TensorId target) {
      multiply(numbers, a, b, plain(target, m, n), {});
      copy(numbers, plain(from, m, n), plain(target, m, n), true);
    };
  }
  step.gemm("linear_data_gradient", product.plan, product.shape, std::move(product.reads), input_gradient.tensor,
            values);
}

void linear_weight_gradient(TrainingStep& step, const Matrix& gradient, const Matrix& in, TensorId weight) {
  const TensorId target = step.gradient_target(weight);
  const OpId writer = step.gemm("linear_weight_gradient", {gradient.columns, in.columns, in.rows},
                                GemmKind::weight_gradient, gradient.tensor, in.tensor, target,
                                {plain(gradient.tensor, gradient.rows, gradient.columns),
                                 plain(in.tensor, in.rows, in.columns),
                                 {true, false, 1, false},
                                 {}});
  step.gradient_written(weight, target, writer);
}

Matrix linear(TrainingStep& step, const Matrix& in, std::int64_t features) {
  const TensorId weight = step.parameter("weight", features * in.columns);
  const TensorId bias = step.parameter("bias", features);
  return multiply(step, in, weight, features, bias);
}

Matrix linear_without_bias(TrainingStep& step, const Matrix& in, std::int64_t features) {
  return multiply(step, in, step.parameter("weight", features * in.columns), features, std::nullopt);
}

Matrix linear_tied(TrainingStep& step, const Matrix& in, TensorId weight, std::int64_t features,
                   std::optional<TensorId> bias) {
  return multiply(step, in, weight, features, bias);
}

void bias_gradient(TrainingStep& step, TensorId bias, TensorId gradient, std::int64_t rows, std::int64_t columns) {
  const TensorId target = step.gradient_target(bias);
  // reduce_kernel<128, 4, ReduceOp<sum>>: 32x4 threads of 4 columns, 48 registers; more blocks where rows are many.
  StreamSpec launch;
  const std::int64_t along_rows = std::max<std::int64_t>(1, rows / 1024);
  launch.blocks = static_cast<std::uint64_t>((columns + 127) / 128 * along_rows);
  launch.registers = 48;
  launch.round_bytes = std::uint64_t{128} * 16;
  const OpId writer = step.stream("bias_gradient", launch, {gradient}, {target}, static_cast<double>(rows * columns));
  step.computes(writer, [=](TensorValues& values) { column_sums(values, plain(gradient, rows, columns), target); });
  step.gradient_written(bias, target, writer);
}

Matrix dropout(TrainingStep& step, const Matrix& in) {
  Matrix out = in;
  out.tensor = step.activation("output", in.elements());
  const TensorId mask = step.temporary("mask", in.elements(), MemoryClass::activations);
  // About ten operations of the Philox generator an element.
  step.elementwise("dropout", in.elements(), {in.tensor}, {out.tensor, mask}, 10);
  step.on_backward([&step, in, out, mask] {
    const TensorId gradient = step.take_gradient(out.tensor);
    const TensorId input_gradient = step.activation("input_gradient", in.elements());
    step.elementwise("dropout_backward", in.elements(), {gradient, mask}, {input_gradient}, 2);
    step.add_gradient(in.tensor, input_gradient);
  });
  return out;
}

Matrix relu(TrainingStep& step, const Matrix& in) {
  step.relu(in.tensor, in.elements());
  return in;
}

Matrix add(TrainingStep& step, const Matrix& in, const Matrix& shortcut) {
  Matrix out = in;
  out.tensor = step.activation("sum", in.elements());
  const OpId op = step.elementwise("add", in.elements(), {in.tensor, shortcut.tensor}, {out.tensor});
  step.computes(op, [=](TensorValues& values) {
    const Stack to = plain(out.tensor, out.rows, out.columns);
    copy(values, plain(in.tensor, in.rows, in.columns), to);
    copy(values, plain(shortcut.tensor, in.rows, in.columns), to, true);
  });
  step.on_backward([&step, in, shortcut, out] {
    const TensorId gradient = step.take_gradient(out.tensor);
    step.add_gradient(in.tensor, gradient);
    step.add_gradient(shortcut.tensor, gradient);
  });
  return out;
}

void cross_entropy(TrainingStep& step, const Matrix& logits) {
  const bool mixed = step.precision().mixed;
  const TensorId log_probabilities =
      step.temporary("log_probabilities", 4 * logits.elements(), MemoryClass::activations);
  const TensorId labels = step.temporary("labels", 8 * logits.rows, MemoryClass::activations);
  const TensorId loss = step.temporary("loss", 4, MemoryClass::activations);
  const auto elements = static_cast<double>(logits.elements());
  // softmax_warp_forward: 4 rows a block, 80 registers; backward 106. Exponential, sum and logarithm: 4 an element.
  step.stream("log_softmax", rows_launch(logits.rows, 4, 80), {logits.tensor}, {log_probabilities}, 4 * elements);
  // One log probability, in a sector of its own, a row.
  const std::uint64_t picked_bytes =
      std::min(step.bytes(log_probabilities), static_cast<std::uint64_t>(32 * logits.rows));
  step.emit("nll_loss",
            stream_kernel(rows_launch(1, 1, 32), {{labels, step.bytes(labels)}, {log_probabilities, picked_bytes}},
                          {{loss, step.bytes(loss)}}, static_cast<double>(logits.rows)));
  if (mixed) step.stream("scale_loss", rows_launch(1, 1, 16), {loss}, {loss}, 1);
  step.on_backward([&step, logits, log_probabilities, labels, loss, elements, mixed] {
    if (mixed) step.stream("scale_loss_backward", rows_launch(1, 1, 16), {loss}, {loss}, 1);
    const TensorId picked = step.temporary("nll_gradient", 4 * logits.elements(), MemoryClass::activations);
    step.elementwise("nll_loss_backward", logits.elements(), {labels, loss}, {picked});
    const TensorId gradient = step.activation("logits_gradient", logits.elements());
    step.stream("log_softmax_backward", rows_launch(logits.rows, 4, 106), {picked, log_probabilities}, {gradient},
                4 * elements);
    step.add_gradient(logits.tensor, gradient);
  });
}

}  // namespace weft
