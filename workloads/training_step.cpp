#include "workloads/training_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"

namespace weft {

Precision precision_of(const std::string& name) {
  if (name == "fp32") return {false, 4, Pipe::fp32};
  if (name == "tf32") return {false, 4, Pipe::tensor_tf32};
  if (name == "amp") return {true, 2, Pipe::tensor_fp16};
  throw InputError("", "/workload/precision", fmt::format("expected 'fp32', 'tf32' or 'amp', got '{}'", name));
}

TrainingStep::TrainingStep(const ModelSpec& spec, std::string name)
    : precision_(precision_of(spec.precision)),
      compute_units_(spec.compute_units),
      block_shared_memory_(spec.block_shared_memory),
      graph_(std::move(name)) {
  parameters_ = graph_.add_tensor("parameters", Bytes(0), MemoryClass::parameters);
  gradients_ = graph_.add_tensor("gradients", Bytes(0), MemoryClass::gradients);
}

TensorId TrainingStep::parameter(const std::string& name, std::int64_t elements, std::uint32_t uses) {
  const std::string full = layer_ + "." + name;
  const TensorId parameter = graph_.add_view(full, Bytes(4 * elements), parameters_);
  graph_.tensor(parameter).distributed = apart_;
  const TensorId gradient = graph_.add_view(full + ".grad", Bytes(4 * elements), gradients_);
  graph_.tensor(gradient).gradient_of = parameter;
  gradient_tensor_[parameter] = gradient;
  contributions_left_[parameter] = uses;
  return parameter;
}

TensorId TrainingStep::activation(const std::string& name, std::int64_t elements) {
  return temporary(name, elements * precision_.element_bytes, MemoryClass::activations);
}

TensorId TrainingStep::temporary(const std::string& name, std::int64_t bytes, MemoryClass memory_class) {
  return graph_.add_tensor(layer_ + "." + name, Bytes(bytes), memory_class);
}

TensorId TrainingStep::weight(TensorId parameter) {
  if (!precision_.mixed) return parameter;
  if (const auto found = cast_.find(parameter); found != cast_.end()) return found->second;
  const std::int64_t elements = graph_.tensor(parameter).bytes.count() / 4;
  // Autograd saves the copy for the backward pass: it lives and counts as an activation does.
  const TensorId copy = graph_.add_tensor(graph_.tensor(parameter).name + ".fp16",
                                          Bytes(elements * precision_.element_bytes), MemoryClass::activations);
  cast_[parameter] = copy;
  elementwise("cast_to_fp16", elements, {parameter}, {copy});
  return copy;
}

OpId TrainingStep::emit(const std::string& name, KernelNode kernel) {
  Node node;
  node.name = name;
  node.kernel = std::move(kernel);
  return add(std::move(node));
}

OpId TrainingStep::add(Node node) {
  node.layer = layer_;
  node.phase = phase_;
  return graph_.add(std::move(node));
}

OpId TrainingStep::elementwise(const std::string& name, std::int64_t elements, const std::vector<TensorId>& reads,
                               const std::vector<TensorId>& writes, double flops_per_element) {
  return stream(name, elementwise_launch(elements), reads, writes, flops_per_element * static_cast<double>(elements));
}

OpId TrainingStep::stream(const std::string& name, const StreamSpec& launch, const std::vector<TensorId>& reads,
                          const std::vector<TensorId>& writes, double flops) {
  std::vector<Streamed> in, out;
  for (const TensorId tensor : reads) in.push_back({tensor, bytes(tensor)});
  for (const TensorId tensor : writes) out.push_back({tensor, bytes(tensor)});
  return emit(name, stream_kernel(launch, in, out, flops));
}

OpId TrainingStep::gemm(const std::string& name, const GemmShape& shape, GemmKind kind, TensorId a, TensorId b,
                        TensorId c, const GemmValues& values) {
  const GemmPlan plan =
      plan_gemm(shape, kind, precision_.gemm_pipe, precision_.element_bytes, compute_units_, block_shared_memory_);
  return gemm(name, plan, shape, {row_panels(plan, a, bytes(a)), column_panels(plan, b, bytes(b))}, c, values);
}

OpId TrainingStep::gemm(const std::string& name, const GemmPlan& plan, const GemmShape& shape,
                        std::vector<TensorUse> reads, TensorId c, const GemmValues& values) {
  const std::string kernel = fmt::format("{}_{}", name, plan.tile_name());
  const auto into = [values, m = shape.m, n = shape.n](TensorId target) -> Compute {
    if (values.into) return [=](TensorValues& numbers) { values.into(numbers, target); };
    if (values.a.rows == 0) return {};
    return [=](TensorValues& numbers) {
      multiply(numbers, values.a, values.b, plain(target, m, n), values.form);
      if (values.row) add_row(numbers, *values.row, plain(target, m, n));
    };
  };
  if (plan.k_split == 1) {
    const OpId op = emit(
        kernel, gemm_kernel(plan, shape, precision_.gemm_pipe, std::move(reads), {output_tiles(plan, c, bytes(c))}));
    computes(op, into(c));
    return op;
  }
  // Partial sums in FP32, then cublasLt::splitKreduce_kernel<32,16>: 512 threads of 4 results each.
  const TensorId partial =
      temporary(name + ".split_k", 4 * shape.m * shape.n * std::int64_t{plan.k_split}, MemoryClass::workspace);
  const OpId parts = emit(
      fmt::format("{}_split_k{}", kernel, plan.k_split),
      gemm_kernel(plan, shape, precision_.gemm_pipe, std::move(reads), {output_tiles(plan, partial, bytes(partial))}));
  // Of numbers the first part has all.
  computes(parts, into(partial));
  StreamSpec reduce;
  reduce.blocks = static_cast<std::uint64_t>((shape.m * shape.n + 2047) / 2048);
  reduce.threads = 512;
  reduce.registers = 32;
  reduce.round_bytes = std::uint64_t{512} * 16;
  const OpId sum =
      stream(name + "_split_k_reduce", reduce, {partial}, {c}, static_cast<double>(shape.m * shape.n) * plan.k_split);
  computes(sum, [from = plain(partial, shape.m, shape.n), to = plain(c, shape.m, shape.n)](TensorValues& numbers) {
    copy(numbers, from, to);
  });
  return sum;
}

void TrainingStep::on_backward(std::function<void()> step) { backward_.push_back({layer_, std::move(step)}); }

void TrainingStep::relu(TensorId tensor, std::int64_t elements) {
  const Stack all = plain(tensor, 1, elements);
  computes(elementwise("relu", elements, {tensor}, {tensor}), [all](TensorValues& values) { rectify(values, all); });
  on_backward([this, tensor, elements, all] {
    const TensorId gradient = take_gradient(tensor);
    const TensorId masked = activation("relu_gradient", elements);
    const OpId op = elementwise("relu_backward", elements, {gradient, tensor}, {masked});
    computes(op, [from = plain(gradient, 1, elements), to = plain(masked, 1, elements), all](TensorValues& values) {
      rectify_gradient(values, all, from, to);
    });
    add_gradient(tensor, masked);
  });
}

void TrainingStep::run_backward() {
  phase_ = TrainingPhase::backward;
  std::reverse(backward_.begin(), backward_.end());
  for (const auto& step : backward_) {
    layer_ = step.layer;
    step.run();
  }
  backward_.clear();
}

TensorId TrainingStep::take_gradient(TensorId value) {
  const auto found = value_gradient_.find(value);
  WEFT_CHECK(found != value_gradient_.end(), "no gradient for " + graph_.tensor(value).name);
  const TensorId gradient = found->second;
  value_gradient_.erase(found);
  return gradient;
}

void TrainingStep::add_gradient(TensorId value, TensorId gradient) {
  const auto [found, first] = value_gradient_.emplace(value, gradient);
  if (first) return;
  const std::int64_t elements = graph_.tensor(gradient).bytes.count() / precision_.element_bytes;
  const OpId op = elementwise("add_gradients", elements, {gradient, found->second}, {gradient});
  computes(op, [from = plain(found->second, 1, elements), to = plain(gradient, 1, elements)](TensorValues& values) {
    copy(values, from, to, true);
  });
  found->second = gradient;
}

bool TrainingStep::needs_gradient(TensorId value) const {
  return std::find(constant_.begin(), constant_.end(), value) == constant_.end();
}

TensorId TrainingStep::gradient_target(TensorId parameter, bool full_precision) {
  const bool fp32 = full_precision || !precision_.mixed;
  if (fp32 && !has_contribution_[parameter]) return gradient_tensor_.at(parameter);
  const std::int64_t elements = graph_.tensor(parameter).bytes.count() / 4;
  return graph_.add_tensor(graph_.tensor(parameter).name + (fp32 ? ".grad_part" : ".grad_fp16"),
                           Bytes(elements * (fp32 ? 4 : precision_.element_bytes)), MemoryClass::workspace);
}

void TrainingStep::gradient_written(TensorId parameter, TensorId target, OpId writer) {
  const TensorId gradient = gradient_tensor_.at(parameter);
  const std::int64_t elements = graph_.tensor(parameter).bytes.count() / 4;
  OpId last = writer;
  if (has_contribution_[parameter]) {
    last = elementwise("add_gradients", elements, {gradient, target}, {gradient});
  } else if (target != gradient) {
    last = elementwise("cast_to_fp32", elements, {target}, {gradient});
  }
  has_contribution_[parameter] = true;
  if (--contributions_left_[parameter] > 0) return;
  graph_.node(last).gradients_ready.push_back(parameter);
  ready_.push_back(parameter);
}

void TrainingStep::begin_optimizer() {
  WEFT_CHECK(ready_.size() == gradient_tensor_.size(), "parameters without a gradient");
  phase_ = TrainingPhase::optimizer;
  layer_ = "optimizer";
  // Those that are reduced among other GPUs lie together.
  std::stable_partition(ready_.begin(), ready_.end(),
                        [this](TensorId parameter) { return !graph_.tensor(parameter).distributed; });
  std::vector<TensorId> gradients;
  for (const TensorId parameter : ready_) gradients.push_back(gradient_tensor_.at(parameter));
  graph_.place_views(parameters_, ready_);
  graph_.place_views(gradients_, gradients);
}

Graph TrainingStep::finish(double samples, double tokens) {
  Graph graph = graph_.finish();
  graph.samples_per_iteration = samples;
  graph.tokens_per_iteration = tokens;
  return graph;
}

}  // namespace weft
