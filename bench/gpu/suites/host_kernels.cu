// Loads and stores of memory of the host, as a collective's LL protocol does them, and fences.
#include "bench/gpu/device/check.h"
#include "bench/gpu/device/device_clock.cuh"
#include "bench/gpu/device/volatile_load.cuh"
#include "bench/gpu/suites/host_kernels.h"

namespace weft::gpu_probe {
namespace {

constexpr unsigned kThreads = 512;

__device__ __forceinline__ void store_volatile(uint4* to, uint4 v) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
__device__ __forceinline__ unsigned load_flag(const volatile unsigned* from) { return *from; }

template <int kUnroll, bool kWrites>
__global__ void __launch_bounds__(kThreads) line_kernel(uint4* lines, std::size_t count, unsigned* sink) {
  const std::size_t step = std::size_t{gridDim.x} * kThreads;
  unsigned kept = 0;
  for (std::size_t at = std::size_t{blockIdx.x} * kThreads + threadIdx.x; at < count; at += kUnroll * step) {
    uint4 loaded[kUnroll] = {};
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) {
      if (at + j * step >= count) continue;
      if constexpr (kWrites)
        store_volatile(lines + at + j * step, uint4{1, 2, 3, 4});
      else
        loaded[j] = load_volatile(lines + at + j * step);
    }
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) kept += loaded[j].x ^ loaded[j].y ^ loaded[j].z ^ loaded[j].w;
  }
  if (!kWrites && kept == 0x9e3779b9) *sink = kept;
}

__global__ void host_chase_kernel(const unsigned* lines, int steps, unsigned long long* out) {
  unsigned line = 0;
  const unsigned long long ns = now_ns();
  for (int i = 0; i < steps; ++i) line = load_flag(lines + std::size_t{line} * 32);
  out[0] = now_ns() - ns;
  out[1] = line;
}

__global__ void ping_kernel(volatile unsigned* ping, const volatile unsigned* pong, int rounds,
                            unsigned long long* out) {
  constexpr unsigned long long kMostNs = 1000000000;
  const unsigned long long begin = now_ns();
  for (int i = 1; i <= rounds; ++i) {
    *ping = static_cast<unsigned>(i);
    while (*pong < static_cast<unsigned>(i)) {
      if (now_ns() - begin > kMostNs) return;  // the host went away
    }
  }
  out[0] = now_ns() - begin;
}

__global__ void __launch_bounds__(kThreads)
    fence_kernel(uint4* data, unsigned vectors_of_block, int rounds, bool system, unsigned* cycles) {
  uint4* const own = data + std::size_t{blockIdx.x} * vectors_of_block;
  for (int round = 0; round < rounds; ++round) {
    for (unsigned i = threadIdx.x; i < vectors_of_block; i += kThreads) own[i] = uint4{1, 2, 3, 4};
    __syncthreads();
    if (threadIdx.x == 0) {
      const unsigned long long begin = now_cycles();
      if (system)
        __threadfence_system();
      else
        __threadfence();
      cycles[static_cast<std::size_t>(blockIdx.x) * static_cast<unsigned>(rounds) + static_cast<unsigned>(round)] =
          static_cast<unsigned>(now_cycles() - begin);
    }
    __syncthreads();
  }
}

}  // namespace

void launch_lines(bool writes, int unroll, uint4* lines, std::size_t count, int blocks, unsigned* sink,
                  cudaStream_t stream) {
  const auto grid = static_cast<unsigned>(blocks);
  if (writes)
    line_kernel<1, true><<<grid, kThreads, 0, stream>>>(lines, count, sink);
  else if (unroll == 1)
    line_kernel<1, false><<<grid, kThreads, 0, stream>>>(lines, count, sink);
  else
    line_kernel<4, false><<<grid, kThreads, 0, stream>>>(lines, count, sink);
  check_launch("line_kernel");
}

void launch_host_chase(const unsigned* lines, int steps, unsigned long long* out, cudaStream_t stream) {
  host_chase_kernel<<<1, 1, 0, stream>>>(lines, steps, out);
  check_launch("host_chase_kernel");
}

void launch_ping(volatile unsigned* ping, const volatile unsigned* pong, int rounds, unsigned long long* out,
                 cudaStream_t stream) {
  ping_kernel<<<1, 1, 0, stream>>>(ping, pong, rounds, out);
  check_launch("ping_kernel");
}

void launch_fences(uint4* data, unsigned vectors_of_block, int rounds, bool system, int blocks, unsigned* cycles,
                   cudaStream_t stream) {
  fence_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(data, vectors_of_block, rounds, system, cycles);
  check_launch("fence_kernel");
}

}  // namespace weft::gpu_probe
