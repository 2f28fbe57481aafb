// Kernels whose blocks take a unit each, some of them together in a GPC.
#pragma once

#include <cuda_runtime_api.h>

#include "bench/gpu/device/check.h"

namespace weft::gpu_probe {

inline constexpr int kSharedBytesOfUnit = 200 << 10;  // no second block has room beside it

// `cluster` blocks go together, also more than the 8 that are portable; `blocks` is a multiple of it.
template <class... Arguments>
void launch_on_units(void (*kernel)(Arguments...), const char* name, int blocks, unsigned threads, int cluster,
                     cudaStream_t stream, Arguments... arguments) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytesOfUnit), name);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), name);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(cluster);
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = kSharedBytesOfUnit;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = cluster > 1 ? 1 : 0;
  check(cudaLaunchKernelEx(&config, kernel, arguments...), name);
}

}  // namespace weft::gpu_probe
