#include "gpu_model/resident_blocks.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

// A kernel that computes for `cycles` on each of `blocks` units, beside resident blocks.
class Beside {
 public:
  Beside(ResidentSpec spec, std::uint32_t blocks, double cycles_of_block) {
    KernelDemand demand = grid_of(blocks, 256);
    demand.shape.shared_memory_bytes = 60 << 10;  // one a unit
    demand.extra_cycles_per_block = cycles_of_block;
    program_ = program_of({kernel_op(demand)});
    work_.program = &program_;
    work_.scripts.assign(1, nullptr);
    work_.flags = 1;
    if (spec.blocks > 0) {
      kernel_ = resident_kernel(spec, gpu_spec_, std::int64_t{512} << 20, 0);
      work_.residents = {&kernel_};
    }
  }
  Gpu& run() {
    gpu_.emplace(GpuId{0}, gpu_spec_, work_, LinkPorts());
    run_alone(*gpu_);
    return *gpu_;
  }
  [[nodiscard]] double kernel_cycles() const {
    const OpTimes& times = gpu_->times()[0];
    return static_cast<double>(times.end - times.start) / static_cast<double>(kCycle);
  }

 private:
  GpuSpec gpu_spec_ = small_gpu();
  Program program_;
  GpuWork work_;
  ScriptedKernel kernel_;
  std::optional<Gpu> gpu_;
};

ResidentSpec spinning(std::uint32_t blocks) {
  return {.work = ResidentWork::spin, .blocks = blocks, .shared_memory_bytes = 32 << 10};
}

ResidentSpec copying(std::uint32_t blocks, std::optional<Bandwidth> rate) {
  ResidentSpec spec{.work = ResidentWork::copy, .blocks = blocks, .threads = 256};
  spec.registers = 16;
  spec.buffer_bytes = 8 << 20;
  spec.chunk_bytes = 4096;
  spec.rate = rate;
  return spec;
}

// A kernel with a block for each of the four units, and one that leaves a unit free.
TEST(ResidentBlocks, TakePlacesSoThatAKernelNeedsAnotherWave) {
  Beside alone(spinning(0), 4, 100'000);
  ASSERT_TRUE(alone.run().done());
  Beside one_place_less(spinning(1), 4, 100'000);
  ASSERT_TRUE(one_place_less.run().done());
  Beside room_for_all(spinning(1), 3, 100'000);
  ASSERT_TRUE(room_for_all.run().done());
  EXPECT_NEAR(one_place_less.kernel_cycles(), 2 * alone.kernel_cycles(), 100);
  EXPECT_NEAR(room_for_all.kernel_cycles(), alone.kernel_cycles(), 10);
}

TEST(ResidentBlocks, SpinWithoutTouchingMemoryAndStopWithTheLastOperation) {
  Beside run(spinning(2), 1, 10'000);
  Gpu& gpu = run.run();
  ASSERT_TRUE(gpu.done());
  ASSERT_EQ(gpu.residents().size(), 1U);
  EXPECT_EQ(gpu.residents()[0].loaded_bytes, 0);
  EXPECT_EQ(gpu.residents()[0].stopped, gpu.clock().to_time(gpu.times()[0].end));
  EXPECT_EQ(gpu.statistics().memory_transactions, 0);
  // Held from the start of the run to a poll after its end, two blocks on a unit each.
  const double end = to_seconds(gpu.residents()[0].stopped);
  EXPECT_NEAR(gpu.statistics().unit_seconds_communication, 2 * end, 0.02 * end);
}

TEST(ResidentBlocks, KeepTheRateThatIsAskedFor) {
  Beside run(copying(4, gigabytes_per_second(8)), 1, 400'000);
  Gpu& gpu = run.run();
  ASSERT_TRUE(gpu.done());
  const ResidentTraffic& traffic = gpu.residents()[0];
  EXPECT_NEAR(static_cast<double>(traffic.stored_bytes) / to_seconds(traffic.stopped) * 1e-9, 8, 0.1);
  EXPECT_EQ(traffic.loaded_bytes, traffic.stored_bytes);
}

TEST(ResidentBlocks, CopyAsFastAsMemoryGoesWithoutARate) {
  ResidentSpec spec = copying(8, std::nullopt);
  spec.chunk_bytes = 16 << 10;
  Beside run(spec, 1, 400'000);
  Gpu& gpu = run.run();
  const ResidentTraffic& traffic = gpu.residents()[0];
  const double moved =
      static_cast<double>(traffic.loaded_bytes + traffic.stored_bytes) / to_seconds(traffic.stopped) * 1e-9;
  EXPECT_GT(moved, 0.75 * 128);  // GB/s of the small GPU's HBM
  EXPECT_LE(moved, 128);
}

TEST(ResidentBlocks, StayInTheCacheWhenTheirBufferDoes) {
  ResidentSpec spec = copying(4, gigabytes_per_second(8));
  spec.buffer_bytes = 32 << 10;  // of 64 KiB
  Beside run(spec, 1, 400'000);
  Gpu& gpu = run.run();
  EXPECT_GT(gpu.residents()[0].stored_bytes, 1 << 20);
  EXPECT_LE(gpu.hbm_bytes().read, 16 << 10);  // once
  EXPECT_LE(gpu.hbm_bytes().written, 16 << 10);
}

TEST(ResidentBlocks, ReduceLoadsTwoLinesForEachItStores) {
  ResidentSpec spec = copying(2, gigabytes_per_second(4));
  spec.work = ResidentWork::reduce;
  Beside run(spec, 1, 200'000);
  const ResidentTraffic traffic = run.run().residents()[0];
  EXPECT_GT(traffic.stored_bytes, 0);
  EXPECT_EQ(traffic.loaded_bytes, 2 * traffic.stored_bytes);
}

TEST(ResidentBlocks, RefuseABufferWithoutAChunkForEachBlock) {
  ResidentSpec spec = copying(4, std::nullopt);
  spec.buffer_bytes = 4096;
  EXPECT_THROW(static_cast<void>(resident_kernel(spec, small_gpu(), 0, 0)), InputError);
}

}  // namespace
}  // namespace weft
