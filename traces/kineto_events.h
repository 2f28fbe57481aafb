// The events of one Kineto file (PyTorch profiler, Chrome trace format) that weft uses, as they stand in the file.
// Old and new forms alike: events in a top-level list or under "traceEvents"; times in whole microseconds, or in
// fractions of them relative to "baseTimeNanoseconds"; NVIDIA and AMD. Times here are nanoseconds of the file's clock.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program.h"
#include "traces/interned.h"
#include "traces/operator_call.h"

namespace weft {

inline constexpr std::int64_t kMaxWorld = 1 << 24;  // ranks; more is a mistake

enum class KinetoCategory { kernel, copy, memset, runtime, synchronization, cpu_operator, annotation, module };

// What "args" tell of a collective: on the kernel in new files, on record_param_comms and "nccl:..." in others.
struct KinetoCollective {
  std::string name;                                      // "Collective name"
  std::optional<std::int64_t> elements;                  // "In msg nelems", or the product of "Input Dims"
  std::string type;                                      // "dtype" or "Input type"
  std::optional<std::int64_t> group_size;                // "Group size"
  std::optional<std::vector<std::int64_t>> group_ranks;  // "Process Group Ranks"; absent when abridged with "..."
  std::string group_name;                                // "Process Group Name"
  std::optional<std::int64_t> peer;                      // "Dst Rank" of a send, "Src Rank" of a receive
};

[[nodiscard]] inline bool is_gpu(KinetoCategory c) {
  return c == KinetoCategory::kernel || c == KinetoCategory::copy || c == KinetoCategory::memset;
}

// Millions of them are in memory at once: what they point to stands in their file, once for all that share it.
struct KinetoEvent {
  KinetoCategory category = KinetoCategory::kernel;
  std::int32_t stream = -1;
  std::string_view name;
  std::size_t number = 0;  // in the file's list of events
  std::int64_t start = 0;
  std::int64_t duration = 0;
  std::int64_t thread = 0;  // of the host; meaningless on the GPU
  // Joins a runtime call and the GPU operation it launched; of operators and annotations their record function.
  std::int64_t correlation = -1;
  std::int64_t device = 0;  // of the host: its process
  std::int64_t bytes = 0;
  std::string_view copy_kind;       // AMD: "kind" of a copy
  std::int64_t sequence = -1;       // autograd's "Sequence number"
  std::int64_t waited_record = -1;  // of a synchronization: correlation of the cudaEventRecord it waits for
  std::int32_t waited_stream = -1;  // and its stream
  const LaunchShape* shape = nullptr;
  const KinetoCollective* collective = nullptr;
  const OperatorInputs* inputs = nullptr;  // of an operator, where sizes were recorded

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
  std::deque<KinetoEvent> events;  // in file order
  std::vector<KinetoDevice> devices;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> world_size;
  std::set<std::int64_t> autograd_threads;  // by their names (is_autograd_thread)
  std::int64_t clock_tolerance = 0;         // ns by which two times may be misordered: 2 us where the file has whole us

  // What events point to.
  InternedText texts;
  ByText<OperatorInputs> inputs;
  std::deque<LaunchShape> shapes;
  std::deque<KinetoCollective> collectives;
};

// Reads the file as a stream: memory follows the events that are used, not the size of the file. Throws MissingInput or
// InputError (no gzip or zstd, no JSON, no Kineto trace, negative times, no GPU operation).
[[nodiscard]] KinetoFile read_kineto(const std::filesystem::path& file);

}  // namespace weft
