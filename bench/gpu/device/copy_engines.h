// Copies between pinned host memory and the device, in both directions at once, by the GPU's copy engines: what a
// collective without thread blocks does to memory.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include "bench/gpu/device/memory.h"

namespace weft::gpu_probe {

class CopyEngines {
 public:
  CopyEngines();
  ~CopyEngines();
  CopyEngines(const CopyEngines&) = delete;
  CopyEngines& operator=(const CopyEngines&) = delete;

  // A thread of the host keeps a few copies queued until stop(), which throws what went wrong there.
  void start();
  void stop();

  [[nodiscard]] double to_device_GBps() const { return to_device_GBps_; }
  [[nodiscard]] double to_host_GBps() const { return to_host_GBps_; }

 private:
  void feed();

  PinnedArray<unsigned char> host_;
  DeviceArray<unsigned char> device_;
  cudaStream_t streams_[2] = {};
  cudaEvent_t done_[2][2] = {};  // of each direction's last two copies
  std::thread feeder_;
  std::atomic<bool> stops_ = false;
  std::exception_ptr failure_;
  double to_device_GBps_ = 0, to_host_GBps_ = 0;
};

}  // namespace weft::gpu_probe
