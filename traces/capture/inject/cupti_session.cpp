// What the driver calls in a captured process: starts CUPTI, and hands what it tells to the writer.
#include <dlfcn.h>

#include <cstdio>
#include <mutex>

#include "traces/capture/inject/activity_converter.h"
#include "traces/capture/inject/clock.h"
#include "traces/capture/inject/counters.h"
#include "traces/capture/inject/cupti_library.h"
#include "traces/capture/inject/sampling.h"
#include "traces/capture/inject/session.h"
#include "traces/capture/inject/stream_waits.h"

namespace weft::capture {

namespace {

constexpr const char* kNotCaptured = "its kernels are not captured";

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  Writer* writer = session();
  *buffer = writer == nullptr ? nullptr : writer->take_buffer();
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;  // without a buffer CUPTI drops and counts
  *most_records = 0;
}

void CUPTIAPI buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
  if (Writer* writer = session(); writer != nullptr && buffer != nullptr) writer->give_buffer(buffer, valid_bytes);
}

void convert_buffer(const std::uint8_t* buffer, std::size_t valid_bytes, RecordFile& file) {
  // The writer's thread only, which is at work when objects like this are destroyed at the program's end: this one is
  // not.
  static auto& converter = *new ActivityConverter(cupti()->cuptiGetCallbackName);
  CUpti_Activity* activity = nullptr;
  // CUPTI's signature takes a pointer to change; it does not.
  auto* records = const_cast<std::uint8_t*>(buffer);
  while (cupti()->cuptiActivityGetNextRecord(records, valid_bytes, &activity) == CUPTI_SUCCESS)
    converter.convert(*activity, file);
}

void flush(bool last) { cupti()->cuptiActivityFlushAll(last ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0); }

std::uint64_t count_dropped() {
  std::size_t dropped = 0;
  return cupti()->cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS ? dropped : 0;
}

// Nodes of CUDA graphs as they are put together: kernels name the node that they come from, and edges are told here
// only.
void graph_changed(CUpti_CallbackId what, const CUpti_GraphData* graph, Writer& writer) {
  if (graph == nullptr) return;
  const bool edge = what == CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED;
  GraphRecord record;
  record.header.kind = edge ? RecordKind::graph_edge : RecordKind::graph_clone;
  if (cupti()->cuptiGetGraphNodeId(graph->node, &record.node) != CUPTI_SUCCESS) return;
  const CUgraphNode other = edge ? graph->dependency : graph->originalNode;
  if (cupti()->cuptiGetGraphNodeId(other, &record.dependency) != CUPTI_SUCCESS) return;
  writer.put(record);
}

void resource_changed(CUpti_CallbackId what, const CUpti_ResourceData& resource, Writer& writer) {
  if (what == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) return sample_device_of(resource.context);
  graph_changed(what, static_cast<const CUpti_GraphData*>(resource.resourceDescriptor), writer);
}

void CUPTIAPI called_back(void*, CUpti_CallbackDomain domain, CUpti_CallbackId what, const void* data) {
  Writer* writer = session();
  if (writer == nullptr) return;
  if (domain == CUPTI_CB_DOMAIN_RESOURCE)
    return resource_changed(what, *static_cast<const CUpti_ResourceData*>(data), *writer);
  wait_called(domain, what, *static_cast<const CUpti_CallbackData*>(data), *writer);
}

void enable_calls() {
  for_each_call([](CUpti_CallbackDomain domain, CUpti_CallbackId call, const char* name) {
    if (!call_matters(name)) return;
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API)
      cupti()->cuptiActivityEnableRuntimeApi(call, 1);
    else
      cupti()->cuptiActivityEnableDriverApi(call, 1);
  });
}

void start(Writer& writer) {
  const std::optional<CUpti_SubscriberHandle> subscriber = subscribe(called_back, kNotCaptured);
  if (!subscriber) return;
  for (const auto what : {CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED})
    cupti()->cuptiEnableCallback(1, *subscriber, CUPTI_CB_DOMAIN_RESOURCE, what);
  cupti()->cuptiActivityRegisterTimestampCallback(now_ns);
  cupti()->cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  CUptiResult result = cupti()->cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed);
  if (result == CUPTI_SUCCESS) result = cupti()->cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (result != CUPTI_SUCCESS) return tell_failure("CUPTI records no kernels", result, kNotCaptured);
  const bool samples = sampling_asked() && can_sample();
  writer.set_source({convert_buffer, flush, count_dropped, samples ? write_samples : nullptr});
  if (samples)
    cupti()->cuptiEnableCallback(1, *subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
  at_session_end(nullptr);
  for (const auto kind : {CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET,
                          CUPTI_ACTIVITY_KIND_MARKER, CUPTI_ACTIVITY_KIND_DEVICE}) {
    result = cupti()->cuptiActivityEnable(kind);
    if (result == CUPTI_SUCCESS) continue;
    char message[128];
    std::snprintf(message, sizeof(message), "CUPTI does not record activities of kind %d (error %d)",
                  static_cast<int>(kind), static_cast<int>(result));
    tell_user(message);
  }
  cupti()->cuptiActivityEnable(CUPTI_ACTIVITY_KIND_ENVIRONMENT);  // clocks: some systems do not tell
  enable_calls();
  watch_waits(*subscriber);
}

}  // namespace

}  // namespace weft::capture

// NOLINTBEGIN(readability-identifier-naming): the driver and NVTX look for these names.
extern "C" {

// The driver, when CUDA starts (CUDA_INJECTION64_PATH).
[[gnu::visibility("default")]] int InitializeInjection() {
  static std::once_flag started;
  std::call_once(started, [] {
    weft::capture::Writer* writer = weft::capture::session();
    if (writer == nullptr) return;
    if (weft::capture::cupti() == nullptr) {
      weft::capture::tell_user(
          "no CUPTI of CUDA 13 (libcupti.so.13) was found; WEFT_CAPTURE_CUPTI can name it. The program runs on, its "
          "kernels are not captured");
    } else if (weft::capture::counters_asked()) {
      weft::capture::start_counters();
    } else {
      weft::capture::start(*writer);
    }
  });
  return 1;
}

// NVTX, when the program marks its first range (NVTX_INJECTION64_PATH): CUPTI records them. 0: ranges cost nothing.
[[gnu::visibility("default")]] int InitializeInjectionNvtx2(const void* (*table)(std::uint32_t)) {
  const weft::capture::Cupti* cupti = weft::capture::cupti();
  if (weft::capture::session() == nullptr || weft::capture::counters_asked() || cupti == nullptr) return 0;
  auto* initialize =
      reinterpret_cast<int (*)(const void* (*)(std::uint32_t))>(::dlsym(cupti->library, "InitializeInjectionNvtx2"));
  return initialize == nullptr ? 0 : initialize(table);
}
}
// NOLINTEND(readability-identifier-naming)
