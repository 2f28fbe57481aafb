#include "bench/gpu/suites/drain.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/gpu/device/running_aggressor.h"
#include "bench/gpu/device/small_kernels.h"
#include "bench/gpu/plan/statistics.h"
#include "bench/gpu/suites/drain_kernels.h"
#include "bench/gpu/suites/kernel_recorder.h"
#include "bench/gpu/suites/victim_run.h"

namespace weft::gpu_probe {
namespace {

using nlohmann::json;

constexpr int kChain = 50;
constexpr std::size_t kDataBytes = std::size_t{1} << 20;

struct Operation {
  const char* name;
  bool memset;
  unsigned bytes;  // written
  Fence fence = Fence::none;
};
constexpr Operation kOperations[] = {
    {"kernel", false, 0},
    {"kernel_writes_4KiB", false, 4 << 10},
    {"kernel_writes_256KiB", false, 256 << 10},
    {"kernel_fence_device", false, 4 << 10, Fence::device},
    {"kernel_fence_system", false, 4 << 10, Fence::system},
    {"memset_4KiB", true, 4 << 10},
    {"memset_1MiB", true, 1 << 20},
};

// Absent: the operation alone.
std::vector<std::optional<Aggressor>> aggressors() {
  using enum AggressorKind;
  std::vector<std::optional<Aggressor>> out{std::nullopt, make_aggressor(spin, 16, {})};
  for (const double rate : {50.0, 100.0, 200.0, 400.0}) out.push_back(make_aggressor(copy, 16, rate));
  for (const int blocks : {8, 16, 32, 64}) out.push_back(make_aggressor(copy, blocks, {}));
  out.push_back(make_aggressor(reduce, 16, {}));
  out.push_back(make_aggressor(l2_copy, 16, 100));
  out.push_back(make_aggressor(l2_copy, 16, {}));
  out.push_back(make_aggressor(copy_engine, 0, {}));
  for (const AggressorKind kind : {host_write, host_read}) {
    for (const double rate : {5.0, 10.0, 20.0}) out.push_back(make_aggressor(kind, 8, rate));
    for (const int blocks : {1, 2, 8, 16}) out.push_back(make_aggressor(kind, blocks, {}));
    out.push_back(with_fences(make_aggressor(kind, 8, {})));
    for (const int blocks : {2, 8, 16}) out.push_back(in_own_domain(make_aggressor(kind, blocks, {})));
  }
  for (const int blocks : {8, 16}) out.push_back(with_fences(make_aggressor(copy, blocks, {})));
  return out;
}

class DrainSuite {
 public:
  explicit DrainSuite(Session& session)
      : session_(session),
        gpu_(session.gpu),
        bench_(session.gpu),
        timer_(kChain),
        data_(kDataBytes),
        stamps_(kChain),
        read_stamps_(kChain) {
    // Code is loaded before any aggressor runs.
    for (const Operation& operation : kOperations) {
      launch(operation, nullptr);
      graphs_.push_back(captured(gpu_.compute(), [&] { chain(operation); }));
      if (graphs_.back() != nullptr) check(cudaGraphLaunch(graphs_.back(), gpu_.compute()), "cudaGraphLaunch");
    }
    check(cudaStreamSynchronize(gpu_.compute()), "warming up");
  }

  ~DrainSuite() {
    for (cudaGraphExec_t graph : graphs_) {
      if (graph != nullptr) static_cast<void>(cudaGraphExecDestroy(graph));
    }
  }
  DrainSuite(const DrainSuite&) = delete;
  DrainSuite& operator=(const DrainSuite&) = delete;

  void run(const char* field, KernelRecorder* recorder) {
    for (const auto& aggressor : aggressors()) {
      if (aggressor && !session_.options.selection.takes(*aggressor)) continue;
      for (const Operation& operation : kOperations) {
        if (session_.is_over()) return;
        const json keys{{"operation", operation.name}, {"aggressor", aggressor ? json(aggressor->name) : json()}};
        const json* known = session_.results.find("drain", keys);
        if (known != nullptr && known->contains(field)) continue;
        try {
          measure(keys, operation, aggressor, recorder);
        } catch (const std::runtime_error& error) {
          std::fprintf(stderr, "drain of %s: %s\n", operation.name, error.what());
          bench_.stop();
          check(cudaDeviceSynchronize(), "after a failed measurement");
        }
      }
    }
  }

