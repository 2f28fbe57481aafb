// What NCCL and this library have to agree on, in the binary sense: the parts of the profiler plugin's interface
// (versions 4 to 6, NCCL 2.27 to 2.29; NCCL's plugins/profiler/README.md) and of nccl.h that are used here. No package
// ships the former's header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::capture {

using NcclResult = int;  // 0: success
using NcclComm = void*;
using NcclStream = void*;
struct NcclUniqueId {
  char bytes[128];
};

inline constexpr std::uint64_t kProfileCollective = 1 << 1;
inline constexpr std::uint64_t kProfilePointToPoint = 1 << 2;

// Of versions 5 and 6. Version 4 has one byte for `type`; all that follows lies at the same places.
struct NcclEvent {
  union {
    std::uint64_t type;
    std::uint8_t type_v4;
  };
  void* parent;
  int rank;
  struct Collective {
    std::uint64_t sequence;
    const char* function;
    const void* send;
    void* receive;
    std::size_t count;
    int root;
    const char* type;
    std::uint8_t channels;
    std::uint8_t warps;
    const char* algorithm;
    const char* protocol;
  };
  struct PointToPoint {
    const char* function;
    void* buffer;
    const char* type;
    std::size_t count;
    int peer;
    std::uint8_t channels;
  };
  union {
    Collective collective;
    PointToPoint point_to_point;
  };
};
static_assert(offsetof(NcclEvent, collective) == 24 && sizeof(NcclEvent::Collective) == 80 &&
              sizeof(NcclEvent::PointToPoint) == 40);

using NcclInitV4 = NcclResult(void** context, int* wanted, const char* name, std::uint64_t id, int nodes, int ranks,
                              int rank, void (*log)());
using NcclInitV5 = NcclResult(void** context, std::uint64_t id, int* wanted, const char* name, int nodes, int ranks,
                              int rank, void (*log)());

template <class Init>
struct NcclProfiler {
  const char* name;
  Init* init;
  NcclResult (*start_event)(void* context, void** event, NcclEvent* description);
  NcclResult (*stop_event)(void* event);
  NcclResult (*record_event_state)(void* event, int state, void* arguments);
  NcclResult (*finalize)(void* context);
};

}  // namespace weft::capture
