#include "bench/gpu/device/check.h"
#include "bench/gpu/device/device_clock.cuh"
#include "bench/gpu/suites/unit_kernels.h"

namespace weft::gpu_probe {
namespace {

constexpr int kSharedBytes = 200 << 10;

__global__ void unit_blocks_kernel(BlockTime* times, unsigned long long cycles) {
  const unsigned long long begin_ns = now_ns();
  const unsigned long long begin = now_cycles();
  while (now_cycles() - begin < cycles) {
  }
  if (threadIdx.x == 0) times[blockIdx.x] = {unit_id(), begin_ns, now_ns()};
}

}  // namespace

void launch_unit_blocks(BlockTime* times, int blocks, int cluster, unsigned long long cycles, cudaStream_t stream) {
  check(cudaFuncSetAttribute(unit_blocks_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
        "dynamic shared memory of a block for a unit");
  check(cudaFuncSetAttribute(unit_blocks_kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
        "clusters of more than 8 blocks");
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(cluster);
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(128);
  config.dynamicSmemBytes = kSharedBytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = cluster > 1 ? 1 : 0;
  check(cudaLaunchKernelEx(&config, unit_blocks_kernel, times, cycles), "unit_blocks_kernel");
}

}  // namespace weft::gpu_probe
