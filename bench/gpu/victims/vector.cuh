// 16 bytes of a tensor at a time, computed with in FP32.
#pragma once

#include <cuda_bf16.h>

#include "bench/gpu/plan/step.h"

namespace weft::gpu_probe {

template <class T>
inline constexpr int kPerVector = 16 / sizeof(T);

template <class T>
struct alignas(16) Vector {
  T values[kPerVector<T>];
};

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16(x);
}

__device__ __forceinline__ float warp_sum(float x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(0xffffffffu, x, lanes);
  return x;
}
__device__ __forceinline__ float warp_max(float x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, lanes));
  return x;
}

// Of a block of up to 32 warps; every thread gets it.
__device__ __forceinline__ float block_sum(float x) {
  __shared__ float parts[32];
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  x = warp_sum(x);
  __syncthreads();
  if (lane == 0) parts[warp] = x;
  __syncthreads();
  return warp_sum(lane < (blockDim.x + 31) / 32 ? parts[lane] : 0.0f);
}

// Calls `make` with a value of the C++ type of the element.
template <class Make>
auto with_type(Element element, Make&& make) {
  if (element == Element::bf16) return make(__nv_bfloat16{});
  return make(float{});
}

}  // namespace weft::gpu_probe
