#include "bench/gpu/device/running_aggressor.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/gpu/device/small_kernels.h"

namespace weft::gpu_probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBlocks = 256;
constexpr std::size_t kMemoryBytes = std::size_t{512} << 20;
constexpr std::size_t kHostBytes = std::size_t{64} << 20;
constexpr std::size_t kBallastWords = 128;
// At 2 GHz; a probe that was killed or errs leaves the GPU soon.
constexpr unsigned long long kMostCycles = 6000000000ull;

}  // namespace

AggressorBench::AggressorBench(const Gpu& gpu)
    : gpu_(gpu),
      memory_(kMemoryBytes),
      host_memory_(kHostBytes),
      reports_(kMostBlocks),
      stop_(1),
      ballast_(kBallastWords),
      running_(kMostBlocks),
      one_(1),
      flags_(kMostBlocks),
      read_reports_(kMostBlocks),
      counts_(4) {
  one_[0] = 1;
  fill_random(memory_.data(), memory_.bytes(), Element::fp32, 1, gpu.control());
  fill_random(ballast_.data(), ballast_.bytes(), Element::fp32, 2, gpu.control());
  // Code is loaded when a kernel is first launched, which may wait for all that runs: not beside an aggressor.
  check(cudaMemsetAsync(reports_.data(), 0, reports_.bytes(), gpu.control()), "cudaMemsetAsync");
  snapshot(reports_.data(), 1, counts_.data(), gpu.control());
  delay(1000, gpu.control());
  check(cudaStreamSynchronize(gpu.control()), "filling the aggressors' memory");
}

AggressorArguments AggressorBench::arguments(const Aggressor& a) const {
  AggressorArguments out;
  const auto slice = static_cast<std::size_t>(slice_bytes(a));
  const std::size_t tensor = slice * static_cast<std::size_t>(a.blocks);
  const auto at = [&](std::size_t offset) { return reinterpret_cast<uint4*>(memory_.data() + offset); };
  out.target = at(0);
  out.source_a = at(tensor);
  out.source_b = at(a.kind == AggressorKind::reduce ? 2 * tensor : tensor);
  auto* const host = reinterpret_cast<uint4*>(host_memory_.data());
  if (a.kind == AggressorKind::host_write) out.target = host;
  if (a.kind == AggressorKind::host_read) out.source_a = host;
  if (a.fences) out.flags = flags_.data();
  out.slice_vectors = slice / sizeof(uint4);
  if (const auto interval_ns = chunk_interval_ns(a))
    out.interval_cycles = static_cast<unsigned long long>(*interval_ns * clock_MHz_ / 1e3);
  out.most_cycles = kMostCycles;
  out.stop = stop_.data();
  out.reports = reports_.data();
  out.running = running_.data();
  out.ballast = ballast_.data();
  return out;
}

void AggressorBench::start(const Aggressor& aggressor) {
  aggressor_ = aggressor;
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] = 0;
  // Clocks move with what the GPU does; what is measured has run just before.
  clock_MHz_ = gpu_.sm_clock_MHz();
  if (aggressor.kind == AggressorKind::copy_engine) {
    runs_ = true;
    copy_engines_.start();
    return;
  }
  const auto stream = gpu_.communication();
  check(cudaMemsetAsync(stop_.data(), 0, stop_.bytes(), stream), "cudaMemsetAsync");
  check(cudaMemsetAsync(reports_.data(), 0, reports_.bytes(), stream), "cudaMemsetAsync");
  std::fill_n(running_.data(), running_.size(), 0u);
  launch_aggressor(aggressor, arguments(aggressor), stream);
  runs_ = true;
  wait_until_running();
}

void AggressorBench::wait_until_running() {
  const auto begin = Clock::now();
  const volatile unsigned* running = running_.data();
  for (int block = 0; block < aggressor_.blocks; ++block) {
    while (running[block] == 0) {
      if (Clock::now() - begin < std::chrono::seconds(1)) continue;
      stop();
      throw std::runtime_error(aggressor_.name + ": block " + std::to_string(block) + " does not start");
    }
  }
}

