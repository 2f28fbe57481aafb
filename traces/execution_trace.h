// An execution trace of PyTorch (ExecutionTraceObserver): operators with their inputs, outputs and process groups, and
// no times. Schemas 1.0.x (flat) and 1.0.2-chakra to 1.1.x
// (torch/csrc/profiler/standalone/execution_trace_observer.cpp).
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traces/interned.h"
#include "traces/kineto_events.h"
#include "traces/operator_call.h"

namespace weft {

struct ExecutionNode {
  std::int64_t record_function = 0;  // "rf_id", in the order in which operators began; above 0
  std::int64_t thread = 0;           // 1, 2, ... as they were seen
  std::string_view name;
  const OperatorInputs* inputs = nullptr;
  std::vector<std::int64_t> reads, writes;       // storages of its tensors
  const KinetoCollective* collective = nullptr;  // of a record_param_comms that communicates
};

struct ExecutionTrace {
  std::string name;
  std::int64_t process = -1;         // "pid"; -1: not recorded
  std::vector<ExecutionNode> nodes;  // ascending by record function
  // What nodes point to.
  InternedText texts;
  std::set<OperatorInputs> inputs;
  std::deque<KinetoCollective> collectives;
};

// The document has "nodes" and no "traceEvents", at its top level. Throws MissingInput and InputError (no JSON).
[[nodiscard]] bool is_execution_trace(const std::filesystem::path& file);

// Reads the file as a stream. Throws MissingInput and InputError: no JSON, no execution trace, a node twice.
[[nodiscard]] ExecutionTrace read_execution_trace(const std::filesystem::path& file);

}  // namespace weft
