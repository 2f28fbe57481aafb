#include "bench/gpu/device/check.h"
#include "bench/gpu/device/device_clock.cuh"
#include "bench/gpu/victims/work.h"

namespace weft::gpu_probe {
namespace {

// Of the 228 KB of a Hopper unit: no second block fits, nor any beside an aggressor that has shared memory.
constexpr int kSharedBytes = 200 << 10;

__global__ void timed_blocks_kernel(unsigned long long cycles) {
  const unsigned long long begin = now_cycles();
  while (now_cycles() - begin < cycles) {
  }
}

class TimedBlocksWork : public Work {
 public:
  explicit TimedBlocksWork(const Step& step) : shape_(std::get<TimedBlocks>(step.shape)) {
    check(cudaFuncSetAttribute(timed_blocks_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
          "dynamic shared memory of timed blocks");
  }

  void launch(cudaStream_t stream, unsigned) override {
    timed_blocks_kernel<<<static_cast<unsigned>(shape_.blocks), 256, kSharedBytes, stream>>>(
        static_cast<unsigned long long>(shape_.cycles));
    check_launch("timed_blocks_kernel");
  }

 private:
  TimedBlocks shape_;
};

}  // namespace

std::unique_ptr<Work> make_timed_blocks(const Step& step, const Workshop&) {
  return std::make_unique<TimedBlocksWork>(step);
}

}  // namespace weft::gpu_probe
