// Machines of GPUs and switches: whether they end, the same way every time, and what one GPU of a preset does.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "tests/cli/ran_machine.h"

namespace weft {
namespace {

TEST(Machine, AGpuThatWaitsForeverIsADeadlock) {
  RunConfig config = all_reduce(1 << 20, "ring", 2);
  std::vector<std::string> notes;
  std::vector<Program> programs = make_programs(config, notes);
  const Scripts scripts(config, programs);
  const Program nothing{.ops = {}, .priorities = {0}, .memory = {}};
  GpuWork idle = scripts.work(1);
  idle.program = &nothing;
  idle.scripts.clear();
  Machine machine(config.system, {scripts.work(0), idle});
  EXPECT_FALSE(machine.run(1, {}));
}

// When the operations of all GPUs began and ended, from a child process: an engine runs once a process.
std::vector<std::int64_t> times_in_child(const RunConfig& config) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::int64_t> times;
    const RanMachine ran(config);
    for (std::size_t g = 0; g < ran.machine->gpus(); ++g) {
      for (const OpTimes& op : ran.machine->gpu(g).times()) times.insert(times.end(), {op.start, op.end});
    }
    times.push_back(ran.machine->end().count());
    const auto size = static_cast<ssize_t>(times.size() * sizeof times[0]);
    const bool written = write(ends[1], times.data(), static_cast<std::size_t>(size)) == size;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::vector<std::int64_t> times;
  std::int64_t time = 0;
  while (read(ends[0], &time, sizeof time) == static_cast<ssize_t>(sizeof time)) times.push_back(time);
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return times;
}

TEST(Machine, RunsTheSameEveryTimeAndOnAnyNumberOfThreads) {
  for (const char* algorithm : {"ring", "in_switch"}) {
    RunConfig config = all_reduce(1 << 20, algorithm);
    const std::vector<std::int64_t> first = times_in_child(config);
    EXPECT_EQ(first.size(), 8U * 2 + 1);
    EXPECT_EQ(times_in_child(config), first) << algorithm;
    config.threads = 2;
    EXPECT_EQ(times_in_child(config), first) << algorithm;
  }
}

// A step of LL needs no fence and no flag behind the data.
TEST(Machine, LlIsFasterThanSimpleWhereLatencyCounts) {
  const auto end = [](const std::string& protocol) {
    const RunConfig config = all_reduce(8 << 10, "ring", 4, protocol);
    const std::vector<std::int64_t> times = times_in_child(config);  // the last one is of the machine
    if (times.empty()) return Time(0);
    return ClockDomain(config.system.gpu.clock).to_time(*std::max_element(times.begin(), times.end() - 1));
  };
  const Time ll = end("LL");
  EXPECT_GT(ll, Time(0));
  EXPECT_GT(end("Simple"), ll + microseconds(6 * 3));  // the fences of six steps
}

TEST(Machine, EveryAlgorithmEndsBehindSwitches) {
  for (const char* algorithm : {"tree", "double_binary_tree", "halving_doubling", "direct"}) {
    for (const char* protocol : {"Simple", "LL"}) {
      const std::vector<std::int64_t> times = times_in_child(all_reduce(100 << 10, algorithm, 8, protocol));
      ASSERT_EQ(times.size(), 8U * 2 + 1) << algorithm << " " << protocol;
      for (const std::int64_t time : times) EXPECT_GE(time, 0) << algorithm << " " << protocol;
    }
  }
}

TEST(MachineFormula, AStreamingKernelOfAnH100ReachesItsMemorysBandwidth) {
  const GpuSpec spec = preset_system("hgx-h100").gpu;
  constexpr std::int64_t kBytes = 96 << 20;
  Program program;
  program.priorities = {0};
  program.ops.edit().resize(1);
  KernelDemand& demand = program.ops.edit().front().kernel;
  demand.shape.grid = {kBytes >> 15, 1, 1};
  demand.shape.block = {512, 1, 1};
  demand.iterations = 8;
  demand.reads = {{.base = 1 << 28, .bytes_per_block = 1 << 15}};
  GpuWork work;
  work.program = &program;
  work.scripts = {nullptr};
  Gpu gpu(GpuId{0}, spec, work, LinkPorts());
  run_alone(gpu);
  ASSERT_TRUE(gpu.done());
  EXPECT_EQ(gpu.l2().hbm_statistics().read_bytes, kBytes);
  const OpTimes& times = gpu.times().front();
  const double taken = to_seconds(gpu.clock().to_time(times.end - times.start));
  const double refresh = to_seconds(spec.hbm.refresh + spec.hbm.row_miss) / to_seconds(spec.hbm.refresh_interval);
  const double expected =
      static_cast<double>(kBytes) / (static_cast<double>(spec.hbm.bandwidth.count()) * (1 - refresh));
  EXPECT_GE(taken, expected);
  EXPECT_LE(taken, expected * 1.05);
}

}  // namespace
}  // namespace weft
