// The profiler plugin that NCCL loads (NCCL_PROFILER_PLUGIN): it tells of each collective what NCCL chose for it.
#include <strings.h>

#include <atomic>
#include <new>

#include "traces/capture/inject/nccl_abi.h"
#include "traces/capture/inject/nccl_records.h"

namespace weft::capture {

namespace {

std::atomic<bool> active{false};

struct Context {
  std::uint64_t communicator;
};

// ncclDataType_t (nccl.h) by the names that NCCL gives to plugins.
std::uint8_t type_of(const char* name) {
  constexpr const char* kNames[] = {"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
                                    "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
                                    "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
  for (std::uint8_t i = 0; name != nullptr && i < std::size(kNames); ++i)
    if (::strcasecmp(name, kNames[i]) == 0) return i;
  return 255;
}

NcclResult init(void** context, int* wanted, std::uint64_t id, const char* name, int ranks, int rank) {
  *context = nullptr;
  *wanted = 0;
  Writer* writer = session();
  auto* made = writer != nullptr ? new (std::nothrow) Context{id} : nullptr;
  if (made == nullptr) return 0;
  active = true;
  record_communicator(*writer, id, ranks, rank, name);
  *context = made;
  *wanted = kProfileCollective | kProfilePointToPoint;
  return 0;
}

NcclResult init_v4(void** context, int* wanted, const char* name, std::uint64_t id, int, int ranks, int rank,
                   void (*)()) {
  return init(context, wanted, id, name, ranks, rank);
}

NcclResult init_v5(void** context, std::uint64_t id, int* wanted, const char* name, int, int ranks, int rank,
                   void (*)()) {
  return init(context, wanted, id, name, ranks, rank);
}

void record(const Context& context, std::uint64_t type, const NcclEvent& event) {
  Writer* writer = session();
  if (writer == nullptr || (type != kProfileCollective && type != kProfilePointToPoint)) return;
  CollectiveRecord record;
  record.communicator = context.communicator;
  record.time = now_ns();
  record.thread = thread_id();
  if (type == kProfileCollective) {
    const NcclEvent::Collective& c = event.collective;
    record.sequence = c.sequence;
    record.count = c.count;
    record.type = type_of(c.type);
    record.channels = c.channels;
    copy_text(record.function, c.function);
    copy_text(record.algorithm, c.algorithm);
    copy_text(record.protocol, c.protocol);
  } else {
    const NcclEvent::PointToPoint& p = event.point_to_point;
    record.count = p.count;
    record.peer = p.peer;
    record.type = type_of(p.type);
    record.channels = p.channels;
    copy_text(record.function, p.function);
  }
  writer->put(record);
}

// Only the start counts: for the host, a collective is over when it is launched. Without a handle NCCL calls no stop.
NcclResult start_event_v4(void* context, void** handle, NcclEvent* event) {
  *handle = nullptr;
  if (context != nullptr) record(*static_cast<Context*>(context), event->type_v4, *event);
  return 0;
}

NcclResult start_event_v5(void* context, void** handle, NcclEvent* event) {
  *handle = nullptr;
  if (context != nullptr) record(*static_cast<Context*>(context), event->type, *event);
  return 0;
}

NcclResult stop_event(void*) { return 0; }

NcclResult record_event_state(void*, int, void*) { return 0; }

NcclResult finalize(void* context) {
  delete static_cast<Context*>(context);
  return 0;
}

}  // namespace

bool plugin_is_active() { return active.load(std::memory_order_relaxed); }

}  // namespace weft::capture

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): NCCL looks for these names.
[[gnu::visibility("default")]] extern const weft::capture::NcclProfiler<weft::capture::NcclInitV4> ncclProfiler_v4;
[[gnu::visibility("default")]] extern const weft::capture::NcclProfiler<weft::capture::NcclInitV5> ncclProfiler_v5;
[[gnu::visibility("default")]] extern const weft::capture::NcclProfiler<weft::capture::NcclInitV5> ncclProfiler_v6;

const weft::capture::NcclProfiler<weft::capture::NcclInitV4> ncclProfiler_v4{"weft",
                                                                             weft::capture::init_v4,
                                                                             weft::capture::start_event_v4,
                                                                             weft::capture::stop_event,
                                                                             weft::capture::record_event_state,
                                                                             weft::capture::finalize};
const weft::capture::NcclProfiler<weft::capture::NcclInitV5> ncclProfiler_v5{"weft",
                                                                             weft::capture::init_v5,
                                                                             weft::capture::start_event_v5,
                                                                             weft::capture::stop_event,
                                                                             weft::capture::record_event_state,
                                                                             weft::capture::finalize};
const weft::capture::NcclProfiler<weft::capture::NcclInitV5> ncclProfiler_v6 = ncclProfiler_v5;
// NOLINTEND(readability-identifier-naming)
}
