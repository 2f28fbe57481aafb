#include "bench/gpu/device/cluster_launch.h"
#include "bench/gpu/device/device_clock.cuh"
#include "bench/gpu/suites/unit_kernels.h"

namespace weft::gpu_probe {
namespace {

__global__ void unit_blocks_kernel(BlockTime* times, unsigned long long cycles) {
  const unsigned long long begin_ns = now_ns();
  const unsigned long long begin = now_cycles();
  while (now_cycles() - begin < cycles) {
  }
  if (threadIdx.x == 0) times[blockIdx.x] = {unit_id(), begin_ns, now_ns()};
}

}  // namespace

void launch_unit_blocks(BlockTime* times, int blocks, int cluster, unsigned long long cycles, cudaStream_t stream) {
  launch_on_units(unit_blocks_kernel, "unit_blocks_kernel", blocks, 128, cluster, stream, times, cycles);
}

}  // namespace weft::gpu_probe
