// What a GPU executes: operations in the order in which the host issues them, on in-order streams, with waits between
// streams. Schemes write programs, GPUs read them. Sizes in bytes, work in floating-point operations.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/ids.h"
#include "sim/shared_list.h"
#include "sim/units.h"

namespace weft {

enum class TrainingPhase { forward, backward, optimizer, other };
enum class DataType { fp32, tf32, fp16, bf16, fp64, fp8, int64, int32, int8 };
[[nodiscard]] std::int64_t bytes_per_element(DataType type);
[[nodiscard]] const char* to_string(TrainingPhase phase);
[[nodiscard]] const char* to_string(DataType type);

// Kinds of operations that have a rate of their own on a compute unit. Both of tensor run on the tensor pipe;
// tensor_fp16 also does BF16. sfu: special functions, one result an operation.
enum class Pipe { tensor_fp16, tensor_tf32, fp32, fp64, sfu };
inline constexpr std::size_t kPipeCount = 5;

// A launch configuration, as CUDA's <<<>>> and the compiler fix it.
struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1};   // thread blocks
  std::array<std::uint32_t, 3> block{1, 1, 1};  // threads
  std::uint32_t registers_per_thread = 32;
  std::uint32_t shared_memory_bytes = 0;  // of a block, static and dynamic
  std::uint32_t cluster_blocks = 1;       // of a thread-block cluster: neighbours in the grid, placed together

  // As recorded: 0 where a launch names no cluster, and 16 blocks at most.
  void set_cluster(const std::array<std::uint32_t, 3>& sides) {
    cluster_blocks = 1;
    for (const std::uint32_t side : sides) cluster_blocks *= std::clamp(side, 1U, 16U);
  }
  [[nodiscard]] std::uint64_t blocks() const { return std::uint64_t{grid[0]} * grid[1] * grid[2]; }
  [[nodiscard]] std::uint32_t threads_per_block() const { return block[0] * block[1] * block[2]; }
  bool operator==(const LaunchShape&) const = default;
};

// The slice of a tensor that each block touches: block b touches bytes_per_block bytes from
// base + ((b / divisor) % modulo) * bytes_per_block; modulo 0 means no wrap. So an elementwise kernel has divisor 1 and
// modulo 0, and C[m,n] = A*B with tiles numbered row by row has divisor n_tiles for A and modulo n_tiles for B: the
// reuse between blocks, and with it the traffic of L2 and HBM, follows from the addresses.
struct Operand {
  std::uint64_t base = 0;             // virtual address on the GPU, a multiple of 128
  std::uint64_t bytes_per_block = 0;  // any size: the model rounds up to 32 B sectors
  std::uint32_t divisor = 1;
  std::uint32_t modulo = 0;
  bool atomic = false;  // read, changed and written by L2: of `reads` the old value comes back, of `writes` nothing
  // So many blocks of a cluster that read the same slice fetch a part each, for all of them (multicast): block b has
  // part (b / shared_divisor) % shared_by.
  std::uint32_t shared_by = 1, shared_divisor = 1;
  bool operator==(const Operand&) const = default;
};

// Where the numbers of a demand come from, best first.
enum class DemandOrigin { counters, shapes, name };

// Kernels of fused attention, in which the softmax of a tile waits for one product and the next product for the
// softmax.
enum class AttentionPass : std::uint8_t { none, forward, backward };

// How the blocks of a persistent kernel share its pieces of work, when each has done the one of its own number: every
// so manieth, as many as there are blocks (a static scheduler of tiles), or a second one like that and then the next
// that nobody has begun (a dynamic one, which counts them in memory and looks one ahead: so cuBLAS on an H200, where
// blocks that start late still have two to do, docs/validation.md).
enum class PieceOrder : std::uint8_t { stride, claim };

// What one kernel asks of a GPU. A block runs `iterations` rounds of load, compute, store; `stages` rounds are in
// flight (software pipelining of a GEMM's main loop; resident warps of an elementwise kernel).
struct KernelDemand {
  LaunchShape shape;
  std::vector<Operand> reads;
  std::vector<Operand> writes;
  std::array<double, kPipeCount> flops{};  // of the whole kernel
  std::uint32_t iterations = 1;
  std::uint32_t stages = 2;
  bool write_at_end = false;  // a GEMM's epilogue, a reduction's result; else each round stores its part
  bool barrier = false;       // the warps of a block meet between rounds (__syncthreads): tiles in shared memory
  AttentionPass attention = AttentionPass::none;
  // Tensor memory accelerator: what is loaded goes to shared memory, past the L1 and the places for outstanding loads;
  // as much as `stages` rounds is under way.
  bool bulk_loads = false;
  double instructions = 0;  // of all warps, as counted; 0: as many as operations and lines need at least
  DemandOrigin origin = DemandOrigin::shapes;
  // Fitted by calibration to ProgramOp::measured_alone. Both neutral by default.
  double extra_cycles_per_block = 0;  // pipe cycles beyond the flops: instruction overhead, dependencies;
  bool extra_waits = false;           // in which no pipe is held: a block waits for itself
  double memory_scale = 1;            // on bytes, where the guess of the bytes was too high
  // Of a persistent kernel: pieces of equal work, as the tiles of a product; each has the slices, rounds and extra
  // cycles that a block has else. 0: each block has one.
  std::uint64_t pieces = 0;
  PieceOrder piece_order = PieceOrder::stride;

  [[nodiscard]] std::uint64_t parts() const { return pieces > 0 ? pieces : shape.blocks(); }
};

