#include "traces/capture/inject/cupti_library.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "traces/capture/inject/session.h"
#include "traces/capture/record.h"

namespace weft::capture {

namespace {

Cupti opened;
bool is_open = false;

bool open() {
  const char* asked = std::getenv(kCuptiVariable);
  for (const char* path : {asked, "libcupti.so.13", WEFT_CUPTI_LIBRARY}) {
    if (path != nullptr && *path != 0 && opened.library == nullptr)
      opened.library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  if (opened.library == nullptr) return false;
  bool all = true;
#define WEFT_FIND(name) \
  all = all && (opened.name = reinterpret_cast<decltype(&::name)>(::dlsym(opened.library, #name)));
  WEFT_CUPTI_FUNCTIONS(WEFT_FIND)
#undef WEFT_FIND
  return all;
}

// CUDA's version that the driver is for, as 1000 * major + 10 * minor; 0: there is none.
int driver_version() {
  int version = 0;
  if (auto* get = reinterpret_cast<int (*)(int*)>(driver_function("cuDriverGetVersion"))) get(&version);
  return version;
}

const char* advice(CUptiResult result) {
  const int version = driver_version();
  if (version == 0) return "there is no driver of NVIDIA here";
  if (version < 13000) return "the driver is older than CUDA 13 (release 580)";
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "the driver lets only administrators profile (RmProfilingAdminOnly in /proc/driver/nvidia/params; "
             "ERR_NVGPUCTRPERM): run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
      return "this kind of device cannot be profiled";
    case CUPTI_ERROR_HARDWARE_BUSY:
      return "another profiler uses the counters of this GPU";
    default:
      return "cupti_result.h tells what that means";
  }
}

}  // namespace

const Cupti* cupti() {
  static std::once_flag once;
  std::call_once(once, [] { is_open = open(); });
  return is_open ? &opened : nullptr;
}

void* cupti_function(const char* name) {
  const Cupti* library = cupti();
  return library == nullptr ? nullptr : ::dlsym(library->library, name);
}

void* driver_function(const char* name) {
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : ::dlsym(driver, name);
}

std::string failure(const char* what, CUptiResult result, const char* but) {
  const char* name = "unknown";
  opened.cuptiGetResultString(result, &name);
  char message[512];
  std::snprintf(message, sizeof(message), "%s (%s): %s. The program runs on, %s", what, name, advice(result), but);
  return message;
}

void tell_failure(const char* what, CUptiResult result, const char* but) {
  tell_user(failure(what, result, but).c_str());
}

void for_each_call(const std::function<void(CUpti_CallbackDomain, CUpti_CallbackId, const char* name)>& visit) {
  const auto visit_all = [&](CUpti_CallbackDomain domain, CUpti_CallbackId size) {
    for (CUpti_CallbackId call = 1; call < size; ++call) {
      const char* name = nullptr;
      if (opened.cuptiGetCallbackName(domain, call, &name) == CUPTI_SUCCESS && name != nullptr)
        visit(domain, call, name);
    }
  };
  visit_all(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE);
  visit_all(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE);
}

bool is_capturing(CUstream stream) {
  static auto* const ask =
      reinterpret_cast<CUresult (*)(CUstream, CUstreamCaptureStatus*)>(driver_function("cuStreamIsCapturing"));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return ask != nullptr && (ask(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE);
}

std::optional<CUpti_SubscriberHandle> subscribe(CUpti_CallbackFunc callback, const char* but) {
  CUpti_SubscriberHandle subscriber = nullptr;
  char other[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = {};
  CUpti_SubscriberParams parameters{};
  parameters.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  parameters.subscriberName = "weft";
  parameters.oldSubscriberName = other;
  parameters.oldSubscriberSize = sizeof(other);
  const CUptiResult result = opened.cuptiSubscribe_v2(&subscriber, callback, nullptr, &parameters);
  if (result == CUPTI_SUCCESS) return subscriber;
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    char message[256];
    std::snprintf(message, sizeof(message),
                  "another profiler%s%s has CUPTI in this process already. The program runs on, %s",
                  *other == 0 ? "" : ": ", other, but);
    tell_user(message);
  } else {
    tell_failure("CUPTI cannot start", result, but);
  }
  return std::nullopt;
}

}  // namespace weft::capture
