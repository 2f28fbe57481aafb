// Kernels that the measuring itself needs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "bench/gpu/plan/step.h"

namespace weft::gpu_probe {

// out[0..1]: clock and nanoseconds at the beginning, out[2..3]: after `ns`. One thread.
void sample_clocks(unsigned long long* out, unsigned long long ns, cudaStream_t stream);

// Holds a stream back, so that the host gets ahead of it. One thread.
void delay(unsigned long long ns, cudaStream_t stream);

// Uniform between -1 and 1.
void fill_random(void* data, std::size_t bytes, Element element, unsigned seed, cudaStream_t stream);

}  // namespace weft::gpu_probe
