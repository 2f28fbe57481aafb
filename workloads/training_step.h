// A training step under construction: layers emit their forward kernels and leave behind how to go backward; then
// run_backward() emits those in reverse, as PyTorch's autograd does, and the optimizer finishes the step.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "workloads/kernel_demand.h"
#include "workloads/model_zoo.h"
#include "workloads/tensor_math.h"

namespace weft {

// What a precision means for kernels: "fp32", "tf32" (FP32 storage, TF32 tensor cores) or "amp" (PyTorch's autocast:
// FP16 activations and weight copies, FP32 parameters and gradients). Reductions, norms and softmax compute in FP32.
struct Precision {
  bool mixed = false;
  std::int64_t element_bytes = 4;  // of an activation and of what a GEMM reads
  Pipe gemm_pipe = Pipe::fp32;
};
[[nodiscard]] Precision precision_of(const std::string& name);  // throws InputError

// What a GEMM makes of numbers, for Node::compute: one plain matrix times another, and a row that is added to each of
// the result's; or, of operands of other shapes, whatever `into` puts into the tensor that it is given.
struct GemmValues {
  Stack a = {}, b = {};
  ProductForm form = {};
  std::optional<TensorId> row = std::nullopt;
  std::function<void(TensorValues&, TensorId)> into = {};
};

class TrainingStep {
 public:
  TrainingStep(const ModelSpec& spec, std::string name);

  [[nodiscard]] const Precision& precision() const { return precision_; }
  [[nodiscard]] std::uint32_t compute_units() const { return compute_units_; }
  [[nodiscard]] std::uint32_t block_shared_memory() const { return block_shared_memory_; }  // in bytes; 0: no limit
  [[nodiscard]] GraphBuilder& graph() { return graph_; }
  [[nodiscard]] std::uint64_t bytes(TensorId tensor) const {
    return static_cast<std::uint64_t>(graph_.tensor(tensor).bytes.count());
  }
  void in_layer(std::string layer) { layer_ = std::move(layer); }
  [[nodiscard]] const std::string& layer() const { return layer_; }

  // From here on gradients of parameters are whole on each of the GPUs that share a sample, and not to be summed up
  // over them.
  void keep_gradients_apart() { apart_ = true; }
  // An FP32 parameter of the current layer and its gradient. `uses`: how many operations contribute to the gradient.
  TensorId parameter(const std::string& name, std::int64_t elements, std::uint32_t uses = 1);
  // An activation of the step's precision, or of any size in bytes.
  TensorId activation(const std::string& name, std::int64_t elements);
  TensorId temporary(const std::string& name, std::int64_t bytes, MemoryClass memory_class);
  // What a GEMM reads of a parameter: itself, or its FP16 copy, cast on first use (autocast's cache).
  TensorId weight(TensorId parameter);

  // Emits a kernel of the current layer and phase, or another operation.
  OpId emit(const std::string& name, KernelNode kernel);
  OpId add(Node node);
  // What a node does to numbers.
  void computes(OpId op, Compute compute) { graph_.node(op).compute = std::move(compute); }
  // The tensor stays until the next node, as what a name in a program still holds.
  void hold(TensorId tensor) { graph_.tensor(tensor).held_until = OpId{static_cast<std::uint32_t>(graph_.size())}; }
  // An elementwise kernel over whole tensors.
  OpId elementwise(const std::string& name, std::int64_t elements, const std::vector<TensorId>& reads,
                   const std::vector<TensorId>& writes, double flops_per_element = 1);
  // max(x, 0) in place, and its backward kernel.
  void relu(TensorId tensor, std::int64_t elements);
  OpId stream(const std::string& name, const StreamSpec& launch, const std::vector<TensorId>& reads,
              const std::vector<TensorId>& writes, double flops);
  // C = A * B on plain matrices; splits K over a workspace and reduces it where the plan says so.
  OpId gemm(const std::string& name, const GemmShape& shape, GemmKind kind, TensorId a, TensorId b, TensorId c,
            const GemmValues& values = {});
  // The same for operands of other shapes: emits `kernel_reads` into c or, with split K, into a workspace. `values` say
  // what numbers become.
  OpId gemm(const std::string& name, const GemmPlan& plan, const GemmShape& shape, std::vector<TensorUse> reads,
            TensorId c, const GemmValues& values = {});

  // Backward steps run in reverse order of their registration, in the layer current at registration.
  void on_backward(std::function<void()> step);
  void run_backward();
  // The gradient of an activation. take: it is consumed. add: the first one is kept as it is, a second one is added to
  // it by a kernel, as autograd accumulates.
  [[nodiscard]] TensorId take_gradient(TensorId value);
  void add_gradient(TensorId value, TensorId gradient);
  void no_gradient(TensorId value) { constant_.push_back(value); }
  [[nodiscard]] bool needs_gradient(TensorId value) const;
  // Where a weight gradient kernel writes: the FP32 gradient, or an FP16 tensor under amp. Norms and embeddings
  // (`full_precision`) write FP32 always.
  TensorId gradient_target(TensorId parameter, bool full_precision = false);
  // Called after the kernel that wrote `target`: casts, accumulates and, with the last contribution, marks it ready.
  void gradient_written(TensorId parameter, TensorId target, OpId writer);

  // Parameters in the order in which their gradients became final, and the buffers that hold all of them.
  [[nodiscard]] const std::vector<TensorId>& ready_order() const { return ready_; }
  [[nodiscard]] TensorId parameters() const { return parameters_; }
  [[nodiscard]] TensorId gradients() const { return gradients_; }
  [[nodiscard]] TensorId gradient_of(TensorId parameter) const { return gradient_tensor_.at(parameter); }
  // After the backward pass: lays parameters and gradients out in ready order and turns to the optimizer.
  void begin_optimizer();

  [[nodiscard]] Graph finish(double samples, double tokens);

 private:
  struct BackwardStep {
    std::string layer;
    std::function<void()> run;
  };

  Precision precision_;
  std::uint32_t compute_units_;
  std::uint32_t block_shared_memory_;
  GraphBuilder graph_;
  std::string layer_;
  bool apart_ = false;
  TrainingPhase phase_ = TrainingPhase::forward;
  TensorId parameters_, gradients_;
  std::vector<BackwardStep> backward_;
  std::vector<TensorId> constant_;
  std::vector<TensorId> ready_;
  std::map<TensorId, TensorId> value_gradient_;
  std::map<TensorId, TensorId> gradient_tensor_;
  std::map<TensorId, TensorId> cast_;
  std::map<TensorId, std::uint32_t> contributions_left_;
  std::map<TensorId, bool> has_contribution_;
};

}  // namespace weft
