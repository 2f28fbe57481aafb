// The events of one Kineto file (PyTorch profiler, Chrome trace format) that weft uses, as they stand in the file.
// Old and new forms alike: events in a top-level list or under "traceEvents"; times in whole microseconds, or in
// fractions of them relative to "baseTimeNanoseconds"; NVIDIA and AMD. Times here are nanoseconds of the file's clock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/program.h"
#include "traces/operator_call.h"

namespace weft {

enum class KinetoCategory { kernel, copy, memset, runtime, synchronization, cpu_operator, annotation, module };

// What "args" tell of a collective: on the kernel in new files, on record_param_comms and "nccl:..." in others.
struct KinetoCollective {
  std::string name;                                      // "Collective name"
  std::optional<std::int64_t> elements;                  // "In msg nelems", or the product of "Input Dims"
  std::string type;                                      // "dtype" or "Input type"
  std::optional<std::int64_t> group_size;                // "Group size"
  std::optional<std::vector<std::int64_t>> group_ranks;  // "Process Group Ranks"; absent when abridged with "..."
  std::string group_name;                                // "Process Group Name"
};

struct KinetoEvent {
  KinetoCategory category = KinetoCategory::kernel;
  std::string name;
  std::size_t number = 0;  // in the file's list of events
  std::int64_t start = 0;
  std::int64_t duration = 0;
  std::int64_t thread = 0;        // of the host; meaningless on the GPU
  std::int64_t correlation = -1;  // joins a runtime call and the GPU operation it launched
  std::int64_t device = 0;
  std::int64_t stream = -1;
  std::int64_t bytes = 0;
  std::string copy_kind;            // AMD: "kind" of a copy
  std::int64_t sequence = -1;       // autograd's "Sequence number"
  std::int64_t waited_stream = -1;  // of a synchronization: the stream and the event record it waits for
  std::int64_t waited_record = -1;  // correlation of that cudaEventRecord
  std::optional<LaunchShape> shape;
  std::optional<KinetoCollective> collective;
  std::vector<OperatorInput> inputs;  // of an operator, where sizes were recorded

  [[nodiscard]] std::int64_t end() const { return start + duration; }
};

struct KinetoDevice {
  std::int64_t id = 0;
  std::string name;
  std::uint32_t compute_units = 0;
  std::int64_t memory_bytes = 0;
};

struct KinetoFile {
  std::string name;
  std::vector<KinetoEvent> events;  // in file order
  std::vector<KinetoDevice> devices;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> world_size;
  std::int64_t clock_tolerance = 0;  // ns by which two times may be misordered: 2 us where the file has whole us
};

// Throws MissingInput or InputError (no gzip, no JSON, no Kineto trace, negative times, no GPU operation).
[[nodiscard]] KinetoFile read_kineto(const std::filesystem::path& file);

}  // namespace weft
