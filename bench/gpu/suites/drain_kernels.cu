#include "bench/gpu/device/check.h"
#include "bench/gpu/device/device_clock.cuh"
#include "bench/gpu/suites/drain_kernels.h"

namespace weft::gpu_probe {
namespace {

constexpr unsigned kThreads = 256;

__global__ void small_kernel(SmallKernel k) {
  const unsigned long long begin_ns = now_ns();
  const unsigned long long begin = now_cycles();
  while (now_cycles() - begin < k.cycles) {
  }
  auto* const vectors = static_cast<uint4*>(k.data);
  for (unsigned at = threadIdx.x; at < k.bytes_written / sizeof(uint4); at += kThreads)
    vectors[at] = uint4{at, at, at, at};
  if (k.fence == Fence::device) __threadfence();
  if (k.fence == Fence::system) __threadfence_system();
  if (k.stamps != nullptr && threadIdx.x == 0) *k.stamps = {begin_ns, now_ns()};
}

}  // namespace

void launch_small_kernel(const SmallKernel& kernel, cudaStream_t stream) {
  small_kernel<<<1, kThreads, 0, stream>>>(kernel);
  check_launch("small_kernel");
}

}  // namespace weft::gpu_probe
