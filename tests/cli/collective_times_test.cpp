// What collectives take by themselves, as replays use it.
#include "cli/run/collective_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/config/run_config.h"
#include "sim/error.h"

namespace weft {
namespace {

using testing::HasSubstr;

ProgramOp all_reduce(std::int64_t bytes, GpuGroup group, std::uint32_t sequence) {
  ProgramOp op;
  op.kind = ProgramOpKind::collective;
  op.collective = {.bytes = Bytes(bytes), .group = std::move(group), .sequence = sequence};
  return op;
}

TEST(CollectiveTimes, AreOfEachDifferentOneAndOfABarrierOfItsGroup) {
  const RunConfig config = read_run_config(
      Json{{"system", "dgx-a100"}, {"gpus", 4}, {"workload", {{"collective", "all_reduce"}, {"bytes", 1024}}}}, "test");
  const GpuGroup all = GpuGroup::first(4);
  const GpuGroup pair{GpuId{1}, GpuId{3}};
  std::vector<Program> programs(4);
  for (std::uint32_t g = 0; g < 4; ++g) {
    programs[g].priorities = {0};
    programs[g].ops = {all_reduce(1 << 20, all, 0), all_reduce(1 << 20, all, 1)};
    std::vector<ProgramOp>& ops = programs[g].ops.edit();
    if (g % 2 == 1) ops.insert(ops.begin() + 1, all_reduce(1 << 16, pair, 0));
  }
  const auto times = collective_times(config, programs);
  const CollectiveTime large = times.at(signature_of(programs[0].ops[0].collective));
  const CollectiveTime small = times.at(signature_of(programs[1].ops[1].collective));
  EXPECT_EQ(times.size(), 4U);  // two barriers
  EXPECT_GT(large.moving, small.moving);
  EXPECT_GT(small.moving, small.barrier);
  EXPECT_GT(large.barrier, Time(0));
  // 3/4 of it leave each GPU twice, by 12 links of 25 GB/s at most.
  EXPECT_GT(to_seconds(large.moving), 1.5 * (1 << 20) / 300e9);
}

TEST(CollectiveTimes, OfOneThatNeverEndsThereIsNone) {
  const RunConfig config = read_run_config(Json{{"system", {{"base", "mi300x"}, {"gpu", {{"compute_units", 24}}}}},
                                                {"gpus", 8},
                                                {"workload", {{"collective", "all_reduce"}, {"bytes", 1024}}},
                                                {"all_reduce", {{"algorithm", "direct"}, {"channels", 64}}}},
                                           "test");
  std::vector<Program> programs(8);
  for (Program& program : programs) {
    program.priorities = {0};
    program.ops = {all_reduce(1 << 20, GpuGroup::first(8), 0)};
  }
  try {
    static_cast<void>(collective_times(config, programs));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("40 of the 64 thread blocks of collective all_reduce find no place"));
  }
}

}  // namespace
}  // namespace weft
