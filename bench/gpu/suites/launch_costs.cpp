#include "bench/gpu/suites/launch_costs.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "bench/gpu/device/memory.h"
#include "bench/gpu/device/small_kernels.h"
#include "bench/gpu/plan/statistics.h"
#include "bench/gpu/suites/machine_kernels.h"
#include "bench/gpu/suites/victim_run.h"

namespace weft::gpu_probe {
namespace {

using nlohmann::json;

constexpr int kKernels = 500, kTimings = 7;

class Graph {
 public:
  explicit Graph(cudaStream_t stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (int i = 0; i < kKernels; ++i) launch_empty(stream);
    check(cudaStreamEndCapture(stream, &graph_), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&executable_, graph_, 0), "cudaGraphInstantiate");
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    static_cast<void>(cudaGraphExecDestroy(executable_));
    static_cast<void>(cudaGraphDestroy(graph_));
  }
  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(executable_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

// Sorted, from the first block's.
json starts(const Gpu& gpu, int blocks, std::size_t shared_bytes) {
  const auto count = static_cast<std::size_t>(blocks);
  DeviceArray<unsigned long long> device(count);
  PinnedArray<unsigned long long> read(count);
  const auto stream = gpu.compute();
  for (int warm = 0; warm < 3; ++warm) launch_starts(device.data(), blocks, shared_bytes, stream);
  check(cudaMemcpyAsync(read.data(), device.data(), device.bytes(), cudaMemcpyDeviceToHost, stream), "starts");
  check(cudaStreamSynchronize(stream), "starts of blocks");
  std::sort(read.data(), read.data() + count);
  json out = json::array();
  for (std::size_t i = 0; i < count; ++i) out.push_back(read[i] - read[0]);
  return {{"blocks", blocks}, {"shared_memory_bytes", shared_bytes}, {"starts_ns", out}};
}

json timer_steps(const Gpu& gpu) {
  constexpr int kSteps = 64;
  DeviceArray<unsigned long long> device(kSteps);
  PinnedArray<unsigned long long> read(kSteps);
  launch_timer_steps(device.data(), kSteps, gpu.compute());
  check(cudaMemcpyAsync(read.data(), device.data(), device.bytes(), cudaMemcpyDeviceToHost, gpu.compute()), "steps");
  check(cudaStreamSynchronize(gpu.compute()), "steps of the timer");
  return summarize(std::vector<double>(read.data(), read.data() + kSteps));
}

}  // namespace

json launch_costs(Gpu& gpu) {
  const auto stream = gpu.compute();
  Timer timer(kTimings);
  const auto per_kernel = [](std::vector<double> us) {
    for (double& one : us) one /= kKernels;
    return json(summarize(std::move(us)));
  };
  const auto launch_all = [&] {
    for (int i = 0; i < kKernels; ++i) launch_empty(stream);
  };
  launch_all();
  check(cudaStreamSynchronize(stream), "empty kernels");
  json out;
  const auto begin = std::chrono::steady_clock::now();
  launch_all();
  const std::chrono::duration<double, std::micro> host = std::chrono::steady_clock::now() - begin;
  out["host_call_us"] = host.count() / kKernels;
  out["stream_us"] = per_kernel(timer.time(kTimings, stream, launch_all));
  // The host is ahead, so the device alone sets the pace.
  std::vector<double> ahead;
  for (int i = 0; i < kTimings; ++i) {
    delay(5000000, stream);
    ahead.push_back(timer.time(1, stream, launch_all).front());
  }
  out["device_us"] = per_kernel(ahead);
  const Graph graph(stream);
  graph.launch(stream);
  check(cudaStreamSynchronize(stream), "a graph");
  out["graph_us"] = per_kernel(timer.time(kTimings, stream, [&] { graph.launch(stream); }));
  out["one_event_pair_us"] = summarize(timer.time(kTimings, stream, [&] { launch_empty(stream); }));
  out["timer_step_ns"] = timer_steps(gpu);
  out["block_starts"] = json::array({starts(gpu, gpu.units(), 200 << 10), starts(gpu, 8 * gpu.units(), 0)});
  return out;
}

}  // namespace weft::gpu_probe
