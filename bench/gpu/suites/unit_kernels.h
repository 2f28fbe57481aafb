#pragma once

#include <cuda_runtime_api.h>

namespace weft::gpu_probe {

struct BlockTime {
  unsigned unit = 0;
  unsigned long long begin_ns = 0, end_ns = 0;
};

// Each block takes nearly all the shared memory of a unit and `cycles`, and notes where and when it ran. `cluster`
// blocks go together; `blocks` is a multiple of it.
void launch_unit_blocks(BlockTime* times, int blocks, int cluster, unsigned long long cycles, cudaStream_t stream);

}  // namespace weft::gpu_probe
