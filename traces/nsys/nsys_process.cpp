#include "traces/nsys/nsys_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "traces/capture/process_builder.h"
#include "traces/kineto_names.h"
#include "traces/nsys/nsys_ranges.h"
#include "traces/nsys/nsys_scope.h"

namespace weft {
namespace {

using Kind = NsysColumn::Kind;

constexpr std::array<const char*, 4> kGpuTables{"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY",
                                                "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"};
constexpr std::uint32_t kMostDimension = std::numeric_limits<std::int32_t>::max();

// ENUM_CUDA_MEMCPY_OPER; 11 to 13 are those of unified memory.
capture::CopyKind copy_kind(std::int64_t id) {
  switch (id) {
    case 1:
    case 11:
      return capture::CopyKind::host_to_device;
    case 2:
    case 12:
      return capture::CopyKind::device_to_host;
    case 8:
    case 13:
      return capture::CopyKind::device_to_device;
    case 10:
      return capture::CopyKind::peer_to_peer;
    default:
      return capture::CopyKind::other;
  }
}

// ENUM_CUDA_MEM_KIND.
capture::MemoryKind memory_kind(const NsysRows& rows, int column) {
  constexpr std::array<capture::MemoryKind, 6> kKinds{capture::MemoryKind::pageable, capture::MemoryKind::pinned,
                                                      capture::MemoryKind::device,   capture::MemoryKind::other,
                                                      capture::MemoryKind::other,    capture::MemoryKind::device};
  const std::int64_t id = rows.has(column) ? rows.integer(column) : -1;
  return id >= 0 && id < std::int64_t{kKinds.size()} ? kKinds[static_cast<std::size_t>(id)]
                                                     : capture::MemoryKind::other;
}

// "cudaMemcpy_v3020", "cudaLaunchKernel_ptsz_v7000": the API's version and kind of default stream. A driver's _v2 is
// part of its name.
std::string call_name(std::string name) {
  if (!name.starts_with("cuda")) return name;
  const std::size_t version = name.rfind("_v");
  if (version != std::string::npos && name.find_first_not_of("0123456789", version + 2) == std::string::npos)
    name.resize(version);
  for (const std::string_view stream : {"_ptsz", "_ptds"})
    if (name.ends_with(stream)) name.resize(name.size() - stream.size());
  return name;
}

class ProcessReader {
 public:
  ProcessReader(const NsysDatabase& database, std::optional<std::int64_t> process)
      : database_(database), scope_{database, process}, builder_(database.name()) {
    NsysRows start = database.rows("TARGET_INFO_SESSION_START_TIME", {{"utcEpochNs", Kind::optional}});
    if (start.next()) scope_.epoch = static_cast<std::uint64_t>(start.integer(0));
  }

  CapturedProcess read() {
    read_devices();
    read_kernels();
    read_graphs();
    read_copies();
    read_memsets();
    read_calls();
    read_threads();
    read_synchronizations();
    if (!read_nsys_ranges(scope_, builder_) && collective_kernels_)
      builder_.process().notes.emplace_back(
          "collectives have no sizes: they stand in the payloads of NCCL's ranges (nsys profile --trace=cuda,nvtx, "
          "nsys export --include-blobs=true)");
    read_rank();
    return builder_.finish();
  }

 private:
  // -1: none.
  static std::int32_t stream(const NsysRows& rows, int column) {
    const std::int64_t id = rows.has(column) ? rows.integer(column) : -1;
    return id < 0 || id > std::numeric_limits<std::int32_t>::max() ? -1 : static_cast<std::int32_t>(id);
  }

  static constexpr std::array<NsysColumn, 6> kGpuColumns{{{"start"},
                                                          {"end"},
                                                          {"deviceId"},
                                                          {"streamId"},
                                                          {"correlationId", Kind::optional},
                                                          {"graphNodeId", Kind::optional}}};

