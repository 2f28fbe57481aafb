// Kernels on several streams that wait for events, as the tests' CUPTI tells of them: each call of the runtime with the
// driver's within it, which has a number of its own here.
#include <cupti.h>

#include <cstdint>
#include <set>
#include <utility>

#include "tests/capture/fake_cupti.h"

namespace {

std::set<std::pair<CUpti_CallbackDomain, std::uint32_t>> told;

constexpr std::uint32_t kNumberOfDriversCalls = 1000;

class Program {
 public:
  void kernel(const char* name, std::uint32_t stream) {
    fake_call_runs(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, time_, ++correlation_);
    fake_kernel_ran(name, time_ + 3000, 1000, stream, correlation_);
    time_ += 10'000;
  }
  void record(std::uintptr_t event, std::uintptr_t stream) {
    cuEventRecord_params parameters{reinterpret_cast<CUevent>(event), reinterpret_cast<CUstream>(stream)};
    call(CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020, CUPTI_DRIVER_TRACE_CBID_cuEventRecord, &parameters);
  }
  void wait(std::uintptr_t stream, std::uintptr_t event, CUresult result = CUDA_SUCCESS) {
    cuStreamWaitEvent_params parameters{reinterpret_cast<CUstream>(stream), reinterpret_cast<CUevent>(event), 0};
    call(CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, &parameters,
         result);
  }
  void destroy(std::uintptr_t event) {
    cuEventDestroy_v2_params parameters{reinterpret_cast<CUevent>(event)};
    call(CUPTI_RUNTIME_TRACE_CBID_cudaEventDestroy_v3020, CUPTI_DRIVER_TRACE_CBID_cuEventDestroy_v2, &parameters);
  }

 private:
  void call(std::uint32_t runtime, std::uint32_t driver, const void* parameters, CUresult result = CUDA_SUCCESS) {
    fake_call_runs(runtime, time_, ++correlation_);
    time_ += 10'000;
    CUpti_CallbackData outer{}, inner{};
    outer.correlationId = correlation_;
    inner.correlationId = correlation_ + kNumberOfDriversCalls;
    inner.functionParams = parameters;
    inner.functionReturnValue = &result;
    tell(CUPTI_CB_DOMAIN_RUNTIME_API, runtime, CUPTI_API_ENTER, outer);
    tell(CUPTI_CB_DOMAIN_DRIVER_API, driver, CUPTI_API_ENTER, inner);
    tell(CUPTI_CB_DOMAIN_DRIVER_API, driver, CUPTI_API_EXIT, inner);
    tell(CUPTI_CB_DOMAIN_RUNTIME_API, runtime, CUPTI_API_EXIT, outer);
  }
  static void tell(CUpti_CallbackDomain domain, std::uint32_t call, CUpti_ApiCallbackSite site,
                   CUpti_CallbackData data) {
    data.callbackSite = site;
    if (told.contains({domain, call})) fake_calls_back(domain, call, data);
  }

  std::uint64_t time_ = kFakeStart;
  std::uint32_t correlation_ = 0;
};

}  // namespace

void fake_tells_of(CUpti_CallbackDomain domain, std::uint32_t call) { told.emplace(domain, call); }

const char* fake_call_name(CUpti_CallbackDomain domain, std::uint32_t call) {
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    switch (call) {
      case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000:
        return "cudaLaunchKernel_v7000";
      case CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020:
        return "cudaEventRecord_v3020";
      case CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020:
        return "cudaStreamWaitEvent_v3020";
      case CUPTI_RUNTIME_TRACE_CBID_cudaEventDestroy_v3020:
        return "cudaEventDestroy_v3020";
      default:
        return "cudaOther_v3020";
    }
  }
  switch (call) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
      return "cuLaunchKernel";
    case CUPTI_DRIVER_TRACE_CBID_cuEventRecord:
      return "cuEventRecord";
    case CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent:
      return "cuStreamWaitEvent";
    case CUPTI_DRIVER_TRACE_CBID_cuEventDestroy_v2:
      return "cuEventDestroy_v2";
    default:
      return "cuOther";
  }
}

extern "C" {

// Streams 7 and from 13 on; kernels wait as their names say.
void fake_cupti_run_streams(std::int64_t) {
  constexpr std::uintptr_t kEvent = 5;
  Program program;
  program.kernel("first", 7);
  program.record(kEvent, 7);
  program.kernel("second, not waited for", 7);
  program.wait(13, kEvent);
  program.kernel("waits for first", 13);
  program.wait(14, kEvent, CUDA_ERROR_INVALID_HANDLE);
  program.kernel("does not wait", 14);
  program.record(kEvent, kCapturingStream);  // into a graph
  program.wait(15, kEvent);
  program.kernel("waits for first", 15);
  program.record(kEvent, 13);
  program.wait(16, kEvent);
  program.kernel("waits for the third", 16);
  program.destroy(kEvent);
  program.wait(17, kEvent);  // another event in its place, not recorded yet
  program.kernel("does not wait", 17);
}
}
