#include "traces/capture/inject/stream_waits.h"

#include <mutex>
#include <string_view>
#include <unordered_map>

#include "traces/capture/inject/cupti_library.h"

namespace weft::capture {

namespace {

// Each event's latest record, by a number of its own. Not destroyed: threads may call CUDA at the program's end.
struct Events {
  std::mutex mutex;
  std::unordered_map<CUevent, std::uint64_t> latest;
  std::uint64_t count = 0;
};
Events& events() {
  static auto& all = *new Events;
  return all;
}

// Of the runtime's call that this thread is in; 0: of none. The driver's call within it may have a number of its own,
// and it is the runtime's that is recorded.
thread_local std::uint32_t runtime_correlation = 0;

bool tells_waits(std::string_view name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string_view::npos; };
  return has("EventRecord") || has("StreamWaitEvent") || has("EventSynchronize") || has("StreamSynchronize") ||
         has("EventDestroy");
}

// -1: CUPTI does not know it. Default streams are those of `context`, which others need not belong to.
std::int32_t number_of(CUstream stream, CUcontext context, bool per_thread) {
  const bool is_default = stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  std::uint32_t number = 0;
  const CUptiResult result =
      cupti()->cuptiGetStreamIdEx(is_default ? context : nullptr, stream, per_thread ? 1 : 0, &number);
  return result == CUPTI_SUCCESS ? static_cast<std::int32_t>(number & 0x7fffffff) : -1;
}

std::uint64_t latest_record(CUevent event) {
  const std::lock_guard lock(events().mutex);
  const auto found = events().latest.find(event);
  return found == events().latest.end() ? 0 : found->second;
}

class WaitCall {
 public:
  WaitCall(const CUpti_CallbackData& data, Writer& writer)
      : data_(data),
        writer_(writer),
        correlation_(runtime_correlation != 0 ? runtime_correlation : data.correlationId) {}

  void record(CUevent event, CUstream stream, bool per_thread) {
    if (is_capturing(stream)) return;  // becomes part of a graph
    EventRecord record;
    {
      const std::lock_guard lock(events().mutex);
      record.event_sync = events().latest[event] = ++events().count;
    }
    record.correlation = correlation_;
    record.stream = number_of(stream, data_.context, per_thread);
    writer_.put(record);
  }

  void wait(CUstream stream, CUevent event, bool per_thread) {
    if (!is_capturing(stream)) put(number_of(stream, data_.context, per_thread), latest_record(event));
  }
  void wait_on_host(CUevent event) { put(-1, latest_record(event)); }
  void wait_on_host(CUstream stream, bool per_thread) { put(number_of(stream, data_.context, per_thread), 0); }

 private:
  void put(std::int32_t stream, std::uint64_t event) {
    SynchronizationRecord record;
    record.event_sync = event;
    record.correlation = correlation_;
    record.stream = stream;
    writer_.put(record);
  }

  const CUpti_CallbackData& data_;
  Writer& writer_;
  std::uint32_t correlation_;
};

// Before the driver does: then another thread's event may be in its place.
void forget(CUevent event) {
  const std::lock_guard lock(events().mutex);
  events().latest.erase(event);
}

template <class Parameters>
const Parameters& as(const CUpti_CallbackData& data) {
  return *static_cast<const Parameters*>(data.functionParams);
}

// Those whose names end in _ptsz are of programs built for a default stream a thread; their parameters are the same.
void driver_called(CUpti_CallbackId id, const CUpti_CallbackData& data, Writer& writer) {
  WaitCall call(data, writer);
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuEventRecord:
    case CUPTI_DRIVER_TRACE_CBID_cuEventRecord_ptsz: {
      const auto& p = as<cuEventRecord_params>(data);
      return call.record(p.hEvent, p.hStream, id == CUPTI_DRIVER_TRACE_CBID_cuEventRecord_ptsz);
    }
    case CUPTI_DRIVER_TRACE_CBID_cuEventRecordWithFlags:
    case CUPTI_DRIVER_TRACE_CBID_cuEventRecordWithFlags_ptsz: {
      const auto& p = as<cuEventRecordWithFlags_params>(data);
      return call.record(p.hEvent, p.hStream, id == CUPTI_DRIVER_TRACE_CBID_cuEventRecordWithFlags_ptsz);
    }
    case CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent_ptsz: {
      const auto& p = as<cuStreamWaitEvent_params>(data);
      return call.wait(p.hStream, p.hEvent, id == CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent_ptsz);
    }
    case CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize:
      return call.wait_on_host(as<cuEventSynchronize_params>(data).hEvent);
    case CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz:
      return call.wait_on_host(as<cuStreamSynchronize_params>(data).hStream,
                               id == CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz);
    default:
      return;
  }
}

}  // namespace

void watch_waits(CUpti_SubscriberHandle subscriber) {
  for_each_call([&](CUpti_CallbackDomain domain, CUpti_CallbackId call, const char* name) {
    if (tells_waits(name)) cupti()->cuptiEnableCallback(1, subscriber, domain, call);
  });
}

void wait_called(CUpti_CallbackDomain domain, CUpti_CallbackId call, const CUpti_CallbackData& data, Writer& writer) {
  const bool enters = data.callbackSite == CUPTI_API_ENTER;
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    runtime_correlation = enters ? data.correlationId : 0;
    return;
  }
  if (enters) {
    if (call == CUPTI_DRIVER_TRACE_CBID_cuEventDestroy || call == CUPTI_DRIVER_TRACE_CBID_cuEventDestroy_v2)
      forget(as<cuEventDestroy_v2_params>(data).hEvent);  // both have it
    return;
  }
  if (data.functionReturnValue == nullptr) return;
  if (*static_cast<const CUresult*>(data.functionReturnValue) == CUDA_SUCCESS) driver_called(call, data, writer);
}

}  // namespace weft::capture
