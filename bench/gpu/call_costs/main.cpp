// What calls of CUDA cost the host while CUPTI records: weft_call_costs FOLDER [ACTIVITY...]
// FOLDER is where CUPTI lies, as for the probe's --libraries; activities are named below. One line, ns of each call:
// the median of 15 times. A process for each set, since CUPTI does not give back all that it took.
#include <cupti.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/gpu/device/check.h"
#include "bench/gpu/device/shared_library.h"
#include "bench/gpu/plan/statistics.h"
#include "bench/gpu/suites/machine_kernels.h"

namespace weft::gpu_probe {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

const std::map<std::string_view, CUpti_ActivityKind> kActivities{
    {"kernels", CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL},
    {"copies", CUPTI_ACTIVITY_KIND_MEMCPY},
    {"memsets", CUPTI_ACTIVITY_KIND_MEMSET},
    {"events", CUPTI_ACTIVITY_KIND_CUDA_EVENT},
    {"synchronizations", CUPTI_ACTIVITY_KIND_SYNCHRONIZATION},
    {"runtime", CUPTI_ACTIVITY_KIND_RUNTIME},
};

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;
}
void CUPTIAPI buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t) {
  std::free(buffer);
}

class Cupti {
 public:
  explicit Cupti(const char* folder) : library_({folder}, "libcupti.so.13") {
    library_.find(subscribe_, "cuptiSubscribe");
    library_.find(enable_callback_, "cuptiEnableCallback");
    library_.find(enable_, "cuptiActivityEnable");
    library_.find(enable_call_, "cuptiActivityEnableRuntimeApi");
    decltype(&::cuptiActivityRegisterCallbacks) set = nullptr;
    library_.find(set, "cuptiActivityRegisterCallbacks");
    check(set(buffer_requested, buffer_completed), "cuptiActivityRegisterCallbacks");
  }

  void record(std::string_view what) {
    if (const auto kind = kActivities.find(what); kind != kActivities.end()) {
      check(enable_(kind->second), "cuptiActivityEnable");
    } else if (what == "launches") {  // calls of one kind
      check(enable_call_(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 1), "cuptiActivityEnableRuntimeApi");
    } else if (what == "waits") {  // as `weft capture` is told of them
      CUpti_SubscriberHandle subscriber = nullptr;
      check(subscribe_(
                &subscriber, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr),
            "cuptiSubscribe");
      for (const auto call : {CUPTI_DRIVER_TRACE_CBID_cuEventRecord, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent})
        check(enable_callback_(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, call), "cuptiEnableCallback");
    } else {
      throw std::invalid_argument("not an activity: " + std::string(what));
    }
  }

 private:
  static void check(CUptiResult result, const char* what) {
    if (result != CUPTI_SUCCESS) throw std::runtime_error(what + (" failed: " + std::to_string(result)));
  }

  SharedLibrary library_;
  decltype(&::cuptiSubscribe) subscribe_ = nullptr;
  decltype(&::cuptiEnableCallback) enable_callback_ = nullptr;
  decltype(&::cuptiActivityEnable) enable_ = nullptr;
  decltype(&::cuptiActivityEnableRuntimeApi) enable_call_ = nullptr;
};

template <class Call>
void time(const char* name, int calls, const Call& call) {
  std::vector<double> ns;
  for (int turn = 0; turn < 15; ++turn) {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    ns.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls);
  }
  std::printf(" %s %.0f", name, summarize(ns).median);
}

void time_calls() {
  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t event = nullptr;
  void* memory = nullptr;
  int device = 0;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  check(cudaStreamCreate(&other), "cudaStreamCreate");
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  check(cudaMalloc(&memory, 64), "cudaMalloc");
  launch_empty(stream);
  time("get_device", 20'000, [&] { check(cudaGetDevice(&device), "cudaGetDevice"); });
  time("launch", 400, [&] { launch_empty(stream); });
  time("memset", 400, [&] { check(cudaMemsetAsync(memory, 0, 64, stream), "cudaMemsetAsync"); });
  time("record_event", 400, [&] { check(cudaEventRecord(event, stream), "cudaEventRecord"); });
  time("wait_for_event", 400, [&] { check(cudaStreamWaitEvent(other, event, 0), "cudaStreamWaitEvent"); });
  time("synchronize", 100, [&] { check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); });
  std::puts("");
}

}  // namespace
}  // namespace weft::gpu_probe

int main(int argc, char** argv) {
  try {
    if (argc < 2) throw std::invalid_argument("weft_call_costs FOLDER [ACTIVITY...]");
    if (argc > 2) {
      static weft::gpu_probe::Cupti cupti(argv[1]);  // it calls back until the end
      for (int i = 2; i < argc; ++i) cupti.record(argv[i]);
    }
    weft::gpu_probe::time_calls();
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "weft_call_costs: %s\n", e.what());
    return 70;
  }
}
