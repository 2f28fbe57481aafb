#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "bench/gpu/device/check.h"
#include "bench/gpu/device/device_clock.cuh"
#include "bench/gpu/device/small_kernels.h"

namespace weft::gpu_probe {
namespace {

__global__ void sample_clocks_kernel(unsigned long long* out, unsigned long long ns) {
  const unsigned long long cycles = now_cycles();
  const unsigned long long begin = now_ns();
  unsigned long long end = begin;
  while (end - begin < ns) end = now_ns();
  out[0] = cycles;
  out[1] = begin;
  out[2] = now_cycles();
  out[3] = end;
}

__global__ void delay_kernel(unsigned long long ns) {
  const unsigned long long begin = now_ns();
  while (now_ns() - begin < ns) {
  }
}

// A counter through two rounds of a 32-bit mixer (Murmur3's finalizer).
__device__ unsigned mixed(unsigned x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ (x >> 16);
}

__device__ float uniform(unsigned bits) { return static_cast<float>(static_cast<int>(bits)) * 0x1p-31f; }

template <class T>
__global__ void fill_random_kernel(T* data, std::size_t count, unsigned seed) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    data[i] = static_cast<T>(uniform(mixed(static_cast<unsigned>(i) * 2u + mixed(seed))));
}

template <class T>
void fill(void* data, std::size_t bytes, unsigned seed, cudaStream_t stream) {
  fill_random_kernel<<<1056, 256, 0, stream>>>(static_cast<T*>(data), bytes / sizeof(T), seed);
}

}  // namespace

void sample_clocks(unsigned long long* out, unsigned long long ns, cudaStream_t stream) {
  sample_clocks_kernel<<<1, 1, 0, stream>>>(out, ns);
  check_launch("sample_clocks_kernel");
}

void delay(unsigned long long ns, cudaStream_t stream) {
  delay_kernel<<<1, 1, 0, stream>>>(ns);
  check_launch("delay_kernel");
}

void fill_random(void* data, std::size_t bytes, Element element, unsigned seed, cudaStream_t stream) {
  switch (element) {
    case Element::bf16:
      fill<__nv_bfloat16>(data, bytes, seed, stream);
      break;
    case Element::fp16:
      fill<__half>(data, bytes, seed, stream);
      break;
    case Element::fp32:
    case Element::tf32:
      fill<float>(data, bytes, seed, stream);
      break;
  }
  check_launch("fill_random_kernel");
}

}  // namespace weft::gpu_probe
