#include "traces/capture/captured_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>

#include "traces/capture/capture_file.h"
#include "traces/capture/nvtx_range.h"
#include "traces/kineto_names.h"

namespace weft {

using capture::RecordKind;

namespace {

// Later times are damage: 2262 is beyond what nanoseconds in 63 bits can name.
constexpr std::uint64_t kLatest = std::uint64_t{1} << 62;
constexpr std::int64_t kClockTolerance = 1000;  // ns: CUPTI fits the GPU's clock to the host's; UNSOURCED

class ProcessReader {
 public:
  explicit ProcessReader(const std::filesystem::path& path) : file_(path) {}

  CapturedProcess read() {
    out_.profile.name = file_.name();
    out_.profile.clock_tolerance = kClockTolerance;
    while (file_.next()) read_record();
    close_ranges();
    join_synchronizations();
    spread_annotations();
    match_collectives_to_kernels(collectives_, out_);
    if (!file_.damage().empty()) out_.notes.push_back(file_.damage());
    if (dropped_ > 0) out_.notes.push_back(fmt::format("{} records were dropped: the buffers were full", dropped_));
    if (impossible_ > 0) out_.notes.push_back(fmt::format("{} records with impossible times", impossible_));
    return std::move(out_);
  }

 private:
  struct OpenRange {
    std::uint64_t start;
    std::uint32_t thread;
    std::string_view name;
  };

  void read_record() {
    switch (file_.kind()) {
      case RecordKind::session:
        return read_session(file_.as<capture::SessionRecord>());
      case RecordKind::note:
        return add_note(file_.note());
      case RecordKind::device:
        return read_device(file_.as<capture::DeviceRecord>());
      case RecordKind::kernel:
        return read_kernel(file_.as<capture::KernelRecord>());
      case RecordKind::copy:
        return read_copy(file_.as<capture::CopyRecord>());
      case RecordKind::memset:
        return read_memset(file_.as<capture::MemsetRecord>());
      case RecordKind::call:
        return read_call(file_.as<capture::CallRecord>());
      case RecordKind::synchronization: {
        const auto record = file_.as<capture::SynchronizationRecord>();
        synchronizations_.push_back(record);
        return;
      }
      case RecordKind::event_record: {
        const auto record = file_.as<capture::EventRecord>();
        if (record.event_sync != 0) event_records_[record.event_sync] = {record.correlation, record.stream};
        return;
      }
      case RecordKind::range:
        return read_range(file_.as<capture::RangeRecord>());
      case RecordKind::graph_edge:
      case RecordKind::graph_clone: {
        const auto record = file_.as<capture::GraphRecord>();
        auto& list = file_.kind() == RecordKind::graph_edge ? out_.edges : out_.clones;
        list.emplace_back(record.node, record.dependency);
        return;
      }
      case RecordKind::communicator:
        out_.communicators.push_back(file_.as<capture::CommunicatorRecord>());
        return;
      case RecordKind::collective:
        collectives_.push_back(file_.as<capture::CollectiveRecord>());
        return;
      case RecordKind::dropped:
        dropped_ += file_.as<capture::DroppedRecord>().records;
        return;
      default:  // clocks, which a trace has no place for, and what newer libraries write
        return;
    }
  }

  void read_session(const capture::SessionRecord& record) {
    out_.host.assign(record.host, strnlen(record.host, sizeof(record.host)));
    out_.process = record.process;
    if (record.rank < 0 || record.world_size <= record.rank || record.world_size > kMaxWorld) return;
    out_.rank = static_cast<std::uint32_t>(record.rank);
    out_.world_size = static_cast<std::uint32_t>(record.world_size);
  }

  void add_note(std::string note) {
    constexpr std::size_t kMostNotes = 20;
    if (!note.empty() && out_.notes.size() < kMostNotes) out_.notes.push_back(std::move(note));
  }