 private:
  void measure(const json& keys, const Operation& operation, const std::optional<Aggressor>& aggressor,
               KernelRecorder* recorder) {
    if (recorder != nullptr) static_cast<void>(recorder->take());
    if (aggressor) bench_.start(*aggressor);
    json item = recorder != nullptr ? recorded(operation) : timed(operation, aggressor.has_value());
    if (aggressor) bench_.stop();
    if (recorder != nullptr) {
      std::vector<double> us;
      for (const KernelRecord& record : recorder->take()) {
        const bool of_this = operation.memset ? record.name == "Memset" && record.bytes == operation.bytes
                                              : record.name.find("small_kernel") != std::string::npos;
        if (of_this) us.push_back(record.us());
      }
      item["cupti_us"] = summarize(us);
    } else if (aggressor) {
      const Rates rates = bench_.rates();
      item["aggressor_read_GBps"] = rates.read_GBps;
      item["aggressor_written_GBps"] = rates.written_GBps;
    }
    item["bytes_written"] = operation.bytes;
    session_.results.put("drain", keys, item);
  }

  json timed(const Operation& operation, bool counts) {
    const auto stream = gpu_.compute();
    json item = json::object();
    delay(300000, stream);
    if (counts) bench_.begin_count();
    item["event_us"] = summarize(timer_.time(kChain, stream, [&] { launch(operation, nullptr); }));
    delay(300000, stream);
    // One after another without events: the time from one operation to the next.
    item["period_us"] = timer_.time(1, stream, [&] { chain(operation); })[0] / kChain;
    // The same from one graph: nothing is fetched from the host in between.
    if (const auto graph = graphs_[static_cast<std::size_t>(&operation - kOperations)]; graph != nullptr) {
      delay(300000, stream);
      const auto launch_graph = [&] { check(cudaGraphLaunch(graph, stream), "cudaGraphLaunch"); };
      item["graph_period_us"] = timer_.time(1, stream, launch_graph)[0] / kChain;
    }
    if (!operation.memset) {
      delay(300000, stream);
      for (int i = 0; i < kChain; ++i) launch(operation, stamps_.data() + i);
      read_gaps(item);
    }
    if (counts) bench_.end_count();
    check(cudaStreamSynchronize(stream), "small operations");
    return item;
  }

  // From the last instruction of one kernel to the first of the next, and within.
  void read_gaps(json& item) {
    const auto stream = gpu_.compute();
    check(cudaMemcpyAsync(read_stamps_.data(), stamps_.data(), stamps_.bytes(), cudaMemcpyDeviceToHost, stream),
          "stamps");
    check(cudaStreamSynchronize(stream), "stamps");
    std::vector<double> gaps, inside;
    const auto us = [](unsigned long long from, unsigned long long to) {
      return (static_cast<double>(to) - static_cast<double>(from)) / 1000;
    };
    for (std::size_t i = 0; i + 1 < stamps_.size(); ++i) {
      gaps.push_back(us(read_stamps_[i].end_ns, read_stamps_[i + 1].begin_ns));
      inside.push_back(us(read_stamps_[i].begin_ns, read_stamps_[i].end_ns));
    }
    item["gap_us"] = summarize(gaps);
    item["inside_us"] = summarize(inside);
  }

  json recorded(const Operation& operation) {
    for (int i = 0; i < kChain; ++i) launch(operation, nullptr);
    check(cudaStreamSynchronize(gpu_.compute()), "small operations");
    return json::object();
  }

  void chain(const Operation& operation) {
    for (int i = 0; i < kChain; ++i) launch(operation, nullptr);
  }

  void launch(const Operation& operation, Stamps* stamps) {
    if (operation.memset) {
      check(cudaMemsetAsync(data_.data(), 0, operation.bytes, gpu_.compute()), "cudaMemsetAsync");
      return;
    }
    SmallKernel kernel;
    kernel.bytes_written = operation.bytes;
    kernel.data = data_.data();
    kernel.fence = operation.fence;
    kernel.stamps = stamps;
    launch_small_kernel(kernel, gpu_.compute());
  }

  Session& session_;
  Gpu& gpu_;
  AggressorBench bench_;
  Timer timer_;
  DeviceArray<unsigned char> data_;
  DeviceArray<Stamps> stamps_;
  PinnedArray<Stamps> read_stamps_;
  std::vector<cudaGraphExec_t> graphs_;  // of each operation; null: none could be made
};

}  // namespace

void run_drain(Session& session) { DrainSuite(session).run("event_us", nullptr); }

void record_drain(Session& session, KernelRecorder& recorder) { DrainSuite(session).run("cupti_us", &recorder); }

}  // namespace weft::gpu_probe
