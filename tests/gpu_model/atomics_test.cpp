// Atomics: read, changed and written in an L2 slice.
#include <gtest/gtest.h>

#include "tests/gpu_model/small_gpu.h"

namespace weft {
namespace {

constexpr double kBlockStart = 1;
constexpr double kHit = 100;
constexpr double kHbm = 200;
constexpr double kSlower = 2;  // an atomic of 128 B takes 4 cycles at 32 B a cycle, an access 2

KernelDemand adding(std::uint32_t blocks, bool value_returns) {
  KernelDemand demand = grid_of(blocks, 32);
  const Operand line{.base = 1 << 20, .bytes_per_block = 128, .modulo = 1, .atomic = true};
  (value_returns ? demand.reads : demand.writes) = {line};
  return demand;
}

TEST(Atomics, TakeTheWayToTheSliceTheFetchAndTheAtomicUnit) {
  for (const bool value_returns : {false, true}) {
    AloneGpu alone(small_gpu(), program_of({kernel_op(adding(1, value_returns)), kernel_op(adding(1, value_returns))}));
    const Gpu& gpu = alone.run();
    EXPECT_EQ(alone.duration(0), kBlockStart + kHit + kHbm + kSlower);
    EXPECT_EQ(alone.duration(1), kBlockStart + kHit + kSlower);
    EXPECT_EQ(gpu.l2().hbm_statistics().read_bytes, 128);
  }
}

TEST(Atomics, OfOneLineGoOneAfterTheOther) {
  AloneGpu alone(small_gpu(), program_of({kernel_op(adding(1, false)), kernel_op(adding(1000, false))}));
  alone.run();
  EXPECT_NEAR(alone.duration(1), 1000 * 4 + kHit, 50);
}

TEST(Atomics, LeaveALineToBeWrittenBack) {
  GpuSpec spec = small_gpu();
  KernelDemand atomics = grid_of(512, 32);  // as many lines as the L2 holds
  atomics.writes = {{.base = 1 << 20, .bytes_per_block = 128, .atomic = true}};
  KernelDemand reads = grid_of(2048, 32);
  reads.reads = {{.base = 4 << 20, .bytes_per_block = 128}};
  AloneGpu alone(spec, program_of({kernel_op(atomics), kernel_op(reads)}));
  const Gpu& gpu = alone.run();
  EXPECT_EQ(gpu.l2().hbm_statistics().write_bytes, 512 * 128);
}

}  // namespace
}  // namespace weft
