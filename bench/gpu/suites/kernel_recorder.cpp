#include "bench/gpu/suites/kernel_recorder.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "bench/gpu/device/check.h"

namespace weft::gpu_probe {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

// CUPTI's callbacks carry no pointer of ours.
std::mutex records_mutex;
std::vector<KernelRecord> records;
decltype(&::cuptiActivityGetNextRecord) next_record = nullptr;

std::string demangled(const char* name) {
  if (name == nullptr) return "";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

KernelRecord kernel_record(const CUpti_ActivityKernel10& a) {
  KernelRecord out;
  out.name = demangled(a.name);
  out.grid[0] = a.gridX;
  out.grid[1] = a.gridY;
  out.grid[2] = a.gridZ;
  out.block[0] = a.blockX;
  out.block[1] = a.blockY;
  out.block[2] = a.blockZ;
  // 0 where the launch names none.
  out.cluster[0] = std::max(a.clusterX, 1u);
  out.cluster[1] = std::max(a.clusterY, 1u);
  out.cluster[2] = std::max(a.clusterZ, 1u);
  out.registers = a.registersPerThread;
  out.shared_memory_bytes = a.staticSharedMemory + a.dynamicSharedMemory;
  out.start_ns = a.start;
  out.end_ns = a.end;
  return out;
}

void take_record(const CUpti_Activity& activity) {
  KernelRecord out;
  if (activity.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || activity.kind == CUPTI_ACTIVITY_KIND_KERNEL) {
    out = kernel_record(reinterpret_cast<const CUpti_ActivityKernel10&>(activity));
  } else if (activity.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto& memset = reinterpret_cast<const CUpti_ActivityMemset4&>(activity);
    out.name = "Memset";
    out.bytes = memset.bytes;
    out.start_ns = memset.start;
    out.end_ns = memset.end;
  } else {
    return;
  }
  if (out.end_ns < out.start_ns || out.start_ns == 0) return;
  const std::lock_guard lock(records_mutex);
  records.push_back(std::move(out));
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
  CUpti_Activity* activity = nullptr;
  while (valid_bytes > 0 && next_record(buffer, valid_bytes, &activity) == CUPTI_SUCCESS) take_record(*activity);
  std::free(buffer);
}

}  // namespace

KernelRecorder::KernelRecorder(const std::vector<std::filesystem::path>& folders)
    : library_(folders, "libcupti.so.13") {
  decltype(&::cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&::cuptiActivityEnable) enable = nullptr;
  library_.find(register_callbacks, "cuptiActivityRegisterCallbacks");
  library_.find(enable, "cuptiActivityEnable");
  library_.find(disable_, "cuptiActivityDisable");
  library_.find(flush_, "cuptiActivityFlushAll");
  library_.find(result_string_, "cuptiGetResultString");
  library_.find(next_record, "cuptiActivityGetNextRecord");
  check(register_callbacks(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks");
  for (const auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMSET})
    check(enable(kind), "cuptiActivityEnable");
}

KernelRecorder::~KernelRecorder() {
  for (const auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMSET})
    static_cast<void>(disable_(kind));
}

void KernelRecorder::check(CUptiResult result, const char* what) const {
  if (result == CUPTI_SUCCESS) return;
  const char* text = "unknown";
  static_cast<void>(result_string_(result, &text));
  throw std::runtime_error(std::string(what) + ": " + text);
}

std::vector<KernelRecord> KernelRecorder::take() {
  gpu_probe::check(cudaDeviceSynchronize(), "what CUPTI records");
  check(flush_(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  const std::lock_guard lock(records_mutex);
  std::vector<KernelRecord> out = std::exchange(records, {});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  return out;
}

}  // namespace weft::gpu_probe