  void read_device(const capture::DeviceRecord& record) {
    KinetoDevice device;
    device.id = record.device;
    device.name = file_.text(record.name);
    device.compute_units = std::min(record.compute_units, std::uint32_t{1} << 20);
    device.memory_bytes = static_cast<std::int64_t>(std::min(record.memory_bytes, kLatest));
    const auto same = [&](const KinetoDevice& d) { return d.id == device.id; };
    if (std::none_of(out_.profile.devices.begin(), out_.profile.devices.end(), same))
      out_.profile.devices.push_back(std::move(device));
  }

  bool possible(std::uint64_t start, std::uint64_t end) {
    if (start <= end && end < kLatest) return true;
    ++impossible_;
    return false;
  }

  KinetoEvent& add(KinetoCategory category, std::string_view name, std::uint64_t start, std::uint64_t end) {
    KinetoEvent& event = out_.profile.events.emplace_back();
    event.category = category;
    event.name = out_.profile.texts(name);
    event.number = out_.profile.events.size() - 1;
    event.start = static_cast<std::int64_t>(start);
    event.duration = static_cast<std::int64_t>(end - start);
    last_ = std::max(last_, end);
    return event;
  }

  KinetoEvent& add_gpu(KinetoCategory category, std::string_view name, const capture::GpuTimes& gpu) {
    KinetoEvent& event = add(category, name, gpu.start, gpu.end);
    event.device = gpu.device;
    event.stream = static_cast<std::int32_t>(gpu.stream & 0x7fffffff);
    event.correlation = gpu.correlation;
    if (gpu.graph_node != 0 || (category == KinetoCategory::kernel && is_collective_kernel(event.name)))
      out_.details.push_back({&event, gpu.graph_node, std::nullopt});
    return event;
  }

  void read_kernel(const capture::KernelRecord& record) {
    if (!possible(record.gpu.start, record.gpu.end)) return;
    KinetoEvent& event = add_gpu(KinetoCategory::kernel, file_.text(record.gpu.name), record.gpu);
    LaunchShape shape;
    double threads = 1, blocks = 1;
    for (std::size_t i = 0; i < 3; ++i) {
      blocks *= shape.grid[i] = record.grid[i];
      threads *= shape.block[i] = record.block[i];
    }
    if (threads < 1 || threads > 1024 || blocks < 1 || blocks > 0x1p40) return;
    shape.registers_per_thread = record.registers_per_thread;
    shape.shared_memory_bytes = record.static_shared_bytes + record.dynamic_shared_bytes;
    const LaunchShape*& known =
        shapes_[{shape.grid, shape.block, {shape.registers_per_thread, shape.shared_memory_bytes}}];
    if (known == nullptr) known = &out_.profile.shapes.emplace_back(shape);
    event.shape = known;
  }

  // Names as profilers of PyTorch have them: importers tell directions and pageable memory by them.
  void read_copy(const capture::CopyRecord& record) {
    if (!possible(record.gpu.start, record.gpu.end)) return;
    constexpr std::array<const char*, 5> kDirections{"", "HtoD", "DtoH", "DtoD", "PtoP"};
    constexpr std::array<const char*, 4> kMemories{"Unknown", "Pageable", "Pinned", "Device"};
    const auto word = [](const auto& words, auto value) {
      const auto index = static_cast<std::size_t>(value);
      return words[index < words.size() ? index : 0];
    };
    KinetoEvent& event = add_gpu(KinetoCategory::copy,
                                 fmt::format("Memcpy {} ({} -> {})", word(kDirections, record.kind),
                                             word(kMemories, record.from), word(kMemories, record.to)),
                                 record.gpu);
    event.bytes = static_cast<std::int64_t>(std::min(record.bytes, kLatest));
  }

  void read_memset(const capture::MemsetRecord& record) {
    if (!possible(record.gpu.start, record.gpu.end)) return;
    KinetoEvent& event = add_gpu(KinetoCategory::memset, "Memset (Device)", record.gpu);
    event.bytes = static_cast<std::int64_t>(std::min(record.bytes, kLatest));
  }

