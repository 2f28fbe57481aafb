// A victim on the device, and how long it takes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/gpu/plan/pair_plan.h"
#include "bench/gpu/plan/victims.h"
#include "bench/gpu/suites/session.h"
#include "bench/gpu/victims/arena.h"
#include "bench/gpu/victims/work.h"

namespace weft::gpu_probe {

class VictimRun {
 public:
  explicit VictimRun(std::vector<std::unique_ptr<Work>> works) : works_(std::move(works)) {}
  void launch(cudaStream_t stream);
  void launch_step(std::size_t step, cudaStream_t stream) { works_[step]->launch(stream, turn_++); }
  [[nodiscard]] std::size_t steps() const { return works_.size(); }

 private:
  std::vector<std::unique_ptr<Work>> works_;
  unsigned turn_ = 0;
};

// Libraries and memory of all victims.
class VictimBench {
 public:
  explicit VictimBench(Session& session);
  ~VictimBench();

  // The one before is gone. Absent where it cannot run: the file of results tells why ("left_out").
  [[nodiscard]] std::unique_ptr<VictimRun> prepare(const Victim& victim);

 private:
  Session& session_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<CublasLibrary> cublas_;
  std::unique_ptr<CudnnLibrary> cudnn_;
};

// Events around each timing, made once: making them while kernels run may wait for these.
class Timer {
 public:
  explicit Timer(std::size_t most);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Times each of `count` calls, which launch on the stream, then calls `after`, which may launch, too. Waits for all;
  // microseconds of each.
  [[nodiscard]] std::vector<double> time(int count, cudaStream_t stream, const std::function<void()>& call,
                                         const std::function<void()>& after = {});

 private:
  std::vector<cudaEvent_t> begin_, end_;
};

// `count` timings of `launches` of the victim in a row; microseconds of one launch. `around` is called on both sides
// of them, to queue what belongs there.
[[nodiscard]] std::vector<double> time_victim(const Gpu& gpu, Timer& timer, VictimRun& victim, int count, int launches,
                                              const std::function<void(bool begins)>& around = {});

}  // namespace weft::gpu_probe
