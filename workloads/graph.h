// The operation graph: the centre of weft. Trace readers and the model zoo produce it, schemes turn it into programs.
// Nodes are operations of one training step of one replica; edges are dependencies.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/program.h"

namespace weft {

struct Tensor {
  std::string name;
  Bytes bytes;
  MemoryClass memory_class = MemoryClass::activations;
  // A view has no memory of its own: it lies in another tensor, at an offset in bytes. So that all parameters, their
  // gradients and their optimizer state are one buffer each, which multi-tensor kernels and buckets sweep.
  std::optional<TensorId> view_of = std::nullopt;
  std::uint64_t view_offset = 0;
  std::optional<TensorId> gradient_of = std::nullopt;  // the parameter whose gradient this is
  // Of a parameter: GPUs that share a sample have a part of it each, not all the same.
  bool distributed = false;
  // The node before which it is freed at the earliest: a name that a program holds beyond the last use.
  std::optional<OpId> held_until = std::nullopt;
};

// One kernel operand before addresses are given: which tensor, and which slice of it each block touches (see Operand).
struct TensorUse {
  TensorId tensor;
  std::uint64_t offset = 0;  // bytes into the tensor
  std::uint64_t bytes_per_block = 0;
  std::uint32_t divisor = 1;
  std::uint32_t modulo = 0;
  bool atomic = false;                              // as Operand::atomic
  std::uint32_t shared_by = 1, shared_divisor = 1;  // as Operand's
};

// A part of a tensor, in bytes.
struct TensorRange {
  TensorId tensor;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct KernelNode {
  LaunchShape shape;
  std::vector<TensorUse> reads;
  std::vector<TensorUse> writes;
  std::array<double, kPipeCount> flops{};
  std::uint32_t iterations = 1;
  std::uint32_t stages = 2;
  bool write_at_end = false;
  bool barrier = false;
  AttentionPass attention = AttentionPass::none;
  bool bulk_loads = false;  // as KernelDemand's, like the next two
  std::uint64_t pieces = 0;
  PieceOrder piece_order = PieceOrder::stride;
  DemandOrigin origin = DemandOrigin::shapes;

  [[nodiscard]] std::uint64_t parts() const { return pieces > 0 ? pieces : shape.blocks(); }
};

struct CollectiveNode {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;  // of the input of one rank
  DataType type = DataType::fp32;
  std::uint32_t group_size = 0;            // as recorded; 0: all GPUs of the run
  std::vector<std::uint32_t> group_ranks;  // as recorded, may be empty; of a generated graph the GPUs of the run
  std::string communicator;                // as recorded, may be empty
  std::uint32_t channels = 0;              // thread blocks as recorded; 0: unknown
  std::uint32_t distance = 1;              // as CollectiveDemand::distance
  // As CollectiveDemand::first; of a send_receive who sends, where that was recorded.
  std::optional<std::uint32_t> first = std::nullopt;
  // An all_reduce or reduce_scatter that the kernel before it does as it stores the source (ProgramOp::fused).
  bool fused = false;
  // Of a generated graph; the same: in place.
  std::optional<TensorRange> source = std::nullopt;
  std::optional<TensorRange> target = std::nullopt;
};

// What a trace recorded of an operation. Times are relative to the start of its iteration.
// Longer than launching an operation takes: if one starts later, the device had other things to do. A choice: of
// hta_nccl_data's 3774 operations 32 come later to an idle device, by 36 us at most.
inline constexpr Time kLaunching = microseconds(20);

struct Recorded {
  std::uint32_t stream = 0;  // as numbered in the trace
  Time issued;               // when the host issued it
  Time started;
  Time duration;
  std::optional<Time> alone;  // median duration at this launch position without a collective beside it
  bool overlapped = false;    // `alone` is the shortest one there, of which each had a collective beside it
  // Median time there by which it starts after the operation before it on its stream, for which alone it waits.
  std::optional<Time> behind = std::nullopt;
  Time late = Time(0);  // on a device at nothing else, after its issue and all it waits for: for a reason not recorded
};

class TensorValues;
// What an operation does to numbers, where somebody asked for them (tensor_values.h).
using Compute = std::function<void(TensorValues&)>;

enum class NodeKind { kernel, collective, copy, host_wait };

struct Node {
  NodeKind kind = NodeKind::kernel;
  std::string name;
  std::string layer;
  TrainingPhase phase = TrainingPhase::other;
  std::uint32_t iteration = 0;
  std::vector<OpId> dependencies;  // earlier nodes; stream order of recorded nodes is implied
  KernelNode kernel;
  bool memory_operation = false;  // as ProgramOp's
  CollectiveNode collective;
  CopyDemand copy;
  std::optional<Recorded> recorded;
  // Parameters whose gradient is final after this node, in the order in which they become so. Data parallelism fills
  // its buckets from this.
  std::vector<TensorId> gradients_ready;
  Compute compute;  // may be empty
};

struct Graph {
  std::string name;
  std::vector<Tensor> tensors;  // TensorId is the index
  std::vector<Node> nodes;      // OpId is the index; in launch order: dependencies point backwards
  std::uint32_t iterations = 1;
  double samples_per_iteration = 0;
  double tokens_per_iteration = 0;
  std::vector<Time> iteration_starts;   // recorded, from when the first rank started the first; empty when unknown
  std::vector<Time> iteration_lengths;  // recorded, of the host; empty when unknown
  std::optional<OpId> begins_with;      // as Program's
  std::uint32_t recorded_rank = 0;
  std::uint32_t recorded_world = 0;           // ranks of the recorded run; 0: unknown or generated
  std::vector<std::uint32_t> urgent_streams;  // recorded ones of a higher priority than others, ascending
};

// The highest slice index that the blocks of a kernel reach in `use` (see Operand). blocks > 0.
[[nodiscard]] std::uint64_t highest_slice(const TensorUse& use, std::uint64_t blocks);

// Throws InputError when a dependency or tensor does not exist, when dependencies form a cycle (which they do as soon
// as one points forwards), or when a kernel has no blocks or reaches outside its tensors. `source` names the file for
// the message.
void validate(const Graph& graph, const std::string& source);

}  // namespace weft