  void read_call(const capture::CallRecord& record) {
    if (!possible(record.start, record.end)) return;
    KinetoEvent& event = add(KinetoCategory::runtime, file_.text(record.name), record.start, record.end);
    event.thread = record.thread;
    event.correlation = record.correlation;
  }

  void read_range(const capture::RangeRecord& record) {
    if (record.is_start != 0) {
      open_[record.number] = {record.time, record.thread, out_.profile.texts(file_.text(record.name))};
      return;
    }
    const auto open = open_.find(record.number);
    if (open == open_.end()) return;
    add_range(open->second, record.time);
    open_.erase(open);
  }

  void add_range(const OpenRange& open, std::uint64_t end) {
    if (!possible(open.start, end)) return;
    const NvtxRange range = nvtx_range(open.name);
    KinetoEvent& event = add(range.category, range.name, open.start, end);
    event.thread = open.thread;
    event.sequence = range.sequence;
    if (range.category == KinetoCategory::annotation) annotations_.push_back(&event);
  }

  // What was open when the recording ended lasted until then.
  void close_ranges() {
    const std::map<std::uint32_t, OpenRange> left(open_.begin(), open_.end());
    for (const auto& [number, range] : left) add_range(range, std::max(last_, range.start));
  }

  void join_synchronizations() {
    for (const capture::SynchronizationRecord& record : synchronizations_) {
      KinetoEvent& event = add(KinetoCategory::synchronization, "", 0, 0);
      event.start = static_cast<std::int64_t>(last_);  // not earlier than the file's first
      event.correlation = record.correlation;
      event.stream = record.stream;
      const auto waited = event_records_.find(record.event_sync);
      if (record.event_sync == 0 || waited == event_records_.end()) continue;
      event.waited_record = waited->second.first;
      event.waited_stream = waited->second.second;
    }
  }

  // A range belongs to its thread, but a phase to all that works for it: autograd's threads launch the backward pass
  // while the one that marked it waits. Threads that mark nothing themselves take the annotations of the one that marks
  // most.
  void spread_annotations() {
    std::map<std::int64_t, std::size_t> marks;
    std::set<std::int64_t> callers;
    for (const KinetoEvent& event : out_.profile.events) {
      if (event.category == KinetoCategory::runtime) callers.insert(event.thread);
      if (event.category == KinetoCategory::annotation || event.category == KinetoCategory::cpu_operator)
        ++marks[event.thread];
    }
    if (annotations_.empty()) return;
    std::map<std::int64_t, std::size_t> annotated;
    for (const KinetoEvent* event : annotations_) ++annotated[event->thread];
    const auto most = std::max_element(annotated.begin(), annotated.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    for (const std::int64_t thread : callers) {
      if (marks.contains(thread)) continue;
      for (const KinetoEvent* marked : annotations_) {
        if (marked->thread != most->first || marked->name.starts_with("ProfilerStep#")) continue;
        KinetoEvent copy = *marked;
        copy.thread = thread;
        copy.number = out_.profile.events.size();
        out_.profile.events.push_back(copy);
      }
    }
  }

  CaptureFile file_;
  CapturedProcess out_;
  std::uint64_t last_ = 0, dropped_ = 0, impossible_ = 0;
  std::map<std::tuple<std::array<std::uint32_t, 3>, std::array<std::uint32_t, 3>, std::array<std::uint32_t, 2>>,
           const LaunchShape*>
      shapes_;
  std::unordered_map<std::uint32_t, OpenRange> open_;
  std::vector<const KinetoEvent*> annotations_;
  std::vector<capture::SynchronizationRecord> synchronizations_;
  std::unordered_map<std::uint64_t, std::pair<std::uint32_t, std::int32_t>> event_records_;
  std::vector<capture::CollectiveRecord> collectives_;
};

}  // namespace

CapturedProcess read_captured_process(const std::filesystem::path& file) { return ProcessReader(file).read(); }

}  // namespace weft
