// The persistent blocks that stand for a collective's.
#pragma once

#include <cuda_runtime_api.h>

#include "bench/gpu/plan/aggressors.h"

namespace weft::gpu_probe {

// In device memory; a block writes its own.
struct BlockReport {
  unsigned long long bytes_written = 0;  // grows with each chunk
  unsigned long long cycles_begin = 0, cycles_end = 0, ns_begin = 0, ns_end = 0;
  unsigned unit = 0, timed_out = 0;
};

struct AggressorArguments {
  const uint4* source_a = nullptr;
  const uint4* source_b = nullptr;
  uint4* target = nullptr;
  unsigned long long slice_vectors = 0;    // of 16 B, of each tensor, for a block
  unsigned long long interval_cycles = 0;  // from chunk to chunk; 0: no waits
  unsigned long long most_cycles = 0;      // ends by itself then, if nobody says stop
  const unsigned* stop = nullptr;          // device memory, set from another stream
  BlockReport* reports = nullptr;
  volatile unsigned* running = nullptr;  // host memory: 1 + the block's unit once it runs
  volatile unsigned* flags = nullptr;    // host memory, one a block; absent: no fences
  const unsigned* ballast = nullptr;     // device memory, 128 words of which nothing is known
};

void launch_aggressor(const Aggressor& aggressor, const AggressorArguments& arguments, cudaStream_t stream);
// As the compiler made it.
[[nodiscard]] int registers_of(const Aggressor& aggressor);

// Writes bytes written so far by all blocks, and nanoseconds, to out[0..1]. One warp.
void snapshot(const BlockReport* reports, int blocks, unsigned long long* out, cudaStream_t stream);

}  // namespace weft::gpu_probe
