#include "bench/gpu/suites/host_costs.h"

#include <chrono>
#include <stdexcept>
#include <vector>

#include "bench/gpu/device/memory.h"
#include "bench/gpu/plan/statistics.h"
#include "bench/gpu/suites/host_kernels.h"
#include "bench/gpu/suites/victim_run.h"

namespace weft::gpu_probe {
namespace {

using nlohmann::json;

constexpr int kTimings = 5;
constexpr std::size_t kHostBytes = 64 << 20;
constexpr std::size_t kMostFences = 16 * 200;

class HostCosts {
 public:
  explicit HostCosts(Gpu& gpu)
      : gpu_(gpu),
        timer_(kTimings),
        host_(kHostBytes),
        device_(kHostBytes),
        out_(2),
        device_out_(2),
        cycles_(kMostFences),
        read_cycles_(kMostFences) {}

  json all() {
    json out{{"latency_ns", latency_ns()}, {"round_trip_ns", round_trip_ns()}};
    for (const bool writes : {false, true}) {
      for (const int unroll : {1, 4}) {
        if (writes && unroll > 1) continue;
        for (const int blocks : {1, 2, 4, 8, 16, 32}) out["lines"].push_back(lines(writes, unroll, blocks));
      }
    }
    for (const bool host : {false, true}) {
      for (const bool system : {false, true}) {
        for (const int blocks : {1, 16}) {
          for (const unsigned kib : {0U, 4U, 32U, 128U}) {
            if (host && kib > 32) continue;
            out["fences"].push_back(fences(host, system, blocks, kib));
          }
        }
      }
    }
    return out;
  }

 private:
  double latency_ns() {
    constexpr unsigned kLines = 4096, kStride = 1237;  // coprime: a cycle through all of them
    auto* const words = reinterpret_cast<unsigned*>(host_.data());
    for (unsigned i = 0; i < kLines; ++i) words[std::size_t{i} * 32] = (i + kStride) % kLines;
    return told([&] { launch_host_chase(words, kLines, device_out_.data(), gpu_.compute()); }) / kLines;
  }

  double round_trip_ns() {
    constexpr unsigned kRounds = 2000;
    auto* const ping = reinterpret_cast<volatile unsigned*>(host_.data());
    auto* const pong = reinterpret_cast<volatile unsigned*>(host_.data() + 4096);
    *ping = 0;
    *pong = 0;
    return told([&] {
             launch_ping(ping, pong, kRounds, device_out_.data(), gpu_.compute());
             const auto begin = std::chrono::steady_clock::now();
             for (unsigned i = 1; i <= kRounds; ++i) {
               while (*ping < i) {
                 if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(1))
                   throw std::runtime_error("the GPU does not answer");
               }
               *pong = i;
             }
           }) /
           kRounds;
  }

  // What a kernel wrote.
  template <class Launch>
  double told(const Launch& launch) {
    const auto stream = gpu_.compute();
    check(cudaMemsetAsync(device_out_.data(), 0, device_out_.bytes(), stream), "cudaMemsetAsync");
    launch();
    check(cudaMemcpyAsync(out_.data(), device_out_.data(), device_out_.bytes(), cudaMemcpyDeviceToHost, stream),
          "nanoseconds");
    check(cudaStreamSynchronize(stream), "memory of the host");
    return static_cast<double>(out_[0]);
  }

  json lines(bool writes, int unroll, int blocks) {
    const std::size_t bytes = std::min(kHostBytes, static_cast<std::size_t>(blocks) << 20);
    auto* const data = reinterpret_cast<uint4*>(host_.data());
    const auto launch = [&] {
      launch_lines(writes, unroll, data, bytes / sizeof(uint4), blocks, read_sink(), gpu_.compute());
    };
    launch();
    const Summary us = summarize(timer_.time(kTimings, gpu_.compute(), launch));
    return {{"operation", writes ? "write" : "read"},
            {"loads_at_a_time", unroll},
            {"blocks", blocks},
            {"bytes", bytes},
            {"GBps", static_cast<double>(bytes) / us.median / 1000}};
  }

  json fences(bool host, bool system, int blocks, unsigned kib) {
    constexpr int kRounds = 200;
    auto* const data = reinterpret_cast<uint4*>(host ? host_.data() : device_.data());
    const auto stream = gpu_.compute();
    const auto count = static_cast<std::size_t>(blocks) * kRounds;
    launch_fences(data, kib * 64, kRounds, system, blocks, cycles_.data(), stream);
    check(
        cudaMemcpyAsync(read_cycles_.data(), cycles_.data(), count * sizeof(unsigned), cudaMemcpyDeviceToHost, stream),
        "cycles of fences");
    check(cudaStreamSynchronize(stream), "fences");
    return {{"memory", host ? "host" : "device"},
            {"fence", system ? "system" : "device"},
            {"blocks", blocks},
            {"KiB_of_block", kib},
            {"cycles", summarize(std::vector<double>(read_cycles_.data(), read_cycles_.data() + count))}};
  }

  [[nodiscard]] unsigned* read_sink() const { return reinterpret_cast<unsigned*>(device_out_.data()); }

  Gpu& gpu_;
  Timer timer_;
  PinnedArray<unsigned char> host_;
  DeviceArray<unsigned char> device_;
  PinnedArray<unsigned long long> out_;
  DeviceArray<unsigned long long> device_out_;
  DeviceArray<unsigned> cycles_;
  PinnedArray<unsigned> read_cycles_;
};

}  // namespace

json host_costs(Gpu& gpu) { return HostCosts(gpu).all(); }

}  // namespace weft::gpu_probe
