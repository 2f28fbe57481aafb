// What a profiler of CUPTI tells of a process, in the form that importers of profiles share (traces/kineto_events.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/capture/record.h"
#include "traces/kineto_events.h"

namespace weft {

// A collective of NCCL, or several that one kernel runs together.
struct CapturedCollective {
  std::uint64_t communicator = 0;
  std::string function;     // NCCL's: "AllReduce"; of Send and Recv "SendRecv"
  std::uint64_t count = 0;  // as NCCL counts, summed
  bool in_bytes = false;    // the count; the type is not known
  std::uint8_t type = 255;  // ncclDataType_t
  std::int32_t peer = -1;   // of Send and Recv, when there is one only
  std::string algorithm, protocol;
  std::uint32_t channels = 0;
};

// What a profile has no place for, of one operation on the GPU.
struct CapturedDetail {
  const KinetoEvent* event = nullptr;
  std::uint64_t graph_node = 0;
  std::optional<CapturedCollective> collective;
};

// A communicator of NCCL in which a GPU of the process has a rank.
struct CapturedCommunicator {
  std::uint64_t id = 0;  // the same on all of its ranks
  std::uint32_t ranks = 0;
  std::uint32_t rank = 0;
  std::optional<std::int64_t> device;  // absent: the process has one only
};

struct CapturedProcess {
  std::optional<std::uint32_t> rank, world_size;  // as its launcher said
  KinetoFile profile;
  std::vector<CapturedDetail> details;                          // of NCCL's kernels and what graphs launched, by event
  std::vector<std::pair<std::uint64_t, std::uint64_t>> edges;   // of graphs' nodes
  std::vector<std::pair<std::uint64_t, std::uint64_t>> clones;  // a node, and the one that it is a copy of
  std::vector<CapturedCommunicator> communicators;
  std::vector<capture::TrafficRecord> traffic;  // of all its GPUs
  std::vector<std::string> notes;               // what was lost, and what the library told
};

// NVTX ranges become annotations, operators and modules by their names (docs/formats.md). Throws as CaptureFile does.
[[nodiscard]] CapturedProcess read_captured_process(const std::filesystem::path& file);

// Gives each kernel of NCCL what was asked of it: launches and collectives of a thread, in the order of its time.
void match_collectives_to_kernels(const std::vector<capture::CollectiveRecord>& collectives, CapturedProcess& process);

}  // namespace weft
