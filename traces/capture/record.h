// What the injected library writes and weft reads: a capture file of one process. Both sides include only this header.
//
// File: kMagic, then blocks, each a BlockHeader and one zstd frame (with its checksum) of whole records. A process that
// is killed leaves a file that is good up to its last whole block. Numbers are little-endian. Times are nanoseconds of
// CLOCK_REALTIME. `text` numbers name an earlier TextRecord, 0 is the empty text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "traces/kernel_counters.h"
#include "traces/traffic_counter.h"

namespace weft::capture {

// Records are the bytes of a file, and C's functions fill their names.
// NOLINTBEGIN(modernize-avoid-c-arrays)

inline constexpr char kMagic[8] = {'W', 'E', 'F', 'T', 'C', 'A', 'P', '1'};
inline constexpr const char* kFileSuffix = ".weftcap";
inline constexpr std::uint32_t kBlockMagic = 0x4b4c4257;          // "WBLK"
inline constexpr std::size_t kBlockBytes = std::size_t{1} << 20;  // plain, at most
inline constexpr std::size_t kMaxText = 65536;                    // longer names are cut

// The variables by which `weft capture` speaks to the library.
inline constexpr const char* kDirectoryVariable = "WEFT_CAPTURE_DIRECTORY";
inline constexpr const char* kCuptiVariable = "WEFT_CAPTURE_CUPTI";        // path of CUPTI, tried first
inline constexpr const char* kCountersVariable = "WEFT_CAPTURE_COUNTERS";  // set: count kernels, in the place of times
inline constexpr const char* kSamplingVariable = "WEFT_CAPTURE_SAMPLING";  // set: traffic over time beside the times
// Within a capture's folder, the files of its second pass.
inline constexpr const char* kCountersFolder = "counters";

struct BlockHeader {
  std::uint32_t magic;
  std::uint32_t packed_bytes;  // of the frame that follows
  std::uint32_t plain_bytes;
  std::uint32_t number;  // 0, 1, 2, ... in the file
};

enum class RecordKind : std::uint32_t {
  session = 1,
  text,
  note,
  device,
  clock,
  kernel,
  copy,
  memset,
  call,
  synchronization,
  event_record,
  range,
  graph_edge,
  graph_clone,
  communicator,
  collective,
  dropped,
  end,
  counters,
  traffic
};

// Begins every record. Records are multiples of 8 bytes; one that is longer than its struct here comes from a newer
// library, and what is behind is ignored.
struct RecordHeader {
  RecordKind kind;
  std::uint32_t bytes;  // of the whole record
};

struct SessionRecord {
  RecordHeader header{RecordKind::session, sizeof(SessionRecord)};
  std::uint64_t start = 0;
  std::uint32_t process = 0;
  std::int32_t rank = -1;        // from the launcher's variables; -1: none
  std::int32_t world_size = -1;  // likewise
  std::uint32_t spare = 0;
  char host[64] = {};
};

// A TextRecord, NoteRecord or CountersRecord is followed by its characters and zeros up to a multiple of 8.
struct TextRecord {
  RecordHeader header{RecordKind::text, 0};
  std::uint32_t number = 0;
  std::uint32_t length = 0;
};
// Something for the user: why there are no kernels, and the like.
struct NoteRecord {
  RecordHeader header{RecordKind::note, 0};
  std::uint32_t length = 0;
  std::uint32_t spare = 0;
};

struct DeviceRecord {
  RecordHeader header{RecordKind::device, sizeof(DeviceRecord)};
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_bandwidth = 0;  // kB/s, as the driver says
  std::uint32_t device = 0;
  std::uint32_t name = 0;  // text
  std::uint32_t compute_units = 0;
  std::uint32_t core_clock_kHz = 0;  // the highest
  std::uint32_t l2_bytes = 0;
  std::uint32_t compute_capability = 0;  // major * 10 + minor
};

// What clocks the device ran at.
struct ClockRecord {
  RecordHeader header{RecordKind::clock, sizeof(ClockRecord)};
  std::uint64_t time = 0;
  std::uint32_t device = 0;
  std::uint32_t core_MHz = 0;
  std::uint32_t memory_MHz = 0;
  std::uint32_t throttle_reasons = 0;  // CUpti_EnvironmentClocksThrottleReason
};

// What all operations on the GPU have.
struct GpuTimes {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t graph_node = 0;  // 0: not launched as part of a CUDA graph
  std::uint32_t device = 0;
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;  // of the call that launched it; all nodes of a graph have that of the graph's launch
  std::uint32_t name = 0;         // text; of kernels
};

struct KernelRecord {
  RecordHeader header{RecordKind::kernel, sizeof(KernelRecord)};
  GpuTimes gpu;
  std::uint64_t spare[2] = {};
  std::uint32_t grid[3] = {};
  std::uint32_t block[3] = {};
  std::uint32_t cluster[3] = {};  // 0: no cluster
  std::uint32_t registers_per_thread = 0;
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t dynamic_shared_bytes = 0;
};

enum class CopyKind : std::uint8_t { other, host_to_device, device_to_host, device_to_device, peer_to_peer };
enum class MemoryKind : std::uint8_t { other, pageable, pinned, device };

struct CopyRecord {
  RecordHeader header{RecordKind::copy, sizeof(CopyRecord)};
  GpuTimes gpu;
  std::uint64_t bytes = 0;
  CopyKind kind = CopyKind::other;
  MemoryKind from = MemoryKind::other;
  MemoryKind to = MemoryKind::other;
  std::uint8_t spare[5] = {};
};

struct MemsetRecord {
  RecordHeader header{RecordKind::memset, sizeof(MemsetRecord)};
  GpuTimes gpu;
  std::uint64_t bytes = 0;
};

// A call of the runtime or driver on the host.
struct CallRecord {
  RecordHeader header{RecordKind::call, sizeof(CallRecord)};
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint32_t thread = 0;  // gettid()
  std::uint32_t correlation = 0;
  std::uint32_t name = 0;  // text
  std::uint32_t result = 0;
};

// What a call with this correlation waited for. Event waits name the record of the event by its synchronisation id.
struct SynchronizationRecord {
  RecordHeader header{RecordKind::synchronization, sizeof(SynchronizationRecord)};
  std::uint64_t event_sync = 0;  // 0: no event
  std::uint32_t correlation = 0;
  std::int32_t stream = -1;  // that waits, or that is waited for; -1: none
};

struct EventRecord {
  RecordHeader header{RecordKind::event_record, sizeof(EventRecord)};
  std::uint64_t event_sync = 0;
  std::uint32_t correlation = 0;
  std::int32_t stream = -1;
};

// An end of an NVTX range; both have the same number.
struct RangeRecord {
  RecordHeader header{RecordKind::range, sizeof(RangeRecord)};
  std::uint64_t time = 0;
  std::uint32_t number = 0;
  std::uint32_t thread = 0;
  std::uint32_t name = 0;    // text; of the start
  std::uint32_t domain = 0;  // text
  std::uint32_t is_start = 0;
  std::uint32_t spare = 0;
};

// `node` waits for `dependency`, or is a copy of `dependency` in another graph (an executable one, say).
struct GraphRecord {
  RecordHeader header{RecordKind::graph_edge, sizeof(GraphRecord)};
  std::uint64_t node = 0;
  std::uint64_t dependency = 0;
};

struct CommunicatorRecord {
  RecordHeader header{RecordKind::communicator, sizeof(CommunicatorRecord)};
  std::uint64_t id = 0;  // the same on all of its ranks
  std::uint32_t ranks = 0;
  std::uint32_t rank = 0;
  char name[32] = {};
};

// A range of NCCL's own in NVTX, which no capture file holds, has bytes for `count` and no type.
enum class CollectiveSource : std::uint8_t { profiler_plugin, interposed_call, nvtx_range };

struct CollectiveRecord {
  RecordHeader header{RecordKind::collective, sizeof(CollectiveRecord)};
  std::uint64_t communicator = 0;
  // On `thread`: after the kernel's launch (profiler_plugin), or before it (the others).
  std::uint64_t time = 0;
  std::uint64_t sequence = 0;
  std::uint64_t count = 0;
  std::uint32_t thread = 0;
  std::int32_t peer = -1;  // of Send and Recv, in the communicator
  CollectiveSource source = CollectiveSource::profiler_plugin;
  std::uint8_t type = 255;    // ncclDataType_t (nccl.h); 255: not known
  std::uint8_t channels = 0;  // 0: not known
  std::uint8_t spare = 0;
  char function[20] = {};   // "AllReduce", "Send"
  char algorithm[16] = {};  // "RING"; empty: not known
  char protocol[8] = {};    // "LL128"
};

// So many records were lost because buffers were full.
struct DroppedRecord {
  RecordHeader header{RecordKind::dropped, sizeof(DroppedRecord)};
  std::uint64_t records = 0;
};

// A kernel of the second pass, in the order of launches; without its name, which follows, records would need a table.
struct CountersRecord {
  RecordHeader header{RecordKind::counters, 0};
  std::uint32_t device = 0;
  std::uint32_t length = 0;
  std::uint32_t grid[3] = {};
  std::uint32_t block[3] = {};
  std::uint32_t known = 0;  // bit i: values[i] was measured
  std::uint32_t spare = 0;
  std::uint64_t values[16] = {};  // by KernelCounter
};
static_assert(kKernelCounterCount <= 16);

// What a GPU moved from `start` to `end`, all that runs on it together.
struct TrafficRecord {
  RecordHeader header{RecordKind::traffic, sizeof(TrafficRecord)};
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint32_t device = 0;
  std::uint32_t known = 0;       // bit i: values[i] was measured
  std::uint64_t values[8] = {};  // by TrafficCounter
};
static_assert(kTrafficCounterCount <= 8);

// The process ended in order.
struct EndRecord {
  RecordHeader header{RecordKind::end, sizeof(EndRecord)};
  std::uint64_t time = 0;
};

template <class Record>
inline constexpr bool kIsRecord = std::is_trivially_copyable_v<Record>&& std::is_standard_layout_v<Record> &&
                                  sizeof(Record) % 8 == 0;
static_assert(kIsRecord<SessionRecord> && kIsRecord<TextRecord> && kIsRecord<NoteRecord> && kIsRecord<DeviceRecord> &&
              kIsRecord<ClockRecord> && kIsRecord<KernelRecord> && kIsRecord<CopyRecord> && kIsRecord<MemsetRecord> &&
              kIsRecord<CallRecord> && kIsRecord<SynchronizationRecord> && kIsRecord<EventRecord> &&
              kIsRecord<RangeRecord> && kIsRecord<GraphRecord> && kIsRecord<CommunicatorRecord> &&
              kIsRecord<CollectiveRecord> && kIsRecord<DroppedRecord> && kIsRecord<EndRecord> &&
              kIsRecord<CountersRecord> && kIsRecord<TrafficRecord>);

// NOLINTEND(modernize-avoid-c-arrays)

}  // namespace weft::capture
