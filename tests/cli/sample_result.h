// A made-up run of a realistic form for the tests of results and reports: a training step of 160 layers in data
// parallel, gradients in buckets on a second stream, kernels slower while a bucket is under way. Its totals are
// computed from its operations, so that figures and operations agree.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/run/result.h"

namespace weft::testing {

struct SampleShape {
  std::uint32_t gpus = 8;
  std::uint32_t iterations = 2;
  bool in_switch = false;
};

class SampleRun {
 public:
  explicit SampleRun(const SampleShape& shape) : shape_(shape) {}

  RunResult build() {
    const std::string algorithm = shape_.in_switch ? "in_switch" : "ring";
    result_.config = {{"system", "dgx-a100"},
                      {"gpus", shape_.gpus},
                      {"workload", {{"model", "resnet50"}, {"batch", 64}, {"precision", "amp"}}},
                      {"scheme", {{"name", "data_parallel"}, {"overlap", true}, {"bucket_MiB", 25}}},
                      {"all_reduce", {{"algorithm", algorithm}, {"mover", "compute_units"}}},
                      {"iterations", shape_.iterations},
                      {"fidelity", "cycle"},
                      {"seed", 1}};
    result_.config_sha256 = std::string(60, shape_.in_switch ? 'b' : 'a') + "0123";
    for (std::uint32_t i = 0; i < shape_.iterations; ++i) iteration(i);
    totals();
    hardware();
    result_.notes = {"42 kernels have a demand guessed from their name alone.",
                     "All GPUs do the same work at the same time: GPU 0 was simulated and stands for the others."};
    return std::move(result_);
  }

 private:
  static constexpr int kLayers = 160;
  static constexpr int kBuckets = 5;

  double jitter() {
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;  // Knuth's MMIX generator
    return static_cast<double>(random_ >> 40U) / 16777216.0;
  }

  // A kernel on all GPUs from `at`; returns the end of the slowest. `slow` is what communication makes of it.
  double kernel(const std::string& name, TrainingPhase phase, std::uint32_t iteration, double at, double alone,
                double slow) {
    double last = at;
    for (std::uint32_t gpu = 0; gpu < shape_.gpus; ++gpu) {
      OperationRecord op;
      op.gpu = gpu;
      op.op = op_;
      op.iteration = iteration;
      op.name = name;
      op.phase = phase;
      op.start_s = at + 1e-7 * gpu;
      op.isolated_s = alone;
      const double lost = alone * (slow - 1);
      op.end_s = op.start_s + alone + lost;
      op.causes = {0.58 * lost, 0.27 * lost, 0.12 * lost, 0.03 * lost};
      last = std::max(last, op.end_s);
      result_.operations.push_back(op);
    }
    ++op_;
    return last;
  }

  double all_reduce(std::uint32_t iteration, int bucket, double at, double bytes) {
    const double busbw = (shape_.in_switch ? 262e9 : 221e9) * bytes / (bytes + 4e6);
    const double ranks = shape_.gpus;
    const double seconds = bytes * 2 * (ranks - 1) / ranks / busbw;
    for (std::uint32_t gpu = 0; gpu < shape_.gpus; ++gpu) {
      OperationRecord op;
      op.gpu = gpu;
      op.stream = 1;
      op.op = op_;
      op.iteration = iteration;
      op.name = fmt::format("all_reduce bucket {}", bucket);
      op.phase = TrainingPhase::backward;
      op.communication = true;
      op.start_s = at + 2e-6 * gpu;
      op.end_s = at + seconds;
      result_.operations.push_back(op);
    }
    ++op_;
    result_.collectives.push_back({fmt::format("bucket {}", bucket), "all_reduce",
                                   shape_.in_switch ? "in_switch" : "ring", "simple", shape_.in_switch ? 16U : 24U,
                                   static_cast<std::int64_t>(bytes), shape_.gpus, at, at + seconds,
                                   bytes / seconds / 1e9, busbw / 1e9});
    communication_s_ += seconds;
    return at + seconds;
  }

