// Kernels that measure how the L2 serves many units at once.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace weft::gpu_probe {

struct RegionArguments {
  float4* data = nullptr;
  std::size_t vectors = 0;  // of one region, a multiple of 1024
  unsigned readers = 1;     // blocks that read the same region
  unsigned shift = 0;       // a group begins with the region so many behind its own
  unsigned rotation = 0;    // a group goes on by so many regions after each pass
  std::size_t lag = 0;      // vectors that a reader of a group is behind the one before it
  int repeats = 1;
  bool writes = false;
};
// Reads (or writes) of blocks of 1024 threads that take a unit each, `cluster` of them in a GPC, past the L1.
void launch_regions(const RegionArguments& arguments, int blocks, int cluster, cudaStream_t stream);

}  // namespace weft::gpu_probe
