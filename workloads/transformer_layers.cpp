#include "workloads/transformer_layers.h"

#include <algorithm>

namespace weft {
namespace {

Matrix activation(TrainingStep& step, const Matrix& in, const std::string& name, double flops_per_element) {
  Matrix out = in;
  out.tensor = step.activation("output", in.elements());
  step.elementwise(name, in.elements(), {in.tensor}, {out.tensor}, flops_per_element);
  return out;
}

// The rows of a table that kernels with one row a thread block touch. Which rows is data: consecutive ones stand in for
// them, and wrap at the table's end.
TensorUse table_rows(TrainingStep& step, TensorId table, std::uint64_t row_bytes) {
  return {table, 0, row_bytes, 1, static_cast<std::uint32_t>(step.bytes(table) / row_bytes)};
}

}  // namespace

Matrix layer_norm(TrainingStep& step, const Matrix& in) {
  const TensorId weight = step.parameter("weight", in.columns);
  const TensorId bias = step.parameter("bias", in.columns);
  Matrix out = in;
  out.tensor = step.activation("output", in.elements());
  const TensorId statistics = step.temporary("mean_and_invstd", 2 * 4 * in.rows, MemoryClass::activations);
  const auto elements = static_cast<double>(in.elements());
  step.stream("layer_norm", rows_launch(in.rows, 1, 40), {in.tensor, weight, bias}, {out.tensor, statistics},
              6 * elements);
  step.on_backward([&step, in, out, weight, bias, statistics, elements] {
    const TensorId gradient = step.take_gradient(out.tensor);
    const TensorId input_gradient = step.activation("input_gradient", in.elements());
    step.stream("layer_norm_backward_input", rows_launch(in.rows, 1, 40), {gradient, in.tensor, statistics, weight},
                {input_gradient}, 8 * elements);
    const TensorId weight_target = step.gradient_target(weight, true);
    const TensorId bias_target = step.gradient_target(bias, true);
    const OpId writer = step.stream("layer_norm_backward_weight", channels_launch(in.rows, in.columns, 4),
                                    {gradient, in.tensor, statistics}, {weight_target, bias_target}, 4 * elements);
    step.gradient_written(weight, weight_target, writer);
    step.gradient_written(bias, bias_target, writer);
    step.add_gradient(in.tensor, input_gradient);
  });
  return out;
}

Matrix rms_norm(TrainingStep& step, const Matrix& in) {
  const TensorId weight = step.parameter("weight", in.columns);
  Matrix out = in;
  out.tensor = step.activation("output", in.elements());
  const TensorId statistics = step.temporary("inverse_root", 4 * in.rows, MemoryClass::activations);
  const auto elements = static_cast<double>(in.elements());
  step.stream("rms_norm", rows_launch(in.rows, 1, 40), {in.tensor, weight}, {out.tensor, statistics}, 4 * elements);
  step.on_backward([&step, in, out, weight, statistics, elements] {
    const TensorId gradient = step.take_gradient(out.tensor);
    const TensorId input_gradient = step.activation("input_gradient", in.elements());
    step.stream("rms_norm_backward_input", rows_launch(in.rows, 1, 40), {gradient, in.tensor, statistics, weight},
                {input_gradient}, 6 * elements);
    const TensorId target = step.gradient_target(weight, true);
    const OpId writer = step.stream("rms_norm_backward_weight", channels_launch(in.rows, in.columns, 4),
                                    {gradient, in.tensor, statistics}, {target}, 3 * elements);
    step.gradient_written(weight, target, writer);
    step.add_gradient(in.tensor, input_gradient);
  });
  return out;
}

Matrix silu_product(TrainingStep& step, const Matrix& gate, const Matrix& in) {
  Matrix out = in;
  out.tensor = step.activation("output", in.elements());
  step.elementwise("silu_product", in.elements(), {gate.tensor, in.tensor}, {out.tensor}, 12);
  step.on_backward([&step, gate, in, out] {
    const TensorId gradient = step.take_gradient(out.tensor);
    const TensorId of_gate = step.activation("gate_gradient", in.elements());
    const TensorId of_input = step.activation("input_gradient", in.elements());
    step.elementwise("silu_product_backward", in.elements(), {gradient, gate.tensor, in.tensor}, {of_gate, of_input},
                     20);
    step.add_gradient(gate.tensor, of_gate);
    step.add_gradient(in.tensor, of_input);
  });
  return out;
}

Matrix gelu(TrainingStep& step, const Matrix& in) {
  // The error function is about 20 operations, its derivative about 30.
  const Matrix out = activation(step, in, "gelu", 20);
  step.on_backward([&step, in, out] {
    const TensorId gradient = step.take_gradient(out.tensor);
    const TensorId input_gradient = step.activation("input_gradient", in.elements());
    step.elementwise("gelu_backward", in.elements(), {gradient, in.tensor}, {input_gradient}, 30);
    step.add_gradient(in.tensor, input_gradient);
  });
  return out;
}

Matrix tanh(TrainingStep& step, const Matrix& in) {
  const Matrix out = activation(step, in, "tanh", 10);
  step.on_backward([&step, in, out] {
    const TensorId gradient = step.take_gradient(out.tensor);
    const TensorId input_gradient = step.activation("input_gradient", in.elements());
    step.elementwise("tanh_backward", in.elements(), {gradient, out.tensor}, {input_gradient}, 3);
    step.add_gradient(in.tensor, input_gradient);
  });
  return out;
}

Matrix attention(TrainingStep& step, const AttentionShape& shape, const Matrix& query, const Matrix& key,
                 const Matrix& value) {
  const std::int64_t pairs = shape.batch * shape.heads;
  const std::int64_t s = shape.sequence;
  const std::int64_t d = shape.head_size;
  const std::int64_t scores_elements = pairs * s * s;
  const TensorId raw = step.activation("scores", scores_elements);
  const TensorId scaled = step.activation("scaled_scores", scores_elements);
  const TensorId masked = step.activation("masked_scores", scores_elements);
  const TensorId probabilities = step.activation("probabilities", scores_elements);
  const TensorId mask = step.activation("attention_mask", shape.tokens());
  const auto kind = GemmKind::forward;

  step.gemm("batched_scores", {s, s, d, pairs}, kind, query.tensor, key.tensor, raw);
  step.elementwise("scale_scores", scores_elements, {raw}, {scaled});
  step.elementwise("add_mask", scores_elements, {scaled, mask}, {masked});
  const auto softmax = rows_launch(pairs * s, 4, 80);
  step.stream("softmax", softmax, {masked}, {probabilities}, 4 * static_cast<double>(scores_elements));
  // Scale, mask and softmax undo in two kernels; the mask has no gradient.
  step.on_backward([&step, query, key, probabilities, scores_elements, s, d, pairs] {
    const TensorId gradient = step.take_gradient(probabilities);
    const TensorId masked_gradient = step.activation("softmax_gradient", scores_elements);
    step.stream("softmax_backward", rows_launch(pairs * s, 4, 106), {gradient, probabilities}, {masked_gradient},
                4 * static_cast<double>(scores_elements));
    const TensorId raw_gradient = step.activation("scores_gradient", scores_elements);
    step.elementwise("scale_scores_backward", scores_elements, {masked_gradient}, {raw_gradient});
    const TensorId query_gradient = step.activation("query_gradient", query.elements());
    step.gemm("batched_query_gradient", {s, d, s, pairs}, kind, raw_gradient, key.tensor, query_gradient);
    const TensorId key_gradient = step.activation("key_gradient", key.elements());
    step.gemm("batched_key_gradient", {s, d, s, pairs}, kind, raw_gradient, query.tensor, key_gradient);
    step.add_gradient(query.tensor, query_gradient);
    step.add_gradient(key.tensor, key_gradient);
  });
  const Matrix dropped = dropout(step, {probabilities, pairs * s, s});

  const TensorId heads = step.activation("context_heads", value.elements());
  step.gemm("batched_context", {s, d, s, pairs}, kind, dropped.tensor, value.tensor, heads);
  const Matrix context{step.activation("context", value.elements()), shape.tokens(), shape.hidden()};
  step.elementwise("merge_heads", context.elements(), {heads}, {context.tensor});
  step.on_backward([&step, value, dropped, context, s, d, pairs] {
    const TensorId gradient = step.take_gradient(context.tensor);
    const TensorId heads_gradient = step.activation("context_heads_gradient", value.elements());
    step.elementwise("split_heads", value.elements(), {gradient}, {heads_gradient});
    const TensorId probabilities_gradient = step.activation("probabilities_gradient", dropped.elements());
    step.gemm("batched_probabilities_gradient", {s, s, d, pairs}, kind, heads_gradient, value.tensor,
              probabilities_gradient);
    const TensorId value_gradient = step.activation("value_gradient", value.elements());
    step.gemm("batched_value_gradient", {s, d, s, pairs}, kind, dropped.tensor, heads_gradient, value_gradient);
    step.add_gradient(dropped.tensor, probabilities_gradient);
    step.add_gradient(value.tensor, value_gradient);
  });
  return context;
}

Matrix embedding(TrainingStep& step, TensorId table, std::int64_t tokens, std::int64_t hidden) {
  const Matrix out{step.activation("output", tokens * hidden), tokens, hidden};
  const TensorId indices = step.temporary("indices", 8 * tokens, MemoryClass::activations);
  const auto row_bytes = static_cast<std::uint64_t>(4 * hidden);
  KernelNode gather = stream_kernel(rows_launch(tokens, 1, 32), {{indices, step.bytes(indices)}},
                                    {{out.tensor, step.bytes(out.tensor)}}, 0);
  gather.reads.push_back(table_rows(step, table, row_bytes));
  step.emit("embedding", std::move(gather));
  step.on_backward([&step, table, out, indices, row_bytes] {
    const TensorId gradient = step.take_gradient(out.tensor);
    const TensorId target = step.gradient_target(table, true);
    step.elementwise("zero_gradient", static_cast<std::int64_t>(step.bytes(target) / 4), {}, {target}, 0);
    KernelNode scatter =
        stream_kernel(rows_launch(out.rows, 1, 32), {{gradient, step.bytes(gradient)}, {indices, step.bytes(indices)}},
                      {}, static_cast<double>(out.elements()));
    scatter.reads.push_back(table_rows(step, target, row_bytes));
    scatter.writes.push_back(table_rows(step, target, row_bytes));
    const OpId writer = step.emit("embedding_backward", std::move(scatter));
    step.gradient_written(table, target, writer);
  });
  return out;
}

Matrix pick_rows(TrainingStep& step, const Matrix& in, std::int64_t rows) {
  const Matrix out{step.activation("picked", rows * in.columns), rows, in.columns};
  const std::uint64_t picked = step.bytes(out.tensor);
  const StreamSpec launch = elementwise_launch(out.elements());
  step.emit("index_select", stream_kernel(launch, {{in.tensor, picked}}, {{out.tensor, picked}}, 0));
  step.on_backward([&step, in, out, launch, picked] {
    const TensorId gradient = step.take_gradient(out.tensor);
    const TensorId input_gradient = step.activation("picked_gradient", in.elements());
    step.elementwise("zero_gradient", in.elements(), {}, {input_gradient}, 0);
    step.emit("index_select_backward", stream_kernel(launch, {{gradient, picked}}, {{input_gradient, picked}},
                                                     static_cast<double>(out.elements())));
    step.add_gradient(in.tensor, input_gradient);
  });
  return out;
}

}  // namespace weft
