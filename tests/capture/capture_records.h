// A captured process, for tests: writes its records to a file as the injected library does.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "traces/capture/inject/record_file.h"
#include "traces/capture/record.h"

namespace weft::capture {

// Times in us after a moment in 2024.
inline constexpr std::uint64_t kTestStart = 1'700'000'000'000'000'000;
inline std::uint64_t at_us(double us) { return kTestStart + static_cast<std::uint64_t>(us * 1000); }

class TestProcess {
 public:
  explicit TestProcess(const std::filesystem::path& path, double clock_ahead_us = 0)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666)), ahead_(clock_ahead_us) {}

  RecordFile& file() { return file_; }

  void session(std::int32_t rank = -1, std::int32_t world = -1) {
    SessionRecord record;
    record.rank = rank;
    record.world_size = world;
    record.start = time(0);
    std::strcpy(record.host, "node1");
    file_.put(record);
    DeviceRecord device;
    device.name = file_.text("NVIDIA H100 80GB HBM3");
    device.compute_units = 132;
    device.memory_bytes = std::uint64_t{80} << 30;
    file_.put(device);
  }

  void call(const char* name, double start, double end, std::uint32_t correlation, std::uint32_t thread = 1) {
    CallRecord record;
    record.start = time(start);
    record.end = time(end);
    record.thread = thread;
    record.correlation = correlation;
    record.name = file_.text(name);
    file_.put(record);
  }

  void kernel(const char* name, double start, double end, std::uint32_t stream, std::uint32_t correlation,
              std::uint64_t graph_node = 0, std::uint32_t device = 0) {
    KernelRecord record;
    record.gpu = {time(start), time(end), graph_node, device, stream, correlation, file_.text(name)};
    for (std::uint32_t* shape : {record.grid, record.block}) shape[0] = shape[1] = shape[2] = 1;
    record.grid[0] = 64;
    record.block[0] = 256;
    record.registers_per_thread = 40;
    record.static_shared_bytes = 1024;
    record.dynamic_shared_bytes = 2048;
    file_.put(record);
  }

  // A launch with its kernel.
  void launch(const char* name, double call_start, double start, double end, std::uint32_t stream,
              std::uint32_t correlation, std::uint32_t thread = 1) {
    call("cudaLaunchKernel", call_start, call_start + 2, correlation, thread);
    kernel(name, start, end, stream, correlation);
  }

  void range(std::uint32_t number, const char* name, double start, double end, std::uint32_t thread = 1,
             const char* domain = "") {
    RangeRecord record;
    record.time = time(start);
    record.number = number;
    record.thread = thread;
    record.name = file_.text(name);
    record.domain = file_.text(domain);
    record.is_start = 1;
    file_.put(record);
    record.time = time(end);
    record.name = 0;
    record.is_start = 0;
    file_.put(record);
  }

  void event_record(std::uint64_t sync, std::uint32_t correlation, std::int32_t stream) {
    EventRecord record;
    record.event_sync = sync;
    record.correlation = correlation;
    record.stream = stream;
    file_.put(record);
  }

  void synchronization(std::uint64_t sync, std::uint32_t correlation, std::int32_t stream) {
    SynchronizationRecord record;
    record.event_sync = sync;
    record.correlation = correlation;
    record.stream = stream;
    file_.put(record);
  }

  void communicator(std::uint64_t id, std::uint32_t ranks, std::uint32_t rank) {
    CommunicatorRecord record;
    record.id = id;
    record.ranks = ranks;
    record.rank = rank;
    file_.put(record);
  }

  void collective(std::uint64_t communicator, const char* function, std::uint64_t count, double at,
                  CollectiveSource source = CollectiveSource::profiler_plugin, std::int32_t peer = -1,
                  std::uint32_t thread = 1) {
    CollectiveRecord record;
    record.communicator = communicator;
    record.time = time(at);
    record.count = count;
    record.thread = thread;
    record.peer = peer;
    record.source = source;
    record.type = 7;  // ncclFloat32
    record.channels = 12;
    std::strcpy(record.function, function);
    std::strcpy(record.algorithm, "RING");
    std::strcpy(record.protocol, "SIMPLE");
    file_.put(record);
  }

  void graph(RecordKind kind, std::uint64_t node, std::uint64_t other) {
    GraphRecord record;
    record.header.kind = kind;
    record.node = node;
    record.dependency = other;
    file_.put(record);
  }

  // With the grid and block of kernel(). `known`: as CountersRecord.
  void counters(std::string_view name, std::uint64_t hbm_read, std::uint32_t device, std::uint32_t known = 1) {
    CountersRecord record;
    record.device = device;
    record.length = static_cast<std::uint32_t>(name.size());
    for (std::uint32_t* shape : {record.grid, record.block}) shape[0] = shape[1] = shape[2] = 1;
    record.grid[0] = 64;
    record.block[0] = 256;
    record.known = hbm_read == 0 ? 0 : known;
    record.values[0] = hbm_read;
    std::vector<char> bytes(sizeof(record) + (name.size() + 7) / 8 * 8);
    record.header.bytes = static_cast<std::uint32_t>(bytes.size());
    std::memcpy(bytes.data(), &record, sizeof(record));
    std::memcpy(bytes.data() + sizeof(record), name.data(), name.size());
    file_.put_bytes(bytes.data(), bytes.size());
  }

  // HBM's reads and writes, or, by `known`, not.
  void traffic(double start, double end, std::uint64_t read, std::uint64_t written, std::uint32_t known = 3,
               std::uint32_t device = 0) {
    TrafficRecord record;
    record.start = time(start);
    record.end = time(end);
    record.device = device;
    record.known = known;
    record.values[0] = read;
    record.values[1] = written;
    file_.put(record);
  }

  void dropped(std::uint64_t records) {
    DroppedRecord record;
    record.records = records;
    file_.put(record);
  }

  void end() {
    EndRecord record;
    file_.put(record);
    file_.flush();
  }

 private:
  [[nodiscard]] std::uint64_t time(double us) const { return at_us(us + ahead_); }

  RecordFile file_;
  double ahead_;
};

}  // namespace weft::capture
