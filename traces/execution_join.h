// The operators of a profile with those of an execution trace of the same process.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "traces/execution_trace.h"
#include "traces/kineto_events.h"
#include "traces/kineto_host.h"
#include "traces/kineto_waits.h"

namespace weft {

class ExecutionJoin {
 public:
  // By the ids of record functions, if the names of most agree. Where they do not, since the two are of different
  // steps, by order: the operators that a thread of the execution trace has, each time a thread of the profile has the
  // same ones in a row. Operators take inputs and collectives from the execution trace where the profile has none; both
  // must outlive this. Throws InputError when nothing is found.
  ExecutionJoin(const ExecutionTrace& trace, KinetoFile& file);

  // nullptr: not in the execution trace.
  [[nodiscard]] const ExecutionNode* node(const KinetoEvent* op) const {
    const auto found = nodes_.find(op);
    return found == nodes_.end() ? nullptr : found->second;
  }
  [[nodiscard]] std::size_t joined() const { return nodes_.size(); }
  [[nodiscard]] std::size_t operators() const { return operators_; }

 private:
  bool join_by_id(const ExecutionTrace& trace, const std::vector<KinetoEvent*>& ops);
  void join_by_order(const ExecutionTrace& trace, std::vector<KinetoEvent*> ops);
  void complete(KinetoFile& file, KinetoEvent& op, const ExecutionNode& node);

  std::unordered_map<const KinetoEvent*, const ExecutionNode*> nodes_;
  std::size_t operators_ = 0;
};

// An operation waits for the last one on another stream that wrote a tensor which its operator reads, unless the
// recorded times contradict it.
void add_data_waits(const ExecutionJoin& join, const KinetoHost& host, std::int64_t tolerance,
                    std::vector<KinetoOp>& ops);

}  // namespace weft
