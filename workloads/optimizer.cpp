#include "workloads/optimizer.h"

#include <algorithm>

namespace weft {
namespace {

// at::native multi_tensor_apply (aten/src/ATen/native/cuda/MultiTensorApply.cuh): kChunkSize, kBlockSize, kILP and
// depth_to_max_blocks. apex's multi_tensor_apply has the same. 32 registers in the profile.
constexpr std::uint64_t kChunkElements = 65536;
constexpr std::uint64_t kMaxBlocks = 320;
constexpr std::uint32_t kThreads = 512;
constexpr std::uint64_t kRoundBytes = std::uint64_t{kThreads} * 4 * 4;

struct Range {
  std::uint64_t begin = 0, end = 0, blocks = 0;
};

// The launches that sweep all parameters: one block a chunk of one tensor, at most kMaxBlocks a launch. The limit on
// tensors a launch only adds launches and is left out.
std::vector<Range> launches(TrainingStep& step) {
  std::vector<Range> ranges(1);
  for (const TensorId parameter : step.ready_order()) {
    const Tensor& tensor = step.graph().tensor(parameter);
    const auto bytes = static_cast<std::uint64_t>(tensor.bytes.count());
    for (std::uint64_t done = 0; done < bytes; done += 4 * kChunkElements) {
      if (ranges.back().blocks == kMaxBlocks) {
        const std::uint64_t begin = tensor.view_offset + done;
        ranges.push_back({begin, begin, 0});
      }
      ranges.back().end = tensor.view_offset + std::min(bytes, done + 4 * kChunkElements);
      ++ranges.back().blocks;
    }
  }
  return ranges;
}

// `small_reads` and `small_writes` are scalars and partial sums, not as long as the parameters.
OpId sweep(TrainingStep& step, const std::string& name, const std::vector<TensorId>& reads,
           const std::vector<TensorId>& writes, double flops_per_element, const std::vector<TensorId>& small_reads = {},
           const std::vector<TensorId>& small_writes = {}) {
  OpId last;
  for (const Range& range : launches(step)) {
    StreamSpec launch;
    launch.blocks = range.blocks;
    launch.threads = kThreads;
    launch.registers = 32;
    launch.round_bytes = kRoundBytes;
    std::vector<Streamed> in, out;
    const std::uint64_t bytes = range.end - range.begin;
    for (const TensorId tensor : reads) in.push_back({tensor, bytes, range.begin});
    for (const TensorId tensor : writes) out.push_back({tensor, bytes, range.begin});
    for (const TensorId tensor : small_reads) in.push_back({tensor, step.bytes(tensor)});
    for (const TensorId tensor : small_writes) out.push_back({tensor, step.bytes(tensor)});
    last = step.emit(name, stream_kernel(launch, in, out, flops_per_element * static_cast<double>(bytes) / 4));
  }
  return last;
}

TensorId state(TrainingStep& step, const std::string& name) {
  return step.temporary(name, static_cast<std::int64_t>(step.bytes(step.parameters())), MemoryClass::optimizer);
}

// torch.cuda.amp.GradScaler: gradients divided by the scale and searched for infinities, and the answer brought to the
// host, which waits for it before it launches the optimizer.
void unscale(TrainingStep& step) {
  if (!step.precision().mixed) return;
  const TensorId found = step.temporary("found_inf", 4, MemoryClass::workspace);
  step.stream("fill", rows_launch(1, 1, 16), {}, {found}, 0);
  const OpId last = sweep(step, "unscale_gradients", {step.gradients()}, {step.gradients()}, 2, {}, {found});
  Node copy;
  copy.kind = NodeKind::copy;
  copy.name = "found_inf_to_host";
  copy.layer = step.layer();
  copy.phase = TrainingPhase::optimizer;
  copy.copy.bytes = Bytes(4);
  copy.copy.to_device = false;
  copy.dependencies = {last};
  const OpId copied = step.graph().add(std::move(copy));
  Node wait;
  wait.kind = NodeKind::host_wait;
  wait.name = "found_inf_wait";
  wait.layer = step.layer();
  wait.phase = TrainingPhase::optimizer;
  wait.dependencies = {copied};
  step.graph().add(std::move(wait));
}

}  // namespace

void sgd_with_momentum(TrainingStep& step) {
  step.begin_optimizer();
  unscale(step);
  const TensorId parameters = step.parameters();
  const TensorId gradients = step.gradients();
  const TensorId momentum = state(step, "momentum");
  const TensorId decayed =
      step.temporary("decayed_gradients", static_cast<std::int64_t>(step.bytes(gradients)), MemoryClass::workspace);
  sweep(step, "foreach_add_weight_decay", {gradients, parameters}, {decayed}, 2);
  sweep(step, "foreach_mul_momentum", {momentum}, {momentum}, 1);
  sweep(step, "foreach_add_momentum", {momentum, decayed}, {momentum}, 2);
  sweep(step, "foreach_add_parameters", {parameters, momentum}, {parameters}, 2);
}

void fused_lamb(TrainingStep& step) {
  step.begin_optimizer();
  unscale(step);
  const TensorId parameters = step.parameters();
  const TensorId gradients = step.gradients();
  const TensorId first = state(step, "first_moment");
  const TensorId second = state(step, "second_moment");
  // multi_tensor_l2norm: one partial sum a block, added up by a second kernel of one block.
  const auto norm_of = [&step](TensorId tensor, const std::string& name) {
    const auto bytes = static_cast<std::int64_t>(4 * kMaxBlocks);
    const TensorId partial = step.temporary(name + "_partial", bytes, MemoryClass::workspace);
    const TensorId norm = step.temporary(name, 4, MemoryClass::workspace);
    sweep(step, "multi_tensor_l2norm", {tensor}, {}, 2, {}, {partial});
    step.stream("l2norm_cleanup", rows_launch(1, 1, 32), {partial}, {norm}, static_cast<double>(kMaxBlocks));
    return norm;
  };
  const TensorId gradient_norm = norm_of(gradients, "gradient_norm");
  sweep(step, "lamb_stage1", {gradients, parameters, first, second}, {gradients, first, second}, 12, {gradient_norm});
  const TensorId parameter_norm = norm_of(parameters, "parameter_norm");
  const TensorId update_norm = norm_of(gradients, "update_norm");
  sweep(step, "lamb_stage2", {gradients, parameters}, {parameters}, 2, {parameter_norm, update_norm});
}

void fused_adam(TrainingStep& step) {
  step.begin_optimizer();
  unscale(step);
  const TensorId parameters = step.parameters();
  const TensorId first = state(step, "first_moment");
  const TensorId second = state(step, "second_moment");
  // Decay, two moments, their corrections, root and quotient.
  sweep(step, "fused_adam", {parameters, step.gradients(), first, second}, {parameters, first, second}, 14);
}

}  // namespace weft
