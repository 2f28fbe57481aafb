#include "workloads/single_sample/sample_split.h"

#include <algorithm>

#include "sim/error.h"

namespace weft {

namespace {

constexpr std::uint64_t kOperandAlignment = 128;  // Operand::base

// The bytes that a stack is taken to touch: as many as it has, from where it begins in its tensor. Parts of rows are
// taken as if they were whole rows, so that different parts are different lines.
struct Touched {
  std::uint64_t offset = 0, bytes = 0;
};

Touched touched(const Stack& stack, std::int64_t element_bytes) {
  const std::int64_t rows = stack.stride >= stack.row_stride ? stack.count * stack.rows : stack.rows;
  const std::int64_t in_row = stack.row_stride > 0 ? stack.offset % stack.row_stride : 0;
  std::int64_t first = stack.offset - in_row;
  if (in_row > 0) first += rows * in_row;
  return {static_cast<std::uint64_t>(first * element_bytes) / kOperandAlignment * kOperandAlignment,
          static_cast<std::uint64_t>(stack.elements() * element_bytes)};
}

}  // namespace

Stack beside(TensorId tensor, std::int64_t rows, std::int64_t count, std::int64_t columns, std::int64_t offset) {
  return {tensor, count, rows, columns, offset, columns, count * columns};
}

Stack behind(TensorId tensor, std::int64_t count, std::int64_t rows, std::int64_t columns, std::int64_t offset) {
  return {tensor, count, rows, columns, offset, rows * columns, columns};
}

void run_backward_from(TrainingStep& step, const Matrix& out, SampleGraph& sample) {
  sample.output = out.tensor;
  sample.output_gradient = step.activation("output_gradient", out.elements());
  step.add_gradient(out.tensor, sample.output_gradient);
  step.run_backward();
  sample.input_gradient = step.take_gradient(sample.input);
}

OpId communicate(TrainingStep& step, const std::string& name, CollectiveKind kind,
                 const std::vector<std::uint32_t>& gpus, const TensorRange& source, const TensorRange& target,
                 std::optional<DataType> type, bool fused) {
  Node node;
  node.kind = NodeKind::collective;
  node.name = name;
  node.collective.kind = kind;
  node.collective.fused = fused;
  node.collective.bytes = Bytes(static_cast<std::int64_t>(source.bytes));
  node.collective.type = type.value_or(step.precision().mixed ? DataType::fp16 : DataType::fp32);
  node.collective.group_size = static_cast<std::uint32_t>(gpus.size());
  node.collective.group_ranks = gpus;
  node.collective.source = source;
  node.collective.target = target;
  return step.add(std::move(node));
}

TensorRange whole(TrainingStep& step, TensorId tensor) { return {tensor, 0, step.bytes(tensor)}; }

TensorRange elements(TrainingStep& step, TensorId tensor, std::int64_t first, std::int64_t count) {
  const auto bytes = [&](std::int64_t n) { return static_cast<std::uint64_t>(n * step.precision().element_bytes); };
  return {tensor, bytes(first), bytes(count)};
}

GemmPlan without_split(GemmPlan plan, std::int64_t batch) {
  plan.rounds *= plan.k_split;
  plan.k_split = 1;
  plan.slices = static_cast<std::uint32_t>(batch);
  plan.shape.grid[2] = plan.slices;
  return plan;
}

OpId product(TrainingStep& step, const std::string& name, const Stack& a, const Stack& b, const Stack& c,
             const ProductForm& form, GemmKind kind) {
  const std::int64_t batch = c.count * c.repeat;
  const GemmShape shape{c.rows, c.columns, form.transpose_a ? a.rows : a.columns, batch};
  const Precision& precision = step.precision();
  const GemmPlan plan = without_split(plan_gemm(shape, kind, precision.gemm_pipe, precision.element_bytes,
                                                step.compute_units(), step.block_shared_memory()),
                                      batch);
  const Touched of_a = touched(a, precision.element_bytes);
  const Touched of_b = touched(b, precision.element_bytes);
  const Touched of_c = touched(c, precision.element_bytes);
  const auto rows = static_cast<std::uint64_t>(plan.rows * a.count);
  const auto columns = static_cast<std::uint64_t>(plan.columns * b.count);
  const TensorUse left =
      sliced(a.tensor, of_a.offset, of_a.bytes, rows, plan.columns, static_cast<std::uint32_t>(rows));
  const TensorUse right =
      plan.columns == 1
          ? sliced(b.tensor, of_b.offset, of_b.bytes, columns, plan.rows, static_cast<std::uint32_t>(columns))
          : sliced(b.tensor, of_b.offset, of_b.bytes, columns, 1, static_cast<std::uint32_t>(columns));
  const TensorUse result = sliced(c.tensor, of_c.offset, of_c.bytes, plan.shape.blocks());
  std::vector<TensorUse> reads{left, right};
  if (form.add) reads.push_back(result);
  KernelNode kernel = gemm_kernel(plan, shape, precision.gemm_pipe, std::move(reads), {result});
  const OpId op = step.emit(name + "_" + plan.tile_name(), std::move(kernel));
  step.computes(op, [a, b, c, form](TensorValues& values) { multiply(values, a, b, c, form); });
  return op;
}

OpId rearrange(TrainingStep& step, const std::string& name, const std::vector<Move>& moves) {
  std::vector<Streamed> reads, writes;
  std::int64_t elements = 0;
  const std::int64_t element_bytes = step.precision().element_bytes;
  // Moves within one tensor are one operand, from the first to the last of them.
  const auto stream = [&](const Stack& stack, std::vector<Streamed>& operands) {
    const Touched part = touched(stack, element_bytes);
    for (Streamed& known : operands) {
      if (known.tensor != stack.tensor) continue;
      const std::uint64_t end = std::max(known.offset + known.bytes, part.offset + part.bytes);
      known.offset = std::min(known.offset, part.offset);
      known.bytes = end - known.offset;
      return;
    }
    operands.push_back({stack.tensor, part.bytes, part.offset});
  };
  double flops = 0;
  for (const Move& move : moves) {
    stream(move.from, reads);
    stream(move.to, writes);
    if (move.add) stream(move.to, reads);
    elements += move.from.elements();
    flops += move.add ? static_cast<double>(move.from.elements()) : 0;
  }
  const OpId op = step.emit(name, stream_kernel(elementwise_launch(elements), reads, writes, flops));
  step.computes(op, [moves](TensorValues& values) {
    for (const Move& move : moves) copy(values, move.from, move.to, move.add);
  });
  return op;
}

TensorId row_softmax(TrainingStep& step, const Stack& scores, float scale, const AttentionMask& mask) {
  const TensorId probabilities = step.activation("probabilities", scores.elements());
  // softmax_warp_forward: 4 rows a block, 80 registers; scale and mask as in Megatron's fused kernel.
  const OpId op = step.stream("scaled_masked_softmax", rows_launch(scores.count * scores.rows, 4, 80), {scores.tensor},
                              {probabilities}, 6 * static_cast<double>(scores.elements()));
  Stack to = scores;
  to.tensor = probabilities;
  step.computes(op,
                [scores, to, scale, mask](TensorValues& values) { masked_softmax(values, scores, to, scale, mask); });
  return probabilities;
}

TensorId row_softmax_backward(TrainingStep& step, const Stack& probabilities, TensorId gradient, float scale) {
  const TensorId result = step.activation("scores_gradient", probabilities.elements());
  const OpId op =
      step.stream("scaled_masked_softmax_backward", rows_launch(probabilities.count * probabilities.rows, 4, 106),
                  {gradient, probabilities.tensor}, {result}, 5 * static_cast<double>(probabilities.elements()));
  Stack from = probabilities;
  from.tensor = gradient;
  Stack to = probabilities;
  to.tensor = result;
  step.computes(op, [probabilities, from, to, scale](TensorValues& values) {
    softmax_gradient(values, probabilities, from, to, scale);
  });
  return result;
}

}  // namespace weft
