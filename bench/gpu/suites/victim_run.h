// A victim on the device, and how long it takes.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "bench/gpu/device/gpu.h"
#include "bench/gpu/victims/work.h"

namespace weft::gpu_probe {

class VictimRun {
 public:
  // `copies`: sets of buffers that take turns.
  VictimRun(std::vector<std::unique_ptr<Work>> works, unsigned copies) : works_(std::move(works)), copies_(copies) {}
  ~VictimRun();
  VictimRun(const VictimRun&) = delete;
  VictimRun& operator=(const VictimRun&) = delete;

  void launch(cudaStream_t stream);
  void launch_step(std::size_t step, cudaStream_t stream) { works_[step]->launch(stream, turn_++); }
  // From now on launches graphs of its kernels: for where the host's calls take as long as the kernels. Stays as it is,
  // and returns false, where a library does not allow it.
  bool use_graphs(cudaStream_t stream);

  [[nodiscard]] std::size_t steps() const { return works_.size(); }
  [[nodiscard]] bool launches_graphs() const { return !graphs_.empty(); }

 private:
  std::vector<std::unique_ptr<Work>> works_;
  std::vector<cudaGraphExec_t> graphs_;  // one for each set of buffers
  unsigned copies_, turn_ = 0;
};

// What `launch` would launch, as one graph; null where a library does not allow it.
[[nodiscard]] cudaGraphExec_t captured(cudaStream_t stream, const std::function<void()>& launch);

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

// Microseconds that the host takes to launch it once.
[[nodiscard]] double host_us(VictimRun& victim, cudaStream_t stream);

// `count` timings of `launches` of the victim in a row; microseconds of one launch. `around` is called on both sides
// of them, to queue what belongs there.
[[nodiscard]] std::vector<double> time_victim(const Gpu& gpu, Timer& timer, VictimRun& victim, int count, int launches,
                                              const std::function<void(bool begins)>& around = {});

}  // namespace weft::gpu_probe
