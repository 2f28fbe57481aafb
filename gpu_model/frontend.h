// Host and streams of one GPU: the host issues a program's operations one after another, streams run them in order,
// event waits hold them back. It only keeps the books; the GPU moves time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gpu_model/clock_domain.h"
#include "gpu_model/gpu_spec.h"

namespace weft {

struct OpTimes {
  SubCycle called = -1;    // the host began to issue it
  SubCycle unblocked = 0;  // the last operation it waited for ended
  SubCycle start = -1;
  SubCycle end = -1;
  SubCycle placed = -1;  // its first block got a unit; -1: not known, blocks are not simulated one by one

  // What profilers call its start: a kernel whose blocks all wait behind an earlier kernel's has not begun. In
  // hta_v100_rank1of2 small kernels of a second stream begin where a large one of 0.6 to 8.5 ms has few blocks left,
  // and then last as long as alone.
  [[nodiscard]] SubCycle began() const { return std::max(start, placed); }
};

// How far a program is at a moment at which nothing runs: all operations before `first` have ended, and those between
// it and `end` but for the ones of its own stream, which all wait behind it. Both the same: none after has ended.
struct ProgramPlace {
  std::uint32_t first = 0, end = 0;
  bool operator==(const ProgramPlace&) const = default;
};

// A program in the middle. Times from that moment on.
struct HostState {
  OpId first;
  std::uint32_t issued = 0;        // the host has issued the operations before this one
  std::vector<SubCycle> arrivals;  // on the device, of those from `first` to `issued`; 0 where they have arrived
  std::optional<SubCycle> next_step;
  std::uint32_t end = 0;  // as ProgramPlace's; before `first`: the same
  bool operator==(const HostState&) const = default;
};

// Whether the operation had ended before.
[[nodiscard]] inline bool had_ended(const Program& program, const HostState& from, std::uint32_t op) {
  return op < from.first.value || (op < from.end && (program.ops[op].kind == ProgramOpKind::host_wait ||
                                                     program.ops[op].stream != program.ops[from.first.value].stream));
}

// Operations that are as those of the `period` that begins at `like`, over and over: `count` of them from `first` on.
struct RepeatedOps {
  OpId first;
  std::uint32_t count = 0;
  OpId like;
  std::uint32_t period = 1;
  [[nodiscard]] bool contains(OpId op) const { return op >= first && op.value < first.value + count; }
};

class Frontend {
 public:
  // GPUs of one process share a host thread that issues their collectives one after another. `from`: null, from the
  // beginning.
  Frontend(const Program& program, const LaunchSpec& launch, const HostSpec& host, const ClockDomain& clock,
           const HostState* from = nullptr);

  // What the host does next: it issues `op` so that it reaches the device at `arrives`, then comes back at `next_step`.
  // nullopt: it is at the end, or waits for operations; then completed() says when it goes on.
  struct Issue {
    std::optional<OpId> op;  // none: the host only passed a wait
    SubCycle arrives = 0;
    std::optional<SubCycle> next_step;
  };
  std::optional<Issue> step(SubCycle now);
  // The time of the first step; nullopt for an empty program.
  [[nodiscard]] std::optional<SubCycle> first_step() const;

  // It came to the device together with the op before it, in one graph.
  [[nodiscard]] bool follows_in_graph(OpId op) const;
  // The op behind it did.
  [[nodiscard]] bool goes_on_in_graph(OpId op) const;

  // The op has reached the device. True when nothing else holds it back.
  bool arrived(OpId op);
  // The op has ended: appends to `ready` what may start now. True when the host goes on, which waited for it.
  bool completed(OpId op, SubCycle now, std::vector<OpId>& ready);

  // They count as ended, each with the times of the one like it. Who would wait for one of them waits for the one
  // `count` before it. None has become ready yet; once a run of operations that repeat. The rest as of completed().
  bool leave_out(const RepeatedOps& ops, std::vector<OpId>& ready);
  // Nothing holds it back: it has begun, or is about to.
  [[nodiscard]] bool has_been_ready(OpId op) const { return missing_[op.value] == 0; }

  // How long the host takes until it issues an operation after the one before.
  [[nodiscard]] SubCycle delay_before(std::size_t op) const;
  // The operation that the host issues next, and whether it waits for others before.
  [[nodiscard]] std::uint32_t issued() const { return static_cast<std::uint32_t>(next_); }
  // What holds an operation back but for its own arrival.
  [[nodiscard]] bool waits_for_others(OpId op, bool has_arrived) const {
    return missing_[op.value] > (has_arrived ? 0U : 1U);
  }
  // All operations before this one have ended.
  [[nodiscard]] std::uint32_t first_open() const { return first_open_; }
  // None: those that have ended are no such place.
  [[nodiscard]] std::optional<ProgramPlace> place() const;

  [[nodiscard]] bool done() const { return left_ == 0 && next_ == program_->ops.size(); }
  [[nodiscard]] const Program& program() const { return *program_; }
  [[nodiscard]] OpTimes& times(OpId op) { return times_[op.value]; }
  [[nodiscard]] const std::vector<OpTimes>& all_times() const { return times_; }

 private:
  [[nodiscard]] SubCycle issue_time(const ProgramOp& op) const;
  [[nodiscard]] bool waits_done(const ProgramOp& op) const;
  // What the host waits for before it does so is over: operations, or a place in the stream's queue.
  [[nodiscard]] bool may_issue(std::size_t op) const;
  // Whether it takes a place there: of a graph, the first operation does.
  [[nodiscard]] bool is_launch(std::size_t op) const;

  const Program* program_;
  SubCycle host_issue_;
  SubCycle collective_issue_;
  SubCycle host_to_device_;
  bool cuda_graph_;
  std::uint32_t queue_depth_;
  ClockDomain clock_;
  std::vector<std::uint32_t> missing_;
  std::vector<std::uint32_t> first_dependent_;  // by op, into dependents_
  std::vector<OpId> dependents_;
  std::vector<OpTimes> times_;
  std::vector<std::uint32_t> queued_;  // by stream: launches that have not ended
  std::size_t next_ = 0;               // the op the host issues next
  std::size_t left_ = 0;               // device ops that have not ended
  bool host_waits_ = false;
  std::uint32_t first_open_ = 0;  // the first operation that has not ended
  std::uint32_t ended_to_ = 0;    // behind the last one that has
  std::uint32_t ended_ = 0;       // how many have, waits of the host among them
  std::vector<RepeatedOps> left_out_;
  std::vector<std::pair<OpId, OpId>> instead_;  // who waits for the first of these instead of one that is left out

  // Itself, or who is waited for instead.
  [[nodiscard]] OpId awaited(OpId op) const;
  void ended_before(OpId op, SubCycle now, std::vector<OpId>& ready);
  [[nodiscard]] bool host_goes_on();

  void note_end(std::uint32_t op);
};

}  // namespace weft
