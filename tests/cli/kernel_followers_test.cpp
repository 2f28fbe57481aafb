// Of GPUs that run the same program in other places of a network, only the first one's kernels are simulated.
#include "cli/sampled/kernel_followers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/cli/both_fidelities.h"

namespace weft {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kTwo = R"({"system": "dgx-a100", "gpus": 2, "workload": {"collective": "barrier"}})";

struct Followed {
  OpTimes first, second;
};

// One kernel, which the second GPU gets by so much later.
Followed followed(Time later) {
  const SystemSpec system = config_of(kTwo).system;
  const ClockDomain clock(system.gpu.clock);
  ProgramOp kernel;
  kernel.kernel.shape.grid = {16, 1, 1};
  kernel.kernel.shape.block = {128, 1, 1};
  kernel.kernel.iterations = 4;
  kernel.kernel.extra_cycles_per_block = 20 * 1410;
  kernel.stream = StreamId{0};
  Program program;
  program.priorities = {0};
  program.ops.push_back(kernel);
  const HostState now{OpId{0}, 1, {0}, std::nullopt, 0};
  const HostState then{OpId{0}, 1, {clock.to_subcycles(later)}, std::nullopt, 0};
  std::vector<GpuWork> works(2);
  for (GpuWork& work : works) {
    work.program = &program;
    work.scripts = {nullptr};
    work.from = &now;
  }
  works[1].from = &then;
  works[1].kernels_timed = true;
  Machine machine(system, works);
  machine.run_until_quiet({}, 1, [&](Time at) { follow_first(machine, at); });
  return {machine.gpu(0).times()[0], machine.gpu(1).times()[0]};
}

TEST(KernelFollowers, TakeAsLongAsTheFirstOnes) {
  const ClockDomain clock(config_of(kTwo).system.gpu.clock);
  const auto us = [&](SubCycle time) { return to_seconds(clock.to_time(time)) * 1e6; };
  for (const int later : {0, 3, 60}) {
    const auto [first, second] = followed(microseconds(later));
    EXPECT_NEAR(us(second.start - first.start), later, 0.1);
    EXPECT_GT(us(first.end - first.start), 20);
    EXPECT_NEAR(us(second.end - second.start), us(first.end - first.start), later == 0 ? 1 : 0.1) << later;
  }
}

constexpr const char* kStep = R"({{"system": {{"base": "{}", "gpu": {{"compute_units": 24}}}}, "gpus": 4,
  "workload": {{"model": "attention", "sequence": 1024, "hidden": 512, "heads": 4}},
  "scheme": {{"name": "data_parallel", "bucket_MiB": 1}}, "all_reduce": {{"algorithm": "{}", "channels": 4}}}})";
constexpr const char* kFollow = "those of others, which are the same, take as long";

TEST(KernelFollowers, StandForTheirKernelsInDetail) {
  const auto [cycle, sampled] = run_both(fmt::format(kStep, "dgx-a100", "double_binary_tree"));
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr(kFollow));
  EXPECT_NEAR(iteration(sampled, "time_s") / iteration(cycle, "time_s"), 1, 0.03);
  EXPECT_NEAR(iteration(sampled, "backward_s") / iteration(cycle, "backward_s"), 1, 0.03);
}

// A root and leaves do different things; of four in a cube mesh, some send by links of two lanes.
TEST(KernelFollowers, AreOnlyThoseThatDoTheSame) {
  for (const auto& [system, algorithm] : {std::pair("dgx-a100", "tree"), std::pair("dgx1-v100", "ring")}) {
    const auto [cycle, sampled] = run_both(fmt::format(kStep, system, algorithm));
    EXPECT_THAT(sampled.at("notes").dump(), Not(HasSubstr(kFollow)));
    EXPECT_NEAR(iteration(sampled, "backward_s") / iteration(cycle, "backward_s"), 1, 0.01) << system;
  }
}

}  // namespace
}  // namespace weft
