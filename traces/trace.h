// A recorded training run in memory, as weft's own trace format holds it (docs/formats.md): the GPU operations of each
// rank with their launches, waits and collectives. Times in femtoseconds from the start of the trace.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/program.h"
#include "traces/kernel_counters.h"
#include "traces/operator_call.h"
#include "traces/traffic_counter.h"

namespace weft {

enum class TraceOpKind { kernel, copy, memset, collective, host_wait };

struct TraceCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::optional<std::int64_t> elements;  // of the input; absent in old files
  std::optional<DataType> type;
  std::uint32_t group_size = 0;
  std::vector<std::uint32_t> group_ranks;
  std::string group_name;
  std::uint32_t distance = 1;  // of a shift: so many places on in the group is who gets it
  // The place in the group of who sends, of a send_receive; of a shift that does not go round, of who gets nothing.
  std::optional<std::uint32_t> first{};
  // How the library did it, where it was asked (weft capture); else empty and 0.
  std::string algorithm{};  // as NCCL names it: "RING", "NVLS"
  std::string protocol{};   // "SIMPLE"
  std::uint32_t channels = 0;
};

struct TraceOp {
  TraceOpKind kind = TraceOpKind::kernel;
  std::string name;
  std::string op;     // the operator that launched it, e.g. "aten::conv2d"; may be empty
  std::string layer;  // may be empty
  TrainingPhase phase = TrainingPhase::other;
  std::optional<std::uint32_t> iteration;  // absent: outside of every recorded iteration, e.g. left from before
  std::uint32_t stream = 0;                // 0 for host_wait
  std::int64_t correlation = -1;
  Time issued;          // start of the runtime call on the host; equal to start when unknown
  Time issue_duration;  // of that call
  Time start;           // on the GPU; of a host_wait: when the host began to wait
  Time duration;
  std::optional<LaunchShape> shape;
  Bytes bytes;                 // of copies and memsets
  std::string copy_direction;  // "DtoD", "HtoD", "DtoH", "PtoP"
  std::optional<TraceCollective> collective;
  std::shared_ptr<const OperatorCall> launched_by;  // innermost operator with recorded sizes of its inputs; or none
  std::shared_ptr<const KernelCounters> counters;   // of kernels; or none
  std::vector<std::uint32_t> waits;  // earlier ops of this rank that this one waits for (event waits), ascending
};

struct TraceIteration {
  std::string name;
  Time start;
  Time end;
};

// Bytes that a GPU moved, as columns: an entry for each span of time that was sampled.
struct TraceTraffic {
  std::vector<Time> start;  // ascending; spans do not overlap
  std::vector<Time> duration;
  std::array<std::vector<std::int64_t>, kTrafficCounterCount> bytes{};  // by TrafficCounter; empty: not measured

  [[nodiscard]] std::size_t size() const { return start.size(); }
  [[nodiscard]] const std::vector<std::int64_t>& operator[](TrafficCounter counter) const {
    return bytes[static_cast<std::size_t>(counter)];
  }
  bool operator==(const TraceTraffic&) const = default;
};

struct TraceRank {
  std::uint32_t rank = 0;
  std::string device;  // e.g. "NVIDIA A100-PG509-200"; empty when unknown
  std::uint32_t compute_units = 0;
  std::int64_t memory_bytes = 0;
  Time clock_moved;  // by which all of its times were moved against the others', whose clock was another (align_clocks)
  std::vector<TraceOp> ops;  // ordered by issue time, then start
  std::vector<TraceIteration> iterations;
  TraceTraffic traffic;  // of the GPU as a whole; empty where nothing sampled it
};

struct Trace {
  std::string source;
  std::uint32_t world_size = 1;
  std::vector<TraceRank> ranks;  // ascending by rank; not all of the world need be there
};

// Throws InputError, naming `source` and the op's place in weft's own format ("/ranks/0/ops/12"), unless: ranks are
// distinct and below world_size; ops are in order of issue and lie in existing iterations; times are not negative;
// waits point to earlier ops; counters are of kernels, from 0 to kMostCounted; spans of traffic are ascending, not
// empty and apart, with 0 to kMostCounted bytes in each column there is; collectives carry a group that exists and
// holds the rank; shapes are not empty.
void validate(const Trace& trace, const std::string& source);

}  // namespace weft
