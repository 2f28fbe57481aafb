#include "traces/capture/inject/activity_converter.h"

namespace weft::capture {

namespace {

std::string_view view(const char* text) { return text == nullptr ? std::string_view() : std::string_view(text); }

template <class Activity>
const Activity& as(const CUpti_Activity& activity) {
  return reinterpret_cast<const Activity&>(activity);
}

template <class Activity>
GpuTimes times(const Activity& a) {
  return {a.start, a.end, a.graphNodeId, a.deviceId, a.streamId, a.correlationId, 0};
}

template <class Activity>
bool has_run(const Activity& a) {
  return a.start != 0 && a.end >= a.start;
}

void put_kernel(const CUpti_ActivityKernel10& a, RecordFile& file) {
  if (!has_run(a)) return;
  KernelRecord record;
  record.gpu = times(a);
  record.gpu.name = file.text(view(a.name));
  const auto set = [](std::uint32_t(&to)[3], auto x, auto y, auto z) {
    to[0] = static_cast<std::uint32_t>(x);
    to[1] = static_cast<std::uint32_t>(y);
    to[2] = static_cast<std::uint32_t>(z);
  };
  set(record.grid, a.gridX, a.gridY, a.gridZ);
  set(record.block, a.blockX, a.blockY, a.blockZ);
  set(record.cluster, a.clusterX, a.clusterY, a.clusterZ);
  record.registers_per_thread = a.registersPerThread;
  record.static_shared_bytes = static_cast<std::uint32_t>(a.staticSharedMemory);
  record.dynamic_shared_bytes = static_cast<std::uint32_t>(a.dynamicSharedMemory);
  file.put(record);
}

CopyKind copy_kind(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
      return CopyKind::host_to_device;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
      return CopyKind::device_to_host;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
      return CopyKind::device_to_device;
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return CopyKind::peer_to_peer;
    default:
      return CopyKind::other;
  }
}

MemoryKind memory_kind(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
      return MemoryKind::pageable;
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return MemoryKind::pinned;
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
      return MemoryKind::device;
    default:
      return MemoryKind::other;
  }
}

template <class Activity>
void put_copy(const Activity& a, RecordFile& file) {
  if (!has_run(a)) return;
  CopyRecord record;
  record.gpu = times(a);
  record.bytes = a.bytes;
  record.kind = copy_kind(a.copyKind);
  record.from = memory_kind(a.srcKind);
  record.to = memory_kind(a.dstKind);
  file.put(record);
}

void put_memset(const CUpti_ActivityMemset4& a, RecordFile& file) {
  if (!has_run(a)) return;
  MemsetRecord record;
  record.gpu = times(a);
  record.bytes = a.bytes;
  file.put(record);
}

void put_range(const CUpti_ActivityMarker2& a, RecordFile& file) {
  const bool start = (a.flags & CUPTI_ACTIVITY_FLAG_MARKER_START) != 0;
  if (!start && (a.flags & CUPTI_ACTIVITY_FLAG_MARKER_END) == 0) return;
  RangeRecord record;
  record.time = a.timestamp;
  record.number = a.id;
  record.thread = a.objectId.pt.threadId;
  record.name = file.text(view(a.name));
  record.domain = file.text(view(a.domain));
  record.is_start = start ? 1 : 0;
  file.put(record);
}

void put_device(const CUpti_ActivityDevice5& a, RecordFile& file) {
  DeviceRecord record;
  record.memory_bytes = a.globalMemorySize;
  record.memory_bandwidth = a.globalMemoryBandwidth;
  record.device = a.id;
  record.name = file.text(view(a.name));
  record.compute_units = a.numMultiprocessors;
  record.core_clock_kHz = a.coreClockRate;
  record.l2_bytes = a.l2CacheSize;
  record.compute_capability = a.computeCapabilityMajor * 10 + a.computeCapabilityMinor;
  file.put(record);
}

void put_clock(const CUpti_ActivityEnvironment& a, RecordFile& file) {
  if (a.environmentKind != CUPTI_ACTIVITY_ENVIRONMENT_SPEED) return;
  ClockRecord record;
  record.time = a.timestamp;
  record.device = a.deviceId;
  record.core_MHz = a.data.speed.smClock;
  record.memory_MHz = a.data.speed.memoryClock;
  record.throttle_reasons = static_cast<std::uint32_t>(a.data.speed.clocksThrottleReasons);
  file.put(record);
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

bool call_matters(std::string_view name) {
  return has(name, "Launch") || has(name, "Memcpy") || has(name, "Memset") || has(name, "Synchronize") ||
         has(name, "EventRecord") || has(name, "StreamWaitEvent");
}

void ActivityConverter::convert_call(const CUpti_ActivityAPI& call, RecordFile& file) {
  constexpr std::uint32_t kMostCalls = 4096;  // CUDA 13 numbers some 800
  const bool of_runtime = call.kind == CUPTI_ACTIVITY_KIND_RUNTIME;
  std::vector<Call>& calls = of_runtime ? runtime_calls_ : driver_calls_;
  if (call.cbid >= kMostCalls) return;
  if (call.cbid >= calls.size()) calls.resize(call.cbid + 1);
  Call& known = calls[call.cbid];
  if (!known.asked) {
    known.asked = true;
    const char* name = nullptr;
    const auto domain = of_runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
    known.matters = call_name_(domain, call.cbid, &name) == CUPTI_SUCCESS && call_matters(view(name));
    if (known.matters) {
      // The runtime's names end in the version in which they last changed: cudaLaunchKernel_v7000.
      std::string_view plain = view(name);
      if (of_runtime) plain = plain.substr(0, plain.rfind("_v"));
      known.name = file.text(plain);
    }
  }
  if (!known.matters || call.end < call.start) return;
  CallRecord record;
  record.start = call.start;
  record.end = call.end;
  record.thread = call.threadId;
  record.correlation = call.correlationId;
  record.name = known.name;
  record.result = call.returnValue;
  file.put(record);
}

void ActivityConverter::convert(const CUpti_Activity& activity, RecordFile& file) {
  switch (activity.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return put_kernel(as<CUpti_ActivityKernel10>(activity), file);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return put_copy(as<CUpti_ActivityMemcpy6>(activity), file);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return put_copy(as<CUpti_ActivityMemcpyPtoP4>(activity), file);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return put_memset(as<CUpti_ActivityMemset4>(activity), file);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return convert_call(as<CUpti_ActivityAPI>(activity), file);
    case CUPTI_ACTIVITY_KIND_MARKER:
      return put_range(as<CUpti_ActivityMarker2>(activity), file);
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return put_device(as<CUpti_ActivityDevice5>(activity), file);
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT:
      return put_clock(as<CUpti_ActivityEnvironment>(activity), file);
    default:
      return;
  }
}

}  // namespace weft::capture
