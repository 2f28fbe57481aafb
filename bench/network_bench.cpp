// How fast the network runs: random traffic on meshes, tori and trees, in packet-hops a second of CPU time.
#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <systemc>

#include "network/traffic.h"

namespace weft {
namespace {

NetworkSpec network(TopologyKind kind, std::uint32_t endpoints) {
  NetworkSpec spec;
  spec.topology = kind;
  spec.link.bandwidth = gigabytes_per_second(25);
  spec.link.latency = nanoseconds(175);
  spec.link.credits = 128;
  spec.switch_.latency = nanoseconds(150);
  spec.dimensions = {8, endpoints / 8};
  spec.tree = {.levels = 2, .radix = 16};
  return spec;
}

struct Measured {
  double seconds = 0;
  std::int64_t hops = 0;
};

// SystemC elaborates once a process: each run has its own.
Measured run_in_child(TopologyKind kind, std::uint32_t endpoints, double load) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {};
  if (const pid_t child = fork(); child == 0) {
    TrafficSpec traffic;
    traffic.payload = 128;
    traffic.cycle = transfer_time(Bytes(144), gigabytes_per_second(25));  // of a whole packet
    traffic.load = load;
    traffic.end = microseconds(400);
    Fabric fabric(network(kind, endpoints), endpoints);
    const std::clock_t started = std::clock();
    Measured measured;
    measured.hops = run_traffic(traffic, fabric, endpoints).hops;
    measured.seconds = static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC;
    const bool written = write(ends[1], &measured, sizeof measured) == static_cast<ssize_t>(sizeof measured);
    _exit(written ? 0 : 1);
  }
  Measured measured;
  const bool got = read(ends[0], &measured, sizeof measured) == static_cast<ssize_t>(sizeof measured);
  int status = -1;
  wait(&status);
  close(ends[0]);
  close(ends[1]);
  return got && status == 0 ? measured : Measured{};
}

void traffic(benchmark::State& state, TopologyKind kind, double load) {
  std::int64_t hops = 0;
  double seconds = 0;
  for (auto run : state) {
    const Measured measured = run_in_child(kind, static_cast<std::uint32_t>(state.range(0)), load);
    hops += measured.hops;
    seconds += measured.seconds;
    state.SetIterationTime(measured.seconds);
    static_cast<void>(run);
  }
  state.counters["packet_hops/s"] = seconds > 0 ? static_cast<double>(hops) / seconds : 0;
}

BENCHMARK_CAPTURE(traffic, mesh, TopologyKind::mesh, 0.2)->Arg(16)->Arg(64)->UseManualTime();
BENCHMARK_CAPTURE(traffic, torus, TopologyKind::torus, 0.4)->Arg(16)->Arg(64)->UseManualTime();
BENCHMARK_CAPTURE(traffic, fat_tree, TopologyKind::fat_tree, 0.5)->Arg(8)->Arg(64)->UseManualTime();

}  // namespace
}  // namespace weft

// Every executable that links SystemC defines sc_main; its own main() calls that.
int sc_main(int argc, char* argv[]) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
