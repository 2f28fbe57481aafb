// What a kernel's name says: its class, its types, its tile.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/program.h"

namespace weft {

enum class KernelClass {
  gemm,                 // cuBLAS, CUTLASS, rocBLAS and hipBLASLt products
  convolution,          // implicit GEMM: forward, data gradient, weight gradient
  batch_norm_forward,   // of cuDNN, MIOpen, PyTorch; layer norm and group norm too
  batch_norm_backward,  //
  elementwise,          // PyTorch's TensorIterator kernels
  fill,                 // writes only
  reduction,            // reads much, writes little at the end; split-K sums
  softmax_forward,      //
  softmax_backward,     //
  pooling_forward,      //
  transpose,            // NCHW <-> NHWC and the like
  multi_tensor,         // optimizer steps over lists of tensors
  copy,                 // memcpy, Cat, gather and scatter: as many bytes out as in
  unknown
};
[[nodiscard]] const char* to_string(KernelClass kernel_class);
[[nodiscard]] KernelClass kernel_class(std::string_view name);

// How the threads of a kernel that streams load: a thread's bytes of each tensor in a round of its loop, and how many
// rounds it begins before it waits for the first.
struct LoadLoop {
  double bytes = 16;
  std::uint32_t rounds_in_flight = 4;
};
[[nodiscard]] LoadLoop load_loop(std::string_view name);

// The first of the types that C++ templates are instantiated with, in bytes; 4 when there is none.
[[nodiscard]] std::uint32_t element_bytes(std::string_view name);

// The threadblock tile of a GEMM-like kernel.
struct GemmTile {
  std::uint32_t m = 128, n = 128, k = 32;
  std::uint32_t stages = 2;
  Pipe pipe = Pipe::fp32;
  std::uint32_t element_bytes = 4;
};
// From names such as "256x64_16x4", "tilesize128x128x16_stage4", "sgemm_128x64", "stages_32x5", "bt64x128x32",
// "MT128x128x32", "GemmShapeILi128ELi128ELi32EE". What the name leaves out follows from the shared memory (stages) or
// is the commonest: k 8 for SIMT, 32 else.
[[nodiscard]] GemmTile gemm_tile(std::string_view name, const LaunchShape& shape);

// Blocks of a thread-block cluster along the two sides of a tile, where the name tells: cuBLAS
// ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz": tile, stages, cluster), CUTLASS 3 ("..._128x128x64_2x1x1_..."). 1: it does
// not.
[[nodiscard]] std::array<std::uint32_t, 2> named_cluster(std::string_view name);

// Products whose blocks stay and take one tile after the other (Hopper and newer), but for those that split the sum
// over K; how they come by the next tile: cuBLAS counts tiles in memory unless the name says "ssched" (static
// scheduler).
[[nodiscard]] std::optional<PieceOrder> persistent_product(std::string_view name);

// PyTorch's elementwise kernels: elements a block handles and tensors it reads and writes.
struct ElementwiseShape {
  std::uint32_t elements_per_block = 0;
  std::uint32_t reads = 1;
  std::uint32_t writes = 1;
};
[[nodiscard]] ElementwiseShape elementwise_shape(std::string_view name, const LaunchShape& shape);

// The n-th template argument that is an integer literal, e.g. 10 for softmax_warp_forward<float, float, float, 10,
// true>.
[[nodiscard]] std::optional<std::uint32_t> template_integer(std::string_view name, std::size_t n);

}  // namespace weft
