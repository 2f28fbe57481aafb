// Stands for CUPTI where there is no GPU: records of kernels that never ran, in buffers as CUPTI fills them. The
// variable FAKE_CUPTI makes it fail: "busy", another profiler is there; "forbidden", the user may not profile;
// "silent", it records nothing while PM sampling is on.
#include "tests/capture/fake_cupti.h"

#include <cupti.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace {

CUpti_CallbackFunc on_callback;
CUpti_BuffersCallbackRequestFunc on_request;
CUpti_BuffersCallbackCompleteFunc on_complete;
std::uint8_t* buffer;
std::size_t buffer_bytes, used;
std::size_t dropped;
bool launches_are_told, contexts_are_told;
std::atomic<bool> sampling_settled;

std::recursive_mutex buffer_mutex;

void complete() {
  const std::lock_guard lock(buffer_mutex);
  if (buffer != nullptr) on_complete(nullptr, 0, buffer, buffer_bytes, used);
  buffer = nullptr;
  used = 0;
}

template <class Activity>
void add(const Activity& activity) {
  const std::lock_guard lock(buffer_mutex);
  if (asked_to("silent") && fake_sampling_is_on()) return;
  if (buffer != nullptr && used + sizeof(Activity) > buffer_bytes) complete();
  if (buffer == nullptr) {
    std::size_t most = 0;
    on_request(&buffer, &buffer_bytes, &most);
  }
  if (buffer == nullptr) {
    ++dropped;
    return;
  }
  std::memcpy(buffer + used, &activity, sizeof(Activity));
  used += sizeof(Activity);
}

constexpr std::uint64_t kKernelsPerGraph = 400;

constexpr const char* kAdd = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>";
constexpr const char* kProduct = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1";
constexpr const char* kCollective = "_Z36ncclDevKernel_AllReduce_Sum_f32_RINGP17ncclDevKernelArgs";

void tell_launch(CUpti_CallbackId call, CUpti_ApiCallbackSite site, const char* name, const void* parameters) {
  CUpti_CallbackData data{};
  data.callbackSite = site;
  data.functionParams = parameters;
  data.symbolName = name;
  data.context = reinterpret_cast<CUcontext>(1);
  on_callback(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, call, &data);
}

// What CUPTI tells of a launch, and the range profiler's own part in it. `stream`: kCapturingStream captures.
void launch(const char* name, std::uintptr_t stream = 7) {
  cuLaunchKernel_params parameters{};
  parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = parameters.blockDimY = parameters.blockDimZ = 1;
  parameters.blockDimX = 128;
  parameters.hStream = reinterpret_cast<CUstream>(stream);
  tell_launch(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_API_ENTER, name, &parameters);
  if (stream != kCapturingStream) fake_kernel_runs(name);
  tell_launch(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_API_EXIT, name, &parameters);
}

