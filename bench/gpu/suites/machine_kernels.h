// Kernels that measure the machine itself.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace weft::gpu_probe {

enum class Stream { read, write, copy, triad };
struct StreamArguments {
  const float4* a = nullptr;
  const float4* b = nullptr;
  float4* out = nullptr;
  std::size_t vectors = 0;  // of each tensor
  int repeats = 1;
};
// Blocks of 512 threads go over the tensors together, `repeats` times. Loads do not keep to the L1.
void launch_stream(Stream stream, const StreamArguments& arguments, int blocks, cudaStream_t cuda_stream);

struct MixArguments {
  float4* data = nullptr;   // tensors one after another: those read, those written
  std::size_t vectors = 0;  // of each
  int repeats = 1;
  unsigned* units = nullptr;  // of each block
};
// Blocks of 1024 threads, one for a unit, `cluster` of them in a GPC, read and write so many tensors each: 1 and 0, 3
// and 1, 2 and 1, 1 and 1, 1 and 2, 1 and 3, 0 and 1.
void launch_mix(int reads, int writes, const MixArguments& arguments, int blocks, int cluster, cudaStream_t stream);

// Blocks of 1024 threads read or write 2^vector_bits vectors, in pieces of 2^piece_bits in random order.
void launch_pieces(bool writes, float4* data, unsigned vector_bits, unsigned piece_bits, int blocks, float* sink,
                   cudaStream_t stream);

// Each block of 1024 threads reads its own `bytes` `repeats` times, through the L1.
void launch_l1_read(const float4* data, std::size_t bytes, int repeats, int blocks, float* sink, cudaStream_t stream);

// Line i of 128 B gets next[i], the number of the line that follows.
void launch_make_chain(unsigned* lines, const unsigned* next, std::size_t count, cudaStream_t stream);
// One thread follows the chain; out: cycles and nanoseconds. Loads keep to the L1 if `l1`.
void launch_chase(const unsigned* lines, int warm_steps, int steps, bool l1, unsigned long long* out,
                  cudaStream_t stream);

// On the unit asked for: cycles of one load of each line, past the L1, once the L2 has them. The first block on that
// unit takes it, by `claimed`.
void launch_line_latencies(const unsigned* lines, int count, unsigned unit, int units, unsigned* claimed,
                           unsigned short* cycles, cudaStream_t stream);

void launch_empty(cudaStream_t stream);
// Every block notes when it began.
void launch_starts(unsigned long long* begin_ns, int blocks, std::size_t shared_bytes, cudaStream_t stream);
// The first differences of the timer that are not 0.
void launch_timer_steps(unsigned long long* steps, int count, cudaStream_t stream);

}  // namespace weft::gpu_probe
