#include "bench/gpu/device/gpu.h"

#include <nlohmann/json.hpp>

#include "bench/gpu/device/nvml.h"
#include "bench/gpu/device/small_kernels.h"

namespace weft::gpu_probe {
namespace {

int attribute(cudaDeviceAttr what) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, what, 0), "cudaDeviceGetAttribute");
  return value;
}

cudaStream_t stream(int priority) {
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, priority), "cudaStreamCreateWithPriority");
  return made;
}

}  // namespace

Gpu::Gpu(const std::vector<std::filesystem::path>& libraries) {
  int devices = 0;
  const cudaError_t found = cudaGetDeviceCount(&devices);
  if (found == cudaErrorInsufficientDriver || found == cudaErrorNoDevice || found == cudaErrorStubLibrary)
    throw NoGpu(cudaGetErrorString(found));
  check(found, "cudaGetDeviceCount");
  if (devices == 0) throw NoGpu("the driver tells of none");
  check(cudaSetDeviceFlags(cudaDeviceScheduleSpin | cudaDeviceMapHost), "cudaSetDeviceFlags");
  check(cudaSetDevice(0), "cudaSetDevice");
  units_ = attribute(cudaDevAttrMultiProcessorCount);
  l2_bytes_ = static_cast<std::size_t>(attribute(cudaDevAttrL2CacheSize));
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  compute_ = stream(lowest);
  communication_ = stream(highest);
  control_ = stream(highest);
  char bus[32] = {};
  check(cudaDeviceGetPCIBusId(bus, sizeof(bus), 0), "cudaDeviceGetPCIBusId");
  nvml_ = std::make_unique<Nvml>(libraries, bus);
  clock_sample_ = std::make_unique<PinnedArray<unsigned long long>>(4);
}

Gpu::~Gpu() {
  for (cudaStream_t one : {compute_, communication_, control_}) static_cast<void>(cudaStreamDestroy(one));
}

double Gpu::sm_clock_MHz() const {
  sample_clocks(clock_sample_->data(), 100000, compute_);
  check(cudaStreamSynchronize(compute_), "clock sample");
  const auto& c = *clock_sample_;
  return c[3] > c[1] ? 1e3 * static_cast<double>(c[2] - c[0]) / static_cast<double>(c[3] - c[1]) : 0;
}

nlohmann::json Gpu::describe() const {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return {{"gpu", properties.name},
          {"units", units_},
          {"l2_bytes", l2_bytes_},
          {"memory_bytes", properties.totalGlobalMem},
          {"shared_memory_unit_bytes", properties.sharedMemPerMultiprocessor},
          {"registers_unit", properties.regsPerMultiprocessor},
          {"driver", nvml_->driver_version()},
          {"driver_cuda", driver},
          {"cuda", runtime},
          {"sm_clock_max_MHz", attribute(cudaDevAttrClockRate) / 1000},
          {"memory_clock_MHz", attribute(cudaDevAttrMemoryClockRate) / 1000},
          {"copy_engines", properties.asyncEngineCount}};
}

const nlohmann::json& Gpu::now() {
  const auto time = std::chrono::steady_clock::now();
  if (time - told_at_ > std::chrono::milliseconds(250)) {
    told_ = nvml_->now();
    told_at_ = time;
  }
  return told_;
}

}  // namespace weft::gpu_probe
