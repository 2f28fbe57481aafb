// CUPTI's activity records of kernels and memsets. While it lives everything runs a little slower, so it belongs in a
// process of its own.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/gpu/device/shared_library.h"

namespace weft::gpu_probe {

struct KernelRecord {
  std::string name;  // demangled; "Memset" for a memset
  int grid[3] = {}, block[3] = {};
  std::uint32_t cluster[3] = {1, 1, 1};
  int registers = 0, shared_memory_bytes = 0;
  std::uint64_t bytes = 0;  // of a memset
  std::uint64_t start_ns = 0, end_ns = 0;
  [[nodiscard]] double us() const { return static_cast<double>(end_ns - start_ns) / 1000; }
};

// One at a time.
class KernelRecorder {
 public:
  // Throws MissingLibrary, or std::runtime_error where CUPTI does not start.
  explicit KernelRecorder(const std::vector<std::filesystem::path>& folders);
  ~KernelRecorder();

  // All that ended since the last call, by start. Waits for the device.
  [[nodiscard]] std::vector<KernelRecord> take();

 private:
  void check(CUptiResult result, const char* what) const;

  SharedLibrary library_;
  decltype(&::cuptiActivityFlushAll) flush_ = nullptr;
  decltype(&::cuptiActivityDisable) disable_ = nullptr;
  decltype(&::cuptiGetResultString) result_string_ = nullptr;
};

}  // namespace weft::gpu_probe
