// An aggressor on the communication stream: from its start to its end, and what it moved meanwhile.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "bench/gpu/device/aggressor_kernels.h"
#include "bench/gpu/device/copy_engines.h"
#include "bench/gpu/device/gpu.h"

namespace weft::gpu_probe {

struct Rates {
  double read_GBps = 0, written_GBps = 0;
};

// Memory and flags of all aggressors; one of them runs at a time.
class AggressorBench {
 public:
  explicit AggressorBench(const Gpu& gpu);

  // Returns when all blocks run. Throws std::runtime_error when they do not within a second.
  void start(const Aggressor& aggressor);
  // Queued on the compute stream: between the two, rates are counted.
  void begin_count();
  void end_count();
  // Waits for the end of all blocks. A block that had to end by itself before is an error.
  void stop();

  // Of what ran last, between the counts.
  [[nodiscard]] Rates rates() const;
  [[nodiscard]] std::vector<unsigned> units() const;  // of each block
  [[nodiscard]] double sm_clock_MHz() const;          // of its first block, over its life; 0: has no blocks
  [[nodiscard]] double clock_before_MHz() const { return clock_MHz_; }  // just before its start
  // The first block's first chunk: whether the target holds what it should.
  [[nodiscard]] bool moved_right() const;

 private:
  void wait_until_running();
  [[nodiscard]] AggressorArguments arguments(const Aggressor& aggressor) const;

  const Gpu& gpu_;
  Aggressor aggressor_;
  bool runs_ = false;
  double clock_MHz_ = 0;  // for intervals
  DeviceArray<unsigned char> memory_;
  PinnedArray<unsigned char> host_memory_;
  DeviceArray<BlockReport> reports_;
  DeviceArray<unsigned> stop_, ballast_;
  PinnedArray<unsigned> running_, one_, flags_;
  PinnedArray<BlockReport> read_reports_;
  PinnedArray<unsigned long long> counts_;  // bytes and nanoseconds at both ends
  CopyEngines copy_engines_;
};

// Adds name, kind, sizes and the registers that the compiler gave.
[[nodiscard]] nlohmann::json describe(const Aggressor& aggressor);

}  // namespace weft::gpu_probe