  [[nodiscard]] NsysRows gpu_rows(const char* table, const std::vector<NsysColumn>& more) const {
    std::vector<NsysColumn> columns(kGpuColumns.begin(), kGpuColumns.end());
    columns.insert(columns.end(), more.begin(), more.end());
    return database_.rows(table, columns, scope_.by_process(table));
  }
  [[nodiscard]] capture::GpuTimes gpu_times(const NsysRows& rows) const {
    return {scope_.time(rows.integer(0)),
            scope_.time(rows.integer(1)),
            static_cast<std::uint64_t>(rows.integer(5)),
            rows.number(2),
            rows.number(3),
            rows.number(4),
            0};
  }

  void read_devices() {
    struct Gpu {
      std::string name;
      std::uint32_t units;
      std::uint64_t memory;
    };
    std::map<std::int64_t, Gpu> gpus;
    NsysRows rows = database_.rows(
        "TARGET_INFO_GPU",
        {{"id"}, {"name", Kind::optional}, {"smCount", Kind::optional}, {"totalMemory", Kind::optional}});
    while (rows.next())
      gpus[rows.integer(0)] = {rows.text(1), rows.number(2), static_cast<std::uint64_t>(rows.integer(3))};
    const auto add = [&](std::int64_t device, const Gpu& gpu) {
      capture::DeviceRecord record;
      record.device = static_cast<std::uint32_t>(device);
      record.compute_units = gpu.units;
      record.memory_bytes = gpu.memory;
      builder_.device(record, gpu.name);
    };
    // CUDA numbers a process's devices as CUDA_VISIBLE_DEVICES says.
    NsysRows cuda = database_.rows("TARGET_INFO_CUDA_DEVICE", {{"cudaId"}, {"gpuId", Kind::optional}, {"pid"}});
    while (cuda.next()) {
      const auto gpu = gpus.find(cuda.integer(1));
      if (gpu != gpus.end() && cuda.has(1) && (!scope_.process || cuda.integer(2) == scope_.process_id()))
        add(cuda.number(0), gpu->second);
    }
    for (const auto& [id, gpu] : gpus) add(id, gpu);
  }

  void read_kernels() {
    NsysRows rows = gpu_rows(kGpuTables[0], {{"demangledName", Kind::name},
                                             {"shortName", Kind::name},
                                             {"gridX"},
                                             {"gridY"},
                                             {"gridZ"},
                                             {"blockX"},
                                             {"blockY"},
                                             {"blockZ"},
                                             {"registersPerThread"},
                                             {"staticSharedMemory"},
                                             {"dynamicSharedMemory"}});
    while (rows.next()) {
      capture::KernelRecord record;
      record.gpu = gpu_times(rows);
      for (int i = 0; i < 3; ++i) {
        record.grid[i] = rows.number(8 + i, kMostDimension);
        record.block[i] = rows.number(11 + i, kMostDimension);
      }
      record.registers_per_thread = rows.number(14, kMostDimension);
      record.static_shared_bytes = rows.number(15, kMostDimension);
      record.dynamic_shared_bytes = rows.number(16, kMostDimension);
      const std::string name = rows.text(6);
      builder_.kernel(record, name.empty() ? rows.text(7) : name);
      collective_kernels_ = collective_kernels_ || is_collective_kernel(name);
    }
  }

  // Launches of CUDA graphs that were recorded whole.
  void read_graphs() {
    std::size_t launches = 0;
    NsysRows rows = gpu_rows(kGpuTables[3], {});
    for (; rows.next(); ++launches) {
      capture::KernelRecord record;
      record.gpu = gpu_times(rows);
      builder_.kernel(record, "CUDA graph");
    }
    if (launches > 0)
      builder_.process().notes.push_back(
          fmt::format("{} launches of CUDA graphs stand as one kernel each: nsys profile --cuda-graph-trace=node "
                      "records what is in them",
                      launches));
  }

