#include "bench/gpu/device/check.h"
#include "bench/gpu/device/device_clock.cuh"
#include "bench/gpu/suites/machine_kernels.h"

namespace weft::gpu_probe {
namespace {

constexpr std::size_t kWordsPerLine = 32;

__device__ __forceinline__ unsigned load_l1(const unsigned* from) {
  unsigned v;
  asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}
__device__ __forceinline__ unsigned load_l2(const unsigned* from) {
  unsigned v;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}

// Instructions issue in order, so what comes next waits for this one's operand. No line holds that value.
__device__ __forceinline__ void wait_for(unsigned loaded) {
  asm volatile(
      "{\n"
      ".reg .pred never;\n"
      "setp.eq.u32 never, %0, 0x9e3779b9;\n"
      "@never trap;\n"
      "}" ::"r"(loaded)
      : "memory");
}

__global__ void make_chain_kernel(unsigned* lines, const unsigned* next, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) lines[i * kWordsPerLine] = next[i];
}

template <bool kL1>
__global__ void chase_kernel(const unsigned* lines, int warm_steps, int steps, unsigned long long* out) {
  const auto follow = [&](unsigned line) {
    const unsigned* const at = lines + line * kWordsPerLine;
    return kL1 ? load_l1(at) : load_l2(at);
  };
  unsigned line = 0;
  for (int i = 0; i < warm_steps; ++i) line = follow(line);
  const unsigned long long ns = now_ns();
  const unsigned long long cycles = now_cycles();
  for (int i = 0; i < steps; ++i) line = follow(line);
  out[0] = now_cycles() - cycles;
  out[1] = now_ns() - ns;
  out[2] = line;
}

__global__ void line_latencies_kernel(const unsigned* lines, int count, unsigned unit, unsigned* claimed,
                                      unsigned short* cycles) {
  if (threadIdx.x != 0 || unit_id() != unit || atomicExch(claimed, 1u) != 0) return;
  for (int pass = 0; pass < 3; ++pass) {
    for (int i = 0; i < count; ++i) {
      const unsigned long long begin = now_cycles();
      wait_for(load_l2(lines + static_cast<std::size_t>(i) * kWordsPerLine));
      const unsigned long long end = now_cycles();
      cycles[i] = static_cast<unsigned short>(min(end - begin, 65535ull));
    }
  }
}

__global__ void empty_kernel() {}

__global__ void starts_kernel(unsigned long long* begin_ns) {
  const unsigned long long begin = now_ns();
  if (threadIdx.x == 0) begin_ns[blockIdx.x] = begin;
}

__global__ void timer_steps_kernel(unsigned long long* steps, int count) {
  unsigned long long last = now_ns();
  for (int i = 0; i < count;) {
    const unsigned long long now = now_ns();
    if (now == last) continue;
    steps[i++] = now - last;
    last = now;
  }
}

}  // namespace

void launch_make_chain(unsigned* lines, const unsigned* next, std::size_t count, cudaStream_t stream) {
  make_chain_kernel<<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream>>>(lines, next, count);
  check_launch("make_chain_kernel");
}

void launch_chase(const unsigned* lines, int warm_steps, int steps, bool l1, unsigned long long* out,
                  cudaStream_t stream) {
  if (l1)
    chase_kernel<true><<<1, 1, 0, stream>>>(lines, warm_steps, steps, out);
  else
    chase_kernel<false><<<1, 1, 0, stream>>>(lines, warm_steps, steps, out);
  check_launch("chase_kernel");
}

void launch_line_latencies(const unsigned* lines, int count, unsigned unit, int units, unsigned* claimed,
                           unsigned short* cycles, cudaStream_t stream) {
  check(cudaMemsetAsync(claimed, 0, sizeof(unsigned), stream), "cudaMemsetAsync");
  // So many that every unit gets some.
  line_latencies_kernel<<<static_cast<unsigned>(16 * units), 32, 0, stream>>>(lines, count, unit, claimed, cycles);
  check_launch("line_latencies_kernel");
}

void launch_empty(cudaStream_t stream) {
  empty_kernel<<<1, 32, 0, stream>>>();
  check_launch("empty_kernel");
}

void launch_starts(unsigned long long* begin_ns, int blocks, std::size_t shared_bytes, cudaStream_t stream) {
  check(
      cudaFuncSetAttribute(starts_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
      "dynamic shared memory of starts_kernel");
  starts_kernel<<<static_cast<unsigned>(blocks), 128, shared_bytes, stream>>>(begin_ns);
  check_launch("starts_kernel");
}

void launch_timer_steps(unsigned long long* steps, int count, cudaStream_t stream) {
  timer_steps_kernel<<<1, 1, 0, stream>>>(steps, count);
  check_launch("timer_steps_kernel");
}

}  // namespace weft::gpu_probe
