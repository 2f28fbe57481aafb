#include "bench/gpu/suites/victim_run.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "bench/gpu/device/check.h"
#include "bench/gpu/device/small_kernels.h"

namespace weft::gpu_probe {

cudaGraphExec_t captured(cudaStream_t stream, const std::function<void()>& launch) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  bool launched = true;
  try {
    launch();
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "no graph: %s\n", error.what());
    launched = false;
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  const bool ended = cudaStreamEndCapture(stream, &graph) == cudaSuccess;
  if (launched && ended && cudaGraphInstantiate(&executable, graph, 0) != cudaSuccess) executable = nullptr;
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  // A capture that failed is no error of the device.
  if (executable == nullptr) static_cast<void>(cudaGetLastError());
  return executable;
}

VictimRun::~VictimRun() {
  for (cudaGraphExec_t graph : graphs_) static_cast<void>(cudaGraphExecDestroy(graph));
}

void VictimRun::launch(cudaStream_t stream) {
  if (graphs_.empty()) {
    for (const auto& work : works_) work->launch(stream, turn_);
  } else {
    check(cudaGraphLaunch(graphs_[turn_ % graphs_.size()], stream), "cudaGraphLaunch");
  }
  ++turn_;
}

bool VictimRun::use_graphs(cudaStream_t stream) {
  std::vector<cudaGraphExec_t> graphs;
  while (graphs.size() < copies_) {
    cudaGraphExec_t graph = captured(stream, [&] {
      for (const auto& work : works_) work->launch(stream, static_cast<unsigned>(graphs.size()));
    });
    if (graph == nullptr) break;
    graphs.push_back(graph);
  }
  if (graphs.size() < copies_) {
    for (cudaGraphExec_t graph : graphs) static_cast<void>(cudaGraphExecDestroy(graph));
    return false;
  }
  graphs_ = std::move(graphs);
  // A graph's first launch uploads it.
  for (unsigned copy = 0; copy < copies_; ++copy) launch(stream);
  check(cudaStreamSynchronize(stream), "graphs of a victim");
  return true;
}

double host_us(VictimRun& victim, cudaStream_t stream) {
  constexpr int kLaunches = 4;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kLaunches; ++i) victim.launch(stream);
  const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
  check(cudaStreamSynchronize(stream), "launches of a victim");
  return elapsed.count() / kLaunches;
}

Timer::Timer(std::size_t most) : begin_(most), end_(most) {
  for (auto* events : {&begin_, &end_}) {
    for (cudaEvent_t& event : *events) check(cudaEventCreate(&event), "cudaEventCreate");
  }
}

Timer::~Timer() {
  for (const auto* events : {&begin_, &end_}) {
    for (cudaEvent_t event : *events) static_cast<void>(cudaEventDestroy(event));
  }
}

std::vector<double> Timer::time(int count, cudaStream_t stream, const std::function<void()>& call,
                                const std::function<void()>& after) {
  const auto timings = std::min(static_cast<std::size_t>(count), begin_.size());
  for (std::size_t i = 0; i < timings; ++i) {
    check(cudaEventRecord(begin_[i], stream), "cudaEventRecord");
    call();
    check(cudaEventRecord(end_[i], stream), "cudaEventRecord");
  }
  if (after) after();
  check(cudaStreamSynchronize(stream), "what was timed");
  std::vector<double> out;
  for (std::size_t i = 0; i < timings; ++i) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin_[i], end_[i]), "cudaEventElapsedTime");
    out.push_back(1000.0 * static_cast<double>(ms));
  }
  return out;
}

std::vector<double> time_victim(const Gpu& gpu, Timer& timer, VictimRun& victim, int count, int launches,
                                const std::function<void(bool begins)>& around) {
  const auto stream = gpu.compute();
  // The host gets ahead by the launches of the first timing, so that it is never waited for.
  const auto kernels = static_cast<unsigned long long>(victim.steps()) * static_cast<unsigned>(launches);
  delay(std::min(30000 + 8000 * kernels, 500000ull), stream);
  if (around) around(true);
  const auto call = [&] {
    for (int i = 0; i < launches; ++i) victim.launch(stream);
  };
  std::vector<double> out = timer.time(count, stream, call, [&] {
    if (around) around(false);
  });
  for (double& us : out) us /= launches;
  return out;
}

}  // namespace weft::gpu_probe