  void read_copies() {
    NsysRows rows =
        gpu_rows(kGpuTables[1], {{"bytes"}, {"copyKind"}, {"srcKind", Kind::optional}, {"dstKind", Kind::optional}});
    while (rows.next()) {
      capture::CopyRecord record;
      record.gpu = gpu_times(rows);
      record.bytes = static_cast<std::uint64_t>(rows.integer(6));
      record.kind = copy_kind(rows.integer(7));
      record.from = memory_kind(rows, 8);
      record.to = memory_kind(rows, 9);
      builder_.copy(record);
    }
  }

  void read_memsets() {
    NsysRows rows = gpu_rows(kGpuTables[2], {{"bytes"}});
    while (rows.next()) {
      capture::MemsetRecord record;
      record.gpu = gpu_times(rows);
      record.bytes = static_cast<std::uint64_t>(rows.integer(6));
      builder_.memset(record);
    }
  }

  void read_calls() {
    constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
    NsysRows rows = database_.rows(
        kTable,
        {{"start"}, {"end"}, {"globalTid", Kind::optional}, {"correlationId", Kind::optional}, {"nameId", Kind::name}},
        scope_.by_thread(kTable));
    while (rows.next()) {
      capture::CallRecord record;
      record.start = scope_.time(rows.integer(0));
      record.end = scope_.time(rows.integer(1));
      record.thread = NsysScope::thread(rows.integer(2));
      record.correlation = rows.number(3);
      builder_.call(record, call_name(rows.text(4)));
    }
  }

  void read_threads() {
    constexpr const char* kTable = "ThreadNames";
    NsysRows rows = database_.rows(kTable, {{"globalTid"}, {"nameId", Kind::name}}, scope_.by_thread(kTable));
    while (rows.next()) builder_.thread(NsysScope::thread(rows.integer(0)), rows.text(1));
  }

  // eventSyncId joins a wait with the record of its event. Exports without leave waits of streams to be inferred.
  void read_synchronizations() {
    const std::vector<NsysColumn> columns{
        {"correlationId", Kind::optional}, {"streamId", Kind::optional}, {"eventSyncId", Kind::optional}};
    constexpr const char* kRecords = "CUPTI_ACTIVITY_KIND_CUDA_EVENT";
    NsysRows records = database_.rows(kRecords, columns, scope_.by_process(kRecords));
    while (records.next()) {
      capture::EventRecord record;
      record.correlation = records.number(0);
      record.stream = stream(records, 1);
      record.event_sync = static_cast<std::uint64_t>(records.integer(2));
      builder_.event_record(record);
    }
    constexpr const char* kWaits = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
    NsysRows waits = database_.rows(kWaits, columns, scope_.by_process(kWaits));
    while (waits.next()) {
      capture::SynchronizationRecord record;
      record.correlation = waits.number(0);
      record.stream = stream(waits, 1);
      record.event_sync = static_cast<std::uint64_t>(waits.integer(2));
      builder_.synchronization(record);
    }
  }

  // Where the program used MPI.
  void read_rank() {
    NsysRows rows = database_.rows("MPI_RANKS", {{"rank"}}, scope_.by_thread("MPI_RANKS"));
    if (rows.next() && rows.integer(0) >= 0 && rows.integer(0) < kMaxWorld)
      builder_.process().rank = static_cast<std::uint32_t>(rows.integer(0));
  }

  const NsysDatabase& database_;
  NsysScope scope_;
  ProcessBuilder builder_;
  bool collective_kernels_ = false;
};

}  // namespace

std::vector<std::optional<std::int64_t>> nsys_processes(const NsysDatabase& database) {
  std::set<std::optional<std::int64_t>> processes;
  for (const char* table : kGpuTables) {
    NsysRows rows = database.rows(table, {{"globalPid", Kind::optional}});
    while (rows.next()) processes.insert(rows.has(0) ? std::optional(rows.integer(0)) : std::nullopt);
  }
  if (processes.size() > 1) processes.erase(std::nullopt);
  return {processes.begin(), processes.end()};
}

CapturedProcess read_nsys_process(const NsysDatabase& database, std::optional<std::int64_t> process) {
  return ProcessReader(database, process).read();
}

}  // namespace weft
