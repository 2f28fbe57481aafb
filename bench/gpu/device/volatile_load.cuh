#pragma once

namespace weft::gpu_probe {

// As NCCL loads: past the L1, and never left out by the compiler.
__device__ __forceinline__ uint4 load_volatile(const uint4* from) {
  uint4 v;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}

}  // namespace weft::gpu_probe
