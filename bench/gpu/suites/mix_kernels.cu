// Loads and stores in any proportion, from chosen units, and pieces of memory in random order.
#include "bench/gpu/device/check.h"
#include "bench/gpu/device/cluster_launch.h"
#include "bench/gpu/device/device_clock.cuh"
#include "bench/gpu/suites/machine_kernels.h"

namespace weft::gpu_probe {
namespace {

constexpr unsigned kThreads = 1024;
constexpr int kUnroll = 2;

template <int kReads, int kWrites>
__global__ void __launch_bounds__(kThreads) mix_kernel(MixArguments m) {
  if (threadIdx.x == 0) m.units[blockIdx.x] = unit_id();
  const std::size_t step = std::size_t{gridDim.x} * kThreads;
  const std::size_t first = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  float kept = 0;
  for (int repeat = 0; repeat < m.repeats; ++repeat) {
    for (std::size_t at = first; at < m.vectors; at += kUnroll * step) {
      float4 loaded[kUnroll][kReads > 0 ? kReads : 1] = {};
#pragma unroll
      for (int j = 0; j < kUnroll; ++j) {
        if (at + j * step >= m.vectors) continue;
#pragma unroll
        for (int r = 0; r < kReads; ++r) loaded[j][r] = __ldcg(m.data + r * m.vectors + at + j * step);
      }
#pragma unroll
      for (int j = 0; j < kUnroll; ++j) {
        if (at + j * step >= m.vectors) continue;
        float4 out = {};
#pragma unroll
        for (int r = 0; r < kReads; ++r) {
          out.x += loaded[j][r].x;
          out.y += loaded[j][r].y;
          out.z += loaded[j][r].z;
          out.w += loaded[j][r].w;
        }
        if constexpr (kWrites == 0) kept += out.x + out.y + out.z + out.w;
#pragma unroll
        for (int w = 0; w < kWrites; ++w) m.data[(kReads + w) * m.vectors + at + j * step] = out;
      }
    }
  }
  if (kWrites == 0 && kept == 1e30f) m.data[first] = float4{kept, 0, 0, 0};
}

using MixKernel = void (*)(MixArguments);

MixKernel kernel_of(int reads, int writes) {
  switch (10 * reads + writes) {
    case 10:
      return mix_kernel<1, 0>;
    case 31:
      return mix_kernel<3, 1>;
    case 21:
      return mix_kernel<2, 1>;
    case 11:
      return mix_kernel<1, 1>;
    case 12:
      return mix_kernel<1, 2>;
    case 13:
      return mix_kernel<1, 3>;
    case 1:
      return mix_kernel<0, 1>;
    default:
      throw std::logic_error("no kernel of such a mix");
  }
}

// A bijection of [0, 2^bits) that looks random.
__device__ __forceinline__ std::size_t shuffled(std::size_t i, unsigned bits) {
  const std::size_t mask = (std::size_t{1} << bits) - 1;
  const unsigned half = bits / 2 + 1;
  for (int round = 0; round < 3; ++round) {
    i ^= i >> half;
    i = (i * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull) & mask;
  }
  return i ^ (i >> half);
}

template <bool kWrites>
__global__ void __launch_bounds__(kThreads)
    piece_kernel(float4* data, unsigned vector_bits, unsigned piece_bits, float* sink) {
  const std::size_t vectors = std::size_t{1} << vector_bits;
  const std::size_t in_piece = (std::size_t{1} << piece_bits) - 1;
  const std::size_t step = std::size_t{gridDim.x} * kThreads;
  float kept = 0;
  for (std::size_t at = std::size_t{blockIdx.x} * kThreads + threadIdx.x; at < vectors; at += 4 * step) {
    float4 loaded[4] = {};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::size_t i = at + j * step;
      if (i >= vectors) continue;
      float4* const place = data + (shuffled(i >> piece_bits, vector_bits - piece_bits) << piece_bits | (i & in_piece));
      if constexpr (kWrites)
        *place = float4{1, 2, 3, 4};
      else
        loaded[j] = __ldcg(place);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) kept += loaded[j].x + loaded[j].y + loaded[j].z + loaded[j].w;
  }
  if (!kWrites && kept == 1e30f) *sink = kept;
}

}  // namespace

void launch_mix(int reads, int writes, const MixArguments& arguments, int blocks, int cluster, cudaStream_t stream) {
  const MixKernel kernel = kernel_of(reads, writes);
  launch_on_units(kernel, "mix_kernel", blocks, kThreads, cluster, stream, arguments);
}

void launch_pieces(bool writes, float4* data, unsigned vector_bits, unsigned piece_bits, int blocks, float* sink,
                   cudaStream_t stream) {
  const auto grid = static_cast<unsigned>(blocks);
  if (writes)
    piece_kernel<true><<<grid, kThreads, 0, stream>>>(data, vector_bits, piece_bits, sink);
  else
    piece_kernel<false><<<grid, kThreads, 0, stream>>>(data, vector_bits, piece_bits, sink);
  check_launch("piece_kernel");
}

}  // namespace weft::gpu_probe
