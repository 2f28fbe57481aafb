// How fast the model runs: streaming kernels of 100 MB on one full H100, in memory transactions a second.
#include <benchmark/benchmark.h>

#include <systemc>

#include "cli/config/system_of.h"
#include "cli/run/machine.h"

namespace weft {
namespace {

constexpr std::int64_t kBytesPerBlock = 1 << 15;  // of one array
constexpr std::int64_t kArray = 100'000'000 / kBytesPerBlock * kBytesPerBlock;
constexpr std::uint64_t kBase = std::uint64_t{1} << 28;

// A kernel that reads and writes so many arrays, which share 100 MB.
KernelDemand streaming(std::uint32_t reads, std::uint32_t writes) {
  KernelDemand demand;
  const std::uint32_t arrays = reads + writes;
  demand.shape.grid = {static_cast<std::uint32_t>(kArray / kBytesPerBlock) / arrays, 1, 1};
  demand.shape.block = {512, 1, 1};
  demand.iterations = 8;
  for (std::uint32_t a = 0; a < arrays; ++a) {
    (a < reads ? demand.reads : demand.writes)
        .push_back({.base = kBase + a * static_cast<std::uint64_t>(kArray), .bytes_per_block = kBytesPerBlock});
  }
  return demand;
}

void stream(benchmark::State& state, std::uint32_t reads, std::uint32_t writes) {
  const GpuSpec spec = preset_system("hgx-h100").gpu;
  Program program;
  program.priorities = {0};
  program.ops.edit().resize(1);
  program.ops.edit().front().kernel = streaming(reads, writes);
  GpuWork work;
  work.program = &program;
  work.scripts = {nullptr};
  std::int64_t transactions = 0;
  Time simulated;
  for (auto run : state) {
    state.PauseTiming();
    Gpu gpu(GpuId{0}, spec, work, LinkPorts());
    state.ResumeTiming();
    run_alone(gpu);
    transactions += gpu.statistics().memory_transactions;
    const OpTimes& times = gpu.times().front();
    simulated = gpu.clock().to_time(times.end - times.start);
    static_cast<void>(run);
  }
  state.counters["transactions/s"] = benchmark::Counter(static_cast<double>(transactions), benchmark::Counter::kIsRate);
  const auto moved = static_cast<double>(program.ops.front().kernel.shape.blocks() * (reads + writes) * kBytesPerBlock);
  state.counters["simulated_GB/s"] = moved / to_seconds(simulated) * 1e-9;
}

BENCHMARK_CAPTURE(stream, read, 1, 0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(stream, write, 0, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(stream, copy, 1, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(stream, triad, 2, 1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weft

// Every executable that links SystemC defines sc_main; its own main() calls that.
int sc_main(int argc, char* argv[]) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
