// Launch shapes and memory accesses of the kernels of a training step, after those of cuDNN, cuBLAS and PyTorch.
// Threads, registers and shared memory of the GEMM tiles, elementwise, softmax, pooling and multi-tensor kernels were
// read off a public TF32 profile of ResNet-50 on A100 (facebookresearch/HolisticTraceAnalysis,
// tests/data/nccl_parser_config/nccl_data.json.gz). Guessed: FP16 tiles take the registers of the TF32 ones;
// channels-last batch norm those of cuDNN's; layer norm, dropout, embedding and norms of LAMB have no profile;
// operations an element of kernels that are no GEMM are counted by hand. Which tile is taken and where K is split are
// rules of this file, simpler than the libraries' heuristics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/graph_builder.h"

namespace weft {

// C[m,n] = A[m,k] * B[k,n], `batch` times with operands of their own.
struct GemmShape {
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t batch = 1;
  [[nodiscard]] double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(batch);
  }
};

enum class GemmKind { forward, weight_gradient };

// The tile a library would take and the grid that follows. Blocks are numbered (slice, row, column), column fastest; a
// slice is one of the batch or one part of a K that is split so that few tiles fill the machine.
struct GemmPlan {
  std::uint32_t tile_m = 0, tile_n = 0, tile_k = 0;
  std::uint32_t rows = 0, columns = 0, slices = 0;
  std::uint32_t k_split = 1;
  std::uint32_t rounds = 1;  // tile_k steps of one block
  std::uint32_t stages = 1;
  LaunchShape shape;

  [[nodiscard]] std::string tile_name() const;  // "128x64"
};

// The largest tile whose grid fills `compute_units`, else the smallest; weight gradients and others whose K is long take
// the largest. A grid below half the machine splits K, each part at least 8 rounds deep. `element_bytes` of A and B, `pipe`
// that multiplies. Where `block_shared_memory` (0: no limit) holds fewer stages than the tile has on NVIDIA's GPUs, as
// on CDNA, it has fewer, two at least.
[[nodiscard]] GemmPlan plan_gemm(const GemmShape& gemm, GemmKind kind, Pipe pipe, std::int64_t element_bytes,
                                 std::uint32_t compute_units, std::uint32_t block_shared_memory = 0);

// The slice of `bytes` bytes from `offset` of a tensor that each block touches, when they are cut into `count` slices
// of equal size; slices below 32 B are taken as one sector, touched by several blocks.
[[nodiscard]] TensorUse sliced(TensorId tensor, std::uint64_t offset, std::uint64_t bytes, std::uint64_t count,
                               std::uint32_t divisor = 1, std::uint32_t modulo = 0);

// The operands of a planned GEMM, `bytes` being the tensor's. All tiles of a row share a panel of A, all of a column
// one of B. With several slices and several columns a panel of B cannot be named by one divisor and modulo: blocks then
// take the panels in turn, so that each is still read once a row.
[[nodiscard]] TensorUse row_panels(const GemmPlan& plan, TensorId tensor, std::uint64_t bytes);
[[nodiscard]] TensorUse column_panels(const GemmPlan& plan, TensorId tensor, std::uint64_t bytes,
                                      std::uint32_t distinct_columns = 0);
[[nodiscard]] TensorUse output_tiles(const GemmPlan& plan, TensorId tensor, std::uint64_t bytes);

// The kernel of a plan: shape, flops, rounds. Rounds are merged until each loads at least kRoundBytes.
[[nodiscard]] KernelNode gemm_kernel(const GemmPlan& plan, const GemmShape& gemm, Pipe pipe,
                                     std::vector<TensorUse> reads, std::vector<TensorUse> writes);

// Kernels without reuse: every tensor is cut evenly over the blocks.
struct StreamSpec {
  std::uint64_t blocks = 1;
  std::uint32_t threads = 128;
  std::uint32_t registers = 22;
  std::uint32_t shared_memory = 0;
  std::uint64_t round_bytes = 0;  // of the first operand that a block loads in one round; 0: all at once
  std::uint32_t stages = 2;
};
// at::native::vectorized_elementwise_kernel<4>: 128 threads of 4 elements.
[[nodiscard]] StreamSpec elementwise_launch(std::int64_t elements);
// ATen's channels-last batch norm kernels (flexible_launch_configs in aten/src/ATen/native/cuda/Normalization.cuh):
// blocks of 32 channels x 16 rows, each over up to 16 rows a thread and at most 128 blocks along the rows.
[[nodiscard]] StreamSpec channels_launch(std::int64_t rows, std::int64_t channels, std::int64_t element_bytes);
// One warp or block a row: softmax_warp_forward (4 rows a block of 128 threads) and layer norm (one row a block).
[[nodiscard]] StreamSpec rows_launch(std::int64_t rows, std::uint32_t rows_per_block, std::uint32_t registers);

struct Streamed {
  TensorId tensor;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
};
[[nodiscard]] KernelNode stream_kernel(const StreamSpec& spec, const std::vector<Streamed>& reads,
                                       const std::vector<Streamed>& writes, double flops);

}  // namespace weft
