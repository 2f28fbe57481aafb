#include "bench/gpu/device/copy_engines.h"

#include <utility>

namespace weft::gpu_probe {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{8} << 20;

}  // namespace

// Two buffers a direction, so that the next copy is queued while one moves.
CopyEngines::CopyEngines() : host_(4 * kCopyBytes), device_(4 * kCopyBytes) {
  for (int direction = 0; direction < 2; ++direction) {
    check(cudaStreamCreateWithFlags(&streams_[direction], cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    for (cudaEvent_t& event : done_[direction])
      check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
}

CopyEngines::~CopyEngines() {
  stops_ = true;
  if (feeder_.joinable()) feeder_.join();
  for (int direction = 0; direction < 2; ++direction) {
    static_cast<void>(cudaStreamDestroy(streams_[direction]));
    for (cudaEvent_t event : done_[direction]) static_cast<void>(cudaEventDestroy(event));
  }
}

void CopyEngines::start() {
  stops_ = false;
  failure_ = nullptr;
  feeder_ = std::thread([this] {
    try {
      feed();
    } catch (...) {
      failure_ = std::current_exception();
    }
  });
  // So that copies move before anything is timed.
  std::this_thread::sleep_for(std::chrono::microseconds(500));
}

void CopyEngines::stop() {
  stops_ = true;
  if (feeder_.joinable()) feeder_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void CopyEngines::feed() {
  check(cudaSetDevice(0), "cudaSetDevice");
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  double copies[2] = {};
  bool queued[2][2] = {};
  const auto queue = [&](int direction, int slot) {
    const std::size_t at = static_cast<std::size_t>(2 * direction + slot) * kCopyBytes;
    void* const device = device_.data() + at;
    void* const host = host_.data() + at;
    check(direction == 0 ? cudaMemcpyAsync(device, host, kCopyBytes, cudaMemcpyHostToDevice, streams_[0])
                         : cudaMemcpyAsync(host, device, kCopyBytes, cudaMemcpyDeviceToHost, streams_[1]),
          "cudaMemcpyAsync of the copy engines");
    check(cudaEventRecord(done_[direction][slot], streams_[direction]), "cudaEventRecord");
    queued[direction][slot] = true;
  };
  while (!stops_) {
    for (int direction = 0; direction < 2; ++direction) {
      for (int slot = 0; slot < 2; ++slot) {
        if (queued[direction][slot]) {
          const cudaError_t state = cudaEventQuery(done_[direction][slot]);
          if (state == cudaErrorNotReady) continue;
          check(state, "cudaEventQuery");
          ++copies[direction];
        }
        queue(direction, slot);
      }
    }
    // Each call takes a lock of the driver, which whoever launches the victim needs too.
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  const std::chrono::duration<double, std::nano> elapsed = Clock::now() - begin;
  to_device_GBps_ = copies[0] * static_cast<double>(kCopyBytes) / elapsed.count();
  to_host_GBps_ = copies[1] * static_cast<double>(kCopyBytes) / elapsed.count();
  for (cudaStream_t stream : streams_) check(cudaStreamSynchronize(stream), "copy engines");
}

}  // namespace weft::gpu_probe