  void iteration(std::uint32_t number) {
    const double begin = now_;
    static constexpr std::array<const char*, 3> kKinds{"implicit_gemm_conv<128,128,32>", "batch_norm", "relu, add"};
    for (int layer = 0; layer < kLayers; ++layer) {
      const double alone = 18e-6 + 70e-6 * jitter() * (layer % 3 == 0 ? 2 : 0.5);
      now_ = kernel(kKinds[static_cast<std::size_t>(layer % 3)], TrainingPhase::forward, number, now_, alone, 1) + 1e-6;
    }
    const double backward = now_;
    double free = now_;
    for (int layer = 0; layer < kLayers; ++layer) {
      const double alone = 36e-6 + 140e-6 * jitter() * (layer % 3 == 0 ? 2 : 0.5);
      const double pressure = jitter();
      const double slow = now_ < free ? (shape_.in_switch ? 1.02 + 0.12 * pressure : 1.15 + 0.8 * pressure) : 1;
      now_ = kernel(std::string(kKinds[static_cast<std::size_t>(layer % 3)]) + " backward", TrainingPhase::backward,
                    number, now_, alone, slow) +
             1e-6;
      backward_isolated_ += alone;
      backward_lost_ += alone * (slow - 1);
      backward_gaps_ += 1e-6;
      if ((layer + 1) % (kLayers / kBuckets) == 0) {
        const int bucket = layer / (kLayers / kBuckets);
        free = all_reduce(number, bucket, std::max(now_, free), bucket == kBuckets - 1 ? 8e6 : 3e8);
      }
    }
    exposed_ += std::max(0.0, free - now_);
    forward_ += backward - begin;
    now_ = std::max(now_, free);
    const double optimizer = now_;
    for (int i = 0; i < 8; ++i) {
      now_ = kernel("multi_tensor_apply", TrainingPhase::optimizer, number, now_, 120e-6, 1) + 2e-6;
    }
    optimizer_ += now_ - optimizer;
    now_ += 180e-6;
    result_.per_iteration_s.push_back(now_ - begin);
  }

  void totals() {
    const double share = 1.0 / shape_.iterations;
    IterationTimes& times = result_.iteration;
    times.time_s = now_ * share;
    times.forward_s = forward_ * share;
    times.backward_isolated_s = backward_isolated_ * share;
    times.backward_s = (backward_isolated_ + backward_lost_) * share;
    times.backward_slowdown = *times.backward_s / *times.backward_isolated_s;
    times.communication_s = communication_s_ * share;
    times.communication_exposed_s = exposed_ * share;
    times.communication_overlapped_s = times.communication_s - times.communication_exposed_s;
    times.optimizer_s = optimizer_ * share;
    times.idle_s = 180e-6 + backward_gaps_ * share;
    const double lost = backward_lost_ * share;
    result_.slowdown_by_cause = SlowdownByCause{0.58 * lost, 0.27 * lost, 0.12 * lost, 0.03 * lost};
    result_.samples_per_s = 64.0 * shape_.gpus / times.time_s;
    result_.scaling_efficiency = shape_.in_switch ? 0.96 : 0.87;
  }

  void hardware() {
    for (std::uint32_t gpu = 0; gpu < shape_.gpus; ++gpu) {
      GpuResult one;
      one.id = gpu;
      one.peak_memory_bytes = 9'120'000'000;
      one.memory = {102'228'128, 102'228'128, 204'456'256, 8'500'000'000, 26'214'400, std::nullopt};
      one.fits = true;
      one.hbm_communication_bytes = (shape_.in_switch ? 2'600'000'000 : 7'800'000'000) * shape_.iterations;
      one.hbm_read_bytes = 21'000'000'000 * shape_.iterations + one.hbm_communication_bytes * 2 / 3;
      one.hbm_write_bytes = 13'000'000'000 * shape_.iterations + one.hbm_communication_bytes / 3;
      one.compute_unit_seconds_compute = 2.1 * shape_.iterations;
      one.compute_unit_seconds_communication = (shape_.in_switch ? 0.11 : 0.24) * shape_.iterations;
      one.busy_fraction = 0.91;
      result_.gpus.push_back(one);
      for (std::uint32_t s = 0; s < 6; ++s) {
        const double busy = 0.21 + 0.012 * ((gpu * 5 + s * 3) % 7);
        const auto bytes = static_cast<std::int64_t>(busy * 25e9 * now_);
        result_.links.push_back({fmt::format("gpu{}->switch{}", gpu, s), bytes, bytes, busy, 0.97});
        result_.links.push_back({fmt::format("switch{}->gpu{}", s, gpu), bytes, bytes, busy, 0.96});
      }
    }
    for (std::uint32_t s = 0; s < 6; ++s) {
      result_.switches.push_back({fmt::format("switch{}", s), shape_.in_switch ? 1'800'000'000 : 0,
                                  shape_.in_switch ? 225'000'000 : 0, shape_.in_switch ? 41'472 : 0, 0});
    }
    for (const char* name : {"HBM bandwidth", "link bandwidth"}) {
      CounterTrack counter;
      counter.name = name;
      counter.unit = "GB/s";
      counter.period_s = now_ / 600;
      counter.gpu = 0;
      for (int i = 0; i < 600; ++i) counter.values.push_back((name[0] == 'H' ? 900 : 120) * (0.6 + 0.8 * jitter()));
      result_.counters.push_back(counter);
    }
    result_.engine = {14.2, 2, 812'000'000, 96'000'000, now_, 0, 0, 1'450'000'000};
  }

  SampleShape shape_;
  RunResult result_;
  std::uint64_t random_ = 1;
  std::uint32_t op_ = 0;
  double now_ = 0, forward_ = 0, backward_isolated_ = 0, backward_lost_ = 0, backward_gaps_ = 0, exposed_ = 0,
         optimizer_ = 0, communication_s_ = 0;
};

inline RunResult sample_result(const SampleShape& shape = {}) { return SampleRun(shape).build(); }

}  // namespace weft::testing
