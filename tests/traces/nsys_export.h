// An export of Nsight Systems, for tests: a database with the tables of its schema (version 3.28, of 2026.4), each made
// when its first row comes. Column names as NVIDIA documents them; columns that nothing here reads are left out but one
// a table.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft::testing {

class NsysExport {
 public:
  static constexpr std::int64_t kProcess = 4242LL << 24;  // a globalPid

  // `epoch_ns`: when the recording began, since 1970.
  explicit NsysExport(const std::filesystem::path& path, std::int64_t epoch_ns = 1'700'000'000'000'000'000) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &database_), SQLITE_OK);
    sql("PRAGMA synchronous = OFF");
    sql("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)");
    row("TARGET_INFO_SESSION_START_TIME", "utcEpochNs, utcTime", fmt::format("{}, 'then'", epoch_ns));
  }
  ~NsysExport() { sqlite3_close(database_); }
  NsysExport(const NsysExport&) = delete;
  NsysExport& operator=(const NsysExport&) = delete;

  void sql(const std::string& statement) {
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(database_, statement.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << statement << ": " << (message != nullptr ? message : "");
    sqlite3_free(message);
  }

  // A row, and before the first one its table.
  void row(const std::string& table, const std::string& columns, const std::string& values) {
    if (tables_.emplace(table, true).second) sql(fmt::format("CREATE TABLE {} ({})", table, columns));
    sql(fmt::format("INSERT INTO {} VALUES ({})", table, values));
  }

  std::int64_t string(const std::string& value) {
    const auto [found, added] = strings_.emplace(value, static_cast<std::int64_t>(strings_.size()) + 1);
    if (added) sql(fmt::format("INSERT INTO StringIds VALUES ({}, '{}')", found->second, value));
    return found->second;
  }

  void gpu(std::int64_t id, const std::string& name) {
    row("TARGET_INFO_GPU", "vmId, id, name, totalMemory, smCount, uuid",
        fmt::format("0, {}, '{}', {}, 132, NULL", id, name, std::int64_t{80} << 30));
  }

  // Times in us.
  void call(const std::string& name, double start, double end, std::int64_t correlation, std::int64_t thread = 1) {
    row("CUPTI_ACTIVITY_KIND_RUNTIME", "start, end, eventClass, globalTid, correlationId, nameId, returnValue",
        fmt::format("{}, {}, 0, {}, {}, {}, 0", ns(start), ns(end), process + thread, correlation, string(name)));
  }
  void kernel(const std::string& name, double start, double end, std::int64_t stream, std::int64_t correlation,
              const std::string& graph_node = "NULL") {
    row("CUPTI_ACTIVITY_KIND_KERNEL",
        "start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName, shortName, "
        "registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory, "
        "graphNodeId, columnOfTomorrow",
        fmt::format("{}, {}, {}, 1, {}, {}, {}, {}, {}, 40, 64, 2, 1, 256, 1, 1, 1024, 2048, {}, 'x'", ns(start),
                    ns(end), device, stream, correlation, process, string(name), string("short"), graph_node));
  }
  void launch(const std::string& name, double call_start, double start, double end, std::int64_t stream,
              std::int64_t correlation, std::int64_t thread = 1) {
    call("cudaLaunchKernel_v7000", call_start, call_start + 2, correlation, thread);
    kernel(name, start, end, stream, correlation);
  }
  void thread(const std::string& name, std::int64_t thread) {
    row("ThreadNames", "nameId, priority, globalTid", fmt::format("{}, 20, {}", string(name), process + thread));
  }
  void synchronization(int type, std::int64_t correlation, std::int64_t stream, const std::string& event_sync) {
    row("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        "start, end, deviceId, streamId, correlationId, globalPid, syncType, eventId, eventSyncId",
        fmt::format("0, 0, {}, {}, {}, {}, {}, 9, {}", device, stream, correlation, process, type, event_sync));
  }
  void event_record(std::int64_t correlation, std::int64_t stream, const std::string& event_sync) {
    row("CUPTI_ACTIVITY_KIND_CUDA_EVENT", "deviceId, streamId, correlationId, globalPid, eventId, eventSyncId",
        fmt::format("{}, {}, {}, {}, 9, {}", device, stream, correlation, process, event_sync));
  }

  // A push and pop.
  void range(const std::string& text, double start, double end, std::int64_t thread = 1) {
    nvtx(59, fmt::format("{}, '{}', NULL", ns(end), text), start, thread, 0, "NULL");
  }
  // A registered string.
  void registered_range(const std::string& text, double start, const std::string& end_ns, std::int64_t domain = 0,
                        const std::string& payload = "NULL", std::int64_t thread = 1) {
    nvtx(59, fmt::format("{}, NULL, {}", end_ns, string(text)), start, thread, domain, payload);
  }

  static constexpr std::int64_t kNcclDomain = 3;
  static constexpr std::int64_t kCollective = 1 << 24, kInit = (1 << 24) + 1;  // schemas

  // What NCCL registers when a process uses it.
  void nccl() {
    nvtx(75, "NULL, 'NCCL', NULL", 0, 1, kNcclDomain, "NULL");
    const auto entry = [&](std::int64_t schema, int index, int type, const char* name, const char* offset) {
      row("NVTX_PAYLOAD_SCHEMA_ENTRIES", "domainId, schemaId, idx, flags, type, name, offset",
          fmt::format("{}, {}, {}, NULL, {}, '{}', {}", kNcclDomain, schema, index, type, name, offset));
    };
    entry(kCollective, 0, 18, "NCCL communicator ID", "NULL");
    entry(kCollective, 1, 22, "Message size [bytes]", "8");
    entry(kCollective, 2, 5, "Peer rank", "16");
    entry(kInit, 0, 18, "NCCL communicator ID", "NULL");
    entry(kInit, 1, 5, "No. of ranks", "8");
    entry(kInit, 2, 5, "Rank", "12");
    entry(kInit, 3, 5, "CUDA device", "16");
  }
  void communicator(std::uint64_t id, std::uint32_t ranks, std::uint32_t rank, std::uint32_t cuda_device = 0) {
    registered_range("ncclCommInitRank", 0, "1", kNcclDomain,
                     payload(kInit, bytes(id) + bytes(ranks) + bytes(rank) + bytes(cuda_device)));
  }
  void collective(const std::string& call, double start, double end, std::uint64_t communicator, std::uint64_t size,
                  std::uint32_t peer = 0, std::int64_t thread = 1) {
    registered_range(call, start, std::to_string(ns(end)), kNcclDomain,
                     payload(kCollective, bytes(communicator) + bytes(size) + bytes(peer)), thread);
  }

  template <class Number>
  static std::string bytes(Number number) {
    std::string out(sizeof(number), '\0');
    std::memcpy(out.data(), &number, sizeof(number));
    return out;
  }
  // As SQL: the header, then the payload.
  static std::string payload(std::int64_t schema, const std::string& data) {
    const std::string all =
        bytes(kNcclDomain) + bytes(schema) + bytes(std::uint64_t{data.size()}) + bytes(std::uint64_t{32}) + data;
    std::string hex = "x'";
    for (const char c : all) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return hex + "'";
  }

  // Of what is added next.
  std::int64_t process = kProcess;
  std::int64_t device = 0;

 private:
  static std::int64_t ns(double us) { return static_cast<std::int64_t>(us * 1000); }

  void nvtx(int type, const std::string& end_text_id, double start, std::int64_t thread, std::int64_t domain,
            const std::string& payload) {
    row("NVTX_EVENTS", "start, eventType, globalTid, domainId, rangeId, end, text, textId, binaryData",
        fmt::format("{}, {}, {}, {}, NULL, {}, {}", ns(start), type, process + thread, domain, end_text_id, payload));
  }

  sqlite3* database_ = nullptr;
  std::map<std::string, bool> tables_;
  std::map<std::string, std::int64_t> strings_;
};

}  // namespace weft::testing
