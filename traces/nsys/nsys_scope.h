// Which rows of an export belong to one process, and its times.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

#include "traces/nsys/nsys_database.h"

namespace weft {

struct NsysScope {
  // A globalTid is a globalPid plus the thread's number below this, a globalPid the process's times it, and the
  // machine's above.
  static constexpr std::int64_t kThreads = 1 << 24;

  const NsysDatabase& database;
  std::optional<std::int64_t> process;  // globalPid; absent: all is of one
  std::uint64_t epoch = 0;              // of the export's times, in ns since 1970; 0: not known

  // Conditions for NsysDatabase::rows; empty where all rows count.
  [[nodiscard]] std::string by_process(const char* table) const {
    return process && database.has(table, "globalPid") ? fmt::format("globalPid = {}", *process) : "";
  }
  [[nodiscard]] std::string by_thread(const char* table) const {
    if (!process || !database.has(table, "globalTid")) return "";
    return fmt::format("globalTid / {} = {}", kThreads, *process / kThreads);
  }

  [[nodiscard]] std::int64_t process_id() const { return process.value_or(0) / kThreads % kThreads; }
  [[nodiscard]] static std::uint32_t thread(std::int64_t global_tid) {
    return static_cast<std::uint32_t>(global_tid & (kThreads - 1));
  }
  [[nodiscard]] std::uint64_t time(std::int64_t ns) const { return static_cast<std::uint64_t>(ns) + epoch; }
};

}  // namespace weft
