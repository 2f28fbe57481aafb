// Kernels that reach into the host's memory, as collectives between nodes do, and fences.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace weft::gpu_probe {

// Blocks of 512 threads load or store all lines of 16 B, past the caches, as NCCL's LL does; `unroll` (1 or 4) loads of
// a thread at a time.
void launch_lines(bool writes, int unroll, uint4* lines, std::size_t count, int blocks, unsigned* sink,
                  cudaStream_t stream);
// One thread follows a chain of lines of 128 B, each of which begins with the next one's number; out: nanoseconds.
void launch_host_chase(const unsigned* lines, int steps, unsigned long long* out, cudaStream_t stream);
// One thread writes 1, 2, ... to `ping` and waits each time until `pong` has it; out: nanoseconds of all rounds, or
// untouched after a second without an answer.
void launch_ping(volatile unsigned* ping, const volatile unsigned* pong, int rounds, unsigned long long* out,
                 cudaStream_t stream);
// Each block of 512 threads writes its own vectors, and one thread fences, `rounds` times: cycles of each fence.
void launch_fences(uint4* data, unsigned vectors_of_block, int rounds, bool system, int blocks, unsigned* cycles,
                   cudaStream_t stream);

}  // namespace weft::gpu_probe