enum class CollectiveKind {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  barrier,
  gather,
  scatter,
  send_receive,  // one rank to one other
  shift,         // each rank to the next of the group, the last to the first; or so many places on, round and round
};
[[nodiscard]] const char* to_string(CollectiveKind kind);

// The members of a collective, ascending. Copies share one list: each of the GPUs' programs names all GPUs.
class GpuGroup {
 public:
  using value_type = GpuId;
  using const_iterator = std::vector<GpuId>::const_iterator;

  GpuGroup() : GpuGroup(std::vector<GpuId>()) {}
  GpuGroup(std::vector<GpuId> members)  // NOLINT(google-explicit-constructor): a list of members is a group
      : members_(std::make_shared<const std::vector<GpuId>>(std::move(members))) {}
  GpuGroup(std::initializer_list<GpuId> members) : GpuGroup(std::vector<GpuId>(members)) {}
  // GPUs 0 ... count - 1.
  static GpuGroup first(std::uint32_t count);

  [[nodiscard]] const_iterator begin() const { return members_->begin(); }
  [[nodiscard]] const_iterator end() const { return members_->end(); }
  [[nodiscard]] std::size_t size() const { return members_->size(); }
  [[nodiscard]] bool empty() const { return members_->empty(); }
  [[nodiscard]] GpuId operator[](std::size_t rank) const { return (*members_)[rank]; }
  [[nodiscard]] GpuId front() const { return members_->front(); }
  [[nodiscard]] GpuId back() const { return members_->back(); }
  [[nodiscard]] const std::vector<GpuId>& members() const { return *members_; }
  bool operator==(const GpuGroup& other) const { return members_ == other.members_ || *members_ == *other.members_; }
  std::strong_ordering operator<=>(const GpuGroup& other) const {
    return members_ == other.members_ ? std::strong_ordering::equal : *members_ <=> *other.members_;
  }

 private:
  std::shared_ptr<const std::vector<GpuId>> members_;  // never null
};

// One rank's part of a collective. Ranks meet by (group, sequence): the n-th collective of a group on one rank belongs
// to the n-th on all others.
struct CollectiveDemand {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;  // of the input buffer of one rank
  DataType type = DataType::fp32;
  GpuGroup group;
  std::uint32_t root = 0;      // place in the group, of collectives that have one; who sends in send_receive
  std::uint32_t distance = 1;  // of a shift: so many places on in the group is who gets it
  // Of a shift that does not go round, as between the stages of a pipeline: the place of who gets nothing. Who would
  // send to it sends nothing.
  std::optional<std::uint32_t> first = std::nullopt;
  std::uint32_t sequence = 0;
  std::uint64_t send_address = 0;
  std::uint64_t receive_address = 0;  // equal to send_address: in place
};

// Host <-> device copies by a copy engine over the host link. Device-to-device copies and memsets are kernels.
struct CopyDemand {
  Bytes bytes;
  bool to_device = true;
  std::uint64_t address = 0;
};

enum class ProgramOpKind { kernel, collective, copy, host_wait };

struct ProgramOp {
  ProgramOpKind kind = ProgramOpKind::kernel;
  std::string name;
  std::string layer;  // may be empty
  TrainingPhase phase = TrainingPhase::other;
  std::uint32_t iteration = 0;
  StreamId stream;          // not used by host_wait
  std::vector<OpId> waits;  // earlier ops of this program that must have ended; stream order is implied
  Time host_delay;          // host work between issuing the previous op (or the end of its host_wait) and this one
  Time start_delay;         // it starts this much later than it could: a rank that was late in a recording
  KernelDemand kernel;      // kind == kernel
  bool memory_operation = false;  // a kernel that stands for a memset or copy within the GPU: no launch that queues
  CollectiveDemand collective;    // kind == collective
  // Of a kernel: what it writes at collective.send_address leaves as contributions to that collective's sums,
  // all_reduce or reduce_scatter, and it ends when those that this GPU gets have come.
  bool fused = false;
  CopyDemand copy;                   // kind == copy
  Time measured_alone;               // from a trace: what calibration aims at; 0 when unknown
  bool measured_overlapped = false;  // that is of a launch that never ran alone: it has communication in it
};

enum class MemoryClass { parameters, gradients, optimizer, activations, communication, workspace };
inline constexpr std::size_t kMemoryClassCount = 6;
[[nodiscard]] const char* to_string(MemoryClass memory_class);

// Memory by class over the program: at the start of op `op`, `bytes` are allocated (negative: freed).
struct MemoryEvent {
  OpId op;
  MemoryClass memory_class = MemoryClass::activations;
  Bytes bytes;
  std::string what;  // the tensor or group of tensors, for the out-of-memory message
};

// How a recorded iteration ended.
struct StepEnd {
  Time host;  // from when the host had issued its last operation, or had waited, if that is a host_wait, to its end
  Time idle;  // the part of it that is behind all operations: the host did something else
};

struct Program {
  SharedList<ProgramOp> ops;             // OpId is the index
  std::vector<std::int32_t> priorities;  // one a stream, higher first; its size is the number of streams
  SharedList<MemoryEvent> memory;        // ascending by op; empty when unknown (a trace)
  std::uint32_t iterations = 1;
  double samples_per_iteration = 0;  // of this GPU; 0 when unknown
  double tokens_per_iteration = 0;
  std::vector<StepEnd> step_ends = {};  // of a replay, by iteration; empty: not known
  // Until this operation began, the device was at what had been issued before the recording: it begins the first
  // iteration, which else begins with the host.
  std::optional<OpId> begins_with = std::nullopt;
};

}  // namespace weft
