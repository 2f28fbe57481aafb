// Records of communicators and collectives, from the profiler plugin or from interposed calls.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "traces/capture/inject/clock.h"
#include "traces/capture/inject/session.h"

namespace weft::capture {

// NCCL has called the plugin: interposed calls would tell the same again.
[[nodiscard]] bool plugin_is_active();

template <std::size_t n>
void copy_text(char (&to)[n], const char* from) {
  if (from != nullptr) std::strncpy(to, from, n - 1);
}

inline void record_communicator(Writer& writer, std::uint64_t id, int ranks, int rank, const char* name) {
  CommunicatorRecord record;
  record.id = id;
  record.ranks = static_cast<std::uint32_t>(ranks);
  record.rank = static_cast<std::uint32_t>(rank);
  copy_text(record.name, name);
  writer.put(record);
}

}  // namespace weft::capture