void AggressorBench::begin_count() {
  if (aggressor_.kind == AggressorKind::copy_engine) return;
  snapshot(reports_.data(), aggressor_.blocks, counts_.data(), gpu_.compute());
}

void AggressorBench::end_count() {
  if (aggressor_.kind == AggressorKind::copy_engine) return;
  snapshot(reports_.data(), aggressor_.blocks, counts_.data() + 2, gpu_.compute());
}

void AggressorBench::stop() {
  if (!runs_) return;
  runs_ = false;
  if (aggressor_.kind == AggressorKind::copy_engine) {
    copy_engines_.stop();
    return;
  }
  const auto control = gpu_.control();
  check(cudaMemcpyAsync(stop_.data(), one_.data(), one_.bytes(), cudaMemcpyHostToDevice, control), "the flag to stop");
  check(cudaStreamSynchronize(gpu_.communication()), "aggressor");
  check(cudaMemcpyAsync(read_reports_.data(), reports_.data(), reports_.bytes(), cudaMemcpyDeviceToHost, control),
        "the aggressor's reports");
  check(cudaStreamSynchronize(control), "the aggressor's reports");
  for (int block = 0; block < aggressor_.blocks; ++block) {
    if (read_reports_[static_cast<std::size_t>(block)].timed_out != 0)
      throw std::runtime_error(aggressor_.name + ": ended by itself before it was stopped");
  }
}

Rates AggressorBench::rates() const {
  if (aggressor_.kind == AggressorKind::copy_engine)
    return {copy_engines_.to_host_GBps(), copy_engines_.to_device_GBps()};
  if (counts_[3] <= counts_[1]) return {};
  const double written = static_cast<double>(counts_[2] - counts_[0]) / static_cast<double>(counts_[3] - counts_[1]);
  return {written * (tensors(aggressor_.kind) - 1), written};
}

std::vector<unsigned> AggressorBench::units() const {
  std::vector<unsigned> out;
  for (int block = 0; block < aggressor_.blocks; ++block)
    out.push_back(read_reports_[static_cast<std::size_t>(block)].unit);
  return out;
}

double AggressorBench::sm_clock_MHz() const {
  const BlockReport& first = read_reports_[0];
  if (aggressor_.blocks == 0 || first.ns_end <= first.ns_begin) return 0;
  return 1e3 * static_cast<double>(first.cycles_end - first.cycles_begin) /
         static_cast<double>(first.ns_end - first.ns_begin);
}

bool AggressorBench::moved_right() const {
  const auto words = static_cast<std::size_t>(aggressor_.chunk_bytes) / sizeof(float);
  if (tensors(aggressor_.kind) == 0) return true;
  const AggressorArguments a = arguments(aggressor_);
  const auto read = [&](const uint4* from) {
    std::vector<float> to(words);
    check(cudaMemcpyAsync(to.data(), from, words * sizeof(float), cudaMemcpyDefault, gpu_.control()), "a chunk");
    check(cudaStreamSynchronize(gpu_.control()), "a chunk");
    return to;
  };
  std::vector<float> expected = read(a.source_a);
  if (aggressor_.kind == AggressorKind::reduce) {
    const std::vector<float> other = read(a.source_b);
    for (std::size_t i = 0; i < words; ++i) expected[i] += other[i];
  }
  return read(a.target) == expected;
}

nlohmann::json describe(const Aggressor& a) {
  return {{"kind", to_string(a.kind)},
          {"blocks", a.blocks},
          {"threads", a.threads},
          {"registers", registers_of(a)},
          {"shared_memory_bytes", a.shared_memory_bytes},
          {"buffer_bytes", a.buffer_bytes},
          {"chunk_bytes", a.chunk_bytes},
          {"fences", a.fences},
          {"own_domain", a.own_domain},
          {"rate_GBps_asked", a.rate_GBps ? nlohmann::json(*a.rate_GBps) : nlohmann::json()}};
}

}  // namespace weft::gpu_probe
