#include "bench/gpu/device/check.h"
#include "bench/gpu/suites/machine_kernels.h"

namespace weft::gpu_probe {
namespace {

constexpr unsigned kThreads = 512, kL1Threads = 1024;
constexpr int kUnroll = 4;

__device__ __forceinline__ float sum(float4 v) { return v.x + v.y + v.z + v.w; }

template <Stream kStream>
__global__ void __launch_bounds__(kThreads) stream_kernel(StreamArguments s) {
  const std::size_t step = std::size_t{gridDim.x} * kThreads;
  const std::size_t first = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  float kept = 0;
  for (int repeat = 0; repeat < s.repeats; ++repeat) {
    for (std::size_t at = first; at < s.vectors; at += kUnroll * step) {
      float4 a[kUnroll] = {}, b[kUnroll] = {};
#pragma unroll
      for (int j = 0; j < kUnroll; ++j) {
        if (at + j * step >= s.vectors) continue;
        if constexpr (kStream != Stream::write) a[j] = __ldcg(s.a + at + j * step);
        if constexpr (kStream == Stream::triad) b[j] = __ldcg(s.b + at + j * step);
      }
#pragma unroll
      for (int j = 0; j < kUnroll; ++j) {
        if (at + j * step >= s.vectors) continue;
        if constexpr (kStream == Stream::read) {
          kept += sum(a[j]);
        } else {
          const float4 out = {a[j].x + 3 * b[j].x, a[j].y + 3 * b[j].y, a[j].z + 3 * b[j].z, a[j].w + 3 * b[j].w};
          s.out[at + j * step] = out;
        }
      }
    }
  }
  if (kStream == Stream::read && kept == 1e30f) s.out[first] = float4{kept, 0, 0, 0};
}

__global__ void __launch_bounds__(kL1Threads)
    l1_read_kernel(const float4* data, unsigned vectors, int repeats, float* sink) {
  const float4* const own = data + std::size_t{blockIdx.x} * vectors;
  float kept = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (unsigned at = threadIdx.x; at < vectors; at += kL1Threads) {
      float4 v;
      // Volatile for the compiler only: the load itself may hit.
      asm volatile("ld.global.ca.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                   : "l"(own + at));
      kept += sum(v);
    }
  }
  if (kept == 1e30f) sink[threadIdx.x] = kept;
}

}  // namespace

void launch_stream(Stream stream, const StreamArguments& arguments, int blocks, cudaStream_t cuda_stream) {
  const auto grid = static_cast<unsigned>(blocks);
  switch (stream) {
    case Stream::read:
      stream_kernel<Stream::read><<<grid, kThreads, 0, cuda_stream>>>(arguments);
      break;
    case Stream::write:
      stream_kernel<Stream::write><<<grid, kThreads, 0, cuda_stream>>>(arguments);
      break;
    case Stream::copy:
      stream_kernel<Stream::copy><<<grid, kThreads, 0, cuda_stream>>>(arguments);
      break;
    case Stream::triad:
      stream_kernel<Stream::triad><<<grid, kThreads, 0, cuda_stream>>>(arguments);
      break;
  }
  check_launch("stream_kernel");
}

void launch_l1_read(const float4* data, std::size_t bytes, int repeats, int blocks, float* sink, cudaStream_t stream) {
  l1_read_kernel<<<static_cast<unsigned>(blocks), kL1Threads, 0, stream>>>(
      data, static_cast<unsigned>(bytes / sizeof(float4)), repeats, sink);
  check_launch("l1_read_kernel");
}

}  // namespace weft::gpu_probe
