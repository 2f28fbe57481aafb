#pragma once

#include <cuda_runtime_api.h>

namespace weft::gpu_probe {

struct Stamps {
  unsigned long long begin_ns = 0, end_ns = 0;
};

enum class Fence { none, device, system };

struct SmallKernel {
  unsigned long long cycles = 4000;  // about 2 us
  unsigned bytes_written = 0;        // to `data` at the end, by all threads
  void* data = nullptr;
  Fence fence = Fence::none;  // by each thread, after that
  Stamps* stamps = nullptr;   // null: the kernel writes nothing of its own
};

// One block of 256 threads.
void launch_small_kernel(const SmallKernel& kernel, cudaStream_t stream);

}  // namespace weft::gpu_probe
