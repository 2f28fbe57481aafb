#include "traces/capture/captured_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>

#include "traces/capture/capture_file.h"
#include "traces/capture/process_builder.h"

namespace weft {

using capture::RecordKind;

namespace {

class ProcessReader {
 public:
  explicit ProcessReader(const std::filesystem::path& path) : file_(path), builder_(file_.name()) {}

  CapturedProcess read() {
    while (file_.next()) read_record();
    close_ranges();
    std::vector<std::string>& notes = builder_.process().notes;
    if (!file_.damage().empty()) notes.push_back(file_.damage());
    if (dropped_ > 0) notes.push_back(fmt::format("{} records were dropped: the buffers were full", dropped_));
    return builder_.finish();
  }

 private:
  struct OpenRange {
    std::uint64_t start;
    std::uint32_t thread;
    bool of_library;
    std::string name;
  };

  void read_record() {
    switch (file_.kind()) {
      case RecordKind::session:
        return read_session(file_.as<capture::SessionRecord>());
      case RecordKind::note:
        return add_note(file_.note());
      case RecordKind::device: {
        const auto record = file_.as<capture::DeviceRecord>();
        return builder_.device(record, file_.text(record.name));
      }
      case RecordKind::kernel: {
        const auto record = file_.as<capture::KernelRecord>();
        return builder_.kernel(record, file_.text(record.gpu.name));
      }
      case RecordKind::copy:
        return builder_.copy(file_.as<capture::CopyRecord>());
      case RecordKind::memset:
        return builder_.memset(file_.as<capture::MemsetRecord>());
      case RecordKind::call: {
        const auto record = file_.as<capture::CallRecord>();
        return builder_.call(record, file_.text(record.name));
      }
      case RecordKind::synchronization:
        return builder_.synchronization(file_.as<capture::SynchronizationRecord>());
      case RecordKind::event_record:
        return builder_.event_record(file_.as<capture::EventRecord>());
      case RecordKind::range:
        return read_range(file_.as<capture::RangeRecord>());
      case RecordKind::graph_edge:
      case RecordKind::graph_clone: {
        const auto record = file_.as<capture::GraphRecord>();
        CapturedProcess& process = builder_.process();
        auto& list = file_.kind() == RecordKind::graph_edge ? process.edges : process.clones;
        list.emplace_back(record.node, record.dependency);
        return;
      }
      case RecordKind::communicator: {
        const auto record = file_.as<capture::CommunicatorRecord>();
        builder_.process().communicators.push_back({record.id, record.ranks, record.rank, std::nullopt});
        return;
      }
      case RecordKind::collective:
        return builder_.collective(file_.as<capture::CollectiveRecord>());
      case RecordKind::traffic:
        return builder_.traffic(file_.as<capture::TrafficRecord>());
      case RecordKind::dropped:
        dropped_ += file_.as<capture::DroppedRecord>().records;
        return;
      default:  // clocks, which a trace has no place for, and what newer libraries write
        return;
    }
  }

  void read_session(const capture::SessionRecord& record) {
    if (record.rank < 0 || record.world_size <= record.rank || record.world_size > kMaxWorld) return;
    builder_.process().rank = static_cast<std::uint32_t>(record.rank);
    builder_.process().world_size = static_cast<std::uint32_t>(record.world_size);
  }

  void add_note(std::string note) {
    constexpr std::size_t kMostNotes = 20;
    std::vector<std::string>& notes = builder_.process().notes;
    if (!note.empty() && notes.size() < kMostNotes) notes.push_back(std::move(note));
  }

  void read_range(const capture::RangeRecord& record) {
    if (record.is_start != 0) {
      open_[record.number] = {record.time, record.thread, !file_.text(record.domain).empty(),
                              std::string(file_.text(record.name))};
      return;
    }
    const auto open = open_.find(record.number);
    if (open == open_.end()) return;
    builder_.range(open->second.start, record.time, open->second.thread, open->second.name, open->second.of_library);
    open_.erase(open);
  }

  // What was open when the recording ended lasted until then.
  void close_ranges() {
    const std::map<std::uint32_t, OpenRange> left(open_.begin(), open_.end());
    for (const auto& [number, range] : left)
      builder_.range(range.start, std::max(builder_.last(), range.start), range.thread, range.name, range.of_library);
  }

  CaptureFile file_;
  ProcessBuilder builder_;
  std::uint64_t dropped_ = 0;
  std::unordered_map<std::uint32_t, OpenRange> open_;
};

}  // namespace

CapturedProcess read_captured_process(const std::filesystem::path& file) { return ProcessReader(file).read(); }

}  // namespace weft
