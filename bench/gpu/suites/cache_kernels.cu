#include "bench/gpu/device/cluster_launch.h"
#include "bench/gpu/suites/cache_kernels.h"

namespace weft::gpu_probe {
namespace {

constexpr unsigned kThreads = 1024;
constexpr int kUnroll = 4;

template <bool kWrites>
__global__ void __launch_bounds__(kThreads) region_kernel(RegionArguments s) {
  const unsigned groups = gridDim.x / s.readers;
  const std::size_t lag = s.lag * (blockIdx.x % s.readers) % s.vectors;
  unsigned group = (blockIdx.x / s.readers + s.shift) % groups;
  float kept = 0;
  for (int repeat = 0; repeat < s.repeats; ++repeat) {
    float4* const region = s.data + group * s.vectors;
    for (std::size_t at = 0; at < s.vectors; at += kUnroll * kThreads) {
      float4 loaded[kUnroll];
#pragma unroll
      for (int j = 0; j < kUnroll; ++j) {
        loaded[j] = {};
        if (at + j * kThreads >= s.vectors) continue;
        std::size_t i = at + j * kThreads + threadIdx.x + lag;
        if (i >= s.vectors) i -= s.vectors;
        if constexpr (kWrites)
          region[i] = float4{1, 2, 3, 4};
        else
          loaded[j] = __ldcg(region + i);
      }
#pragma unroll
      for (int j = 0; j < kUnroll; ++j) kept += loaded[j].x + loaded[j].y + loaded[j].z + loaded[j].w;
    }
    group = (group + s.rotation) % groups;
  }
  if (!kWrites && kept == 1e30f) s.data[threadIdx.x] = float4{kept, 0, 0, 0};
}

}  // namespace

void launch_regions(const RegionArguments& arguments, int blocks, int cluster, cudaStream_t stream) {
  const auto kernel = arguments.writes ? region_kernel<true> : region_kernel<false>;
  launch_on_units(kernel, "region_kernel", blocks, kThreads, cluster, stream, arguments);
}

}  // namespace weft::gpu_probe