// A context, as the driver makes one before the first kernel. Setting up PM sampling takes its time, on another thread.
void create_context() {
  CUpti_ResourceData resource{};
  resource.context = reinterpret_cast<CUcontext>(1);
  on_callback(nullptr, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, &resource);
  for (int i = 0; i < 5000 && !sampling_settled; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

void fake_sampling_settled() { sampling_settled = true; }

void fake_call_runs(std::uint32_t id, std::uint64_t time, std::uint32_t correlation) {
  CUpti_ActivityAPI call{};
  call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  call.cbid = id;
  call.start = time;
  call.end = time + 2000;
  call.threadId = 1;
  call.correlationId = correlation;
  add(call);
}

void fake_kernel_ran(const char* name, std::uint64_t start, std::uint64_t ns, std::uint32_t stream,
                     std::uint32_t correlation) {
  CUpti_ActivityKernel10 kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.start = start;
  kernel.end = start + ns;
  kernel.streamId = stream;
  kernel.gridX = kernel.gridY = kernel.gridZ = kernel.blockY = kernel.blockZ = 1;
  kernel.blockX = 128;
  kernel.correlationId = correlation;
  kernel.name = name;
  add(kernel);
}

void fake_calls_back(CUpti_CallbackDomain domain, std::uint32_t call, const CUpti_CallbackData& data) {
  on_callback(nullptr, domain, call, &data);
}

bool asked_to(std::string_view what) {
  const char* mode = std::getenv("FAKE_CUPTI");
  return mode != nullptr && mode == what;
}

extern "C" {

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle*, CUpti_CallbackFunc callback, void*,
                              CUpti_SubscriberParams* parameters) {
  on_callback = callback;
  if (!asked_to("busy")) return CUPTI_SUCCESS;
  std::strncpy(parameters->oldSubscriberName, "Nsight Systems", parameters->oldSubscriberSize - 1);
  return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) { return CUPTI_SUCCESS; }
CUptiResult cuptiEnableCallback(std::uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain domain,
                                CUpti_CallbackId what) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE && what == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) contexts_are_told = true;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API && what == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) launches_are_told = true;
  fake_tells_of(domain, what);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetDeviceId(CUcontext, std::uint32_t* device) {
  *device = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "another error";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t call, const char** name) {
  *name = fake_call_name(domain, call);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetStreamIdEx(CUcontext, CUstream stream, std::uint8_t, std::uint32_t* number) {
  *number = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(stream));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetGraphNodeId(CUgraphNode node, std::uint64_t* id) {
  *id = reinterpret_cast<std::uint64_t>(node);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
  on_request = request;
  on_complete = completed;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityEnable(CUpti_ActivityKind) {
  return asked_to("forbidden") ? CUPTI_ERROR_INSUFFICIENT_PRIVILEGES : CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId, std::uint8_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId, std::uint8_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* records, std::size_t bytes, CUpti_Activity** record) {
  std::uint8_t* next = records;
  if (*record != nullptr)
    next =
        reinterpret_cast<std::uint8_t*>(*record) +
        ((*record)->kind == CUPTI_ACTIVITY_KIND_RUNTIME ? sizeof(CUpti_ActivityAPI) : sizeof(CUpti_ActivityKernel10));
  if (next >= records + bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* count) {
  *count = dropped;
  dropped = 0;
  return CUPTI_SUCCESS;
}
// What is not full stays until the end: another thread may be filling it.
CUptiResult cuptiActivityFlushAll(std::uint32_t flag) {
  if (flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) complete();
  return CUPTI_SUCCESS;
}
int InitializeInjectionNvtx2(const void* (*)(std::uint32_t)) { return 1; }

// Kernels of 8 us every 10 us on one stream, with their launches, and an edge between two nodes of a graph. A negative
// number: as many, every third a collective. Where launches are told, they are, and sometimes that of a graph.
void fake_cupti_run(std::int64_t number) {
  const auto kernels = static_cast<std::uint64_t>(number < 0 ? -number : number);
  if (contexts_are_told) create_context();
  for (std::uint64_t i = 0; i < kernels; ++i) {
    const bool collective = number < 0 && i % 3 == 2;
    const char* name = collective ? kCollective : (number < 0 ? i % 3 : i % 2) == 0 ? kAdd : kProduct;
    if (launches_are_told) {
      launch(name);
      launch(kAdd, kCapturingStream);
      if (i % kKernelsPerGraph != kKernelsPerGraph - 1) continue;
      tell_launch(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, CUPTI_API_ENTER, nullptr, nullptr);
      fake_kernel_runs("ncclDevKernel of a graph");
      tell_launch(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, CUPTI_API_EXIT, nullptr, nullptr);
      continue;
    }
    const auto correlation = static_cast<std::uint32_t>(i + 1);
    const std::uint64_t time = kFakeStart + i * 10'000;
    fake_call_runs(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, time, correlation);
    fake_kernel_ran(name, time + 3000, 8000, 7, correlation);
  }
  if (launches_are_told) {
    if (asked_to("one-more")) launch(kProduct);
    return;
  }
  CUpti_GraphData graph{};
  graph.node = reinterpret_cast<CUgraphNode>(1);
  graph.dependency = reinterpret_cast<CUgraphNode>(2);
  CUpti_ResourceData resource{};
  resource.resourceDescriptor = &graph;
  on_callback(nullptr, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED, &resource);
}
}
