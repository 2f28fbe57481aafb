// Host and streams of one GPU: the host issues a program's operations one after another, streams run them in order,
// event waits hold them back. It only keeps the books; the GPU moves time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu_model/clock_domain.h"
#include "gpu_model/gpu_spec.h"

namespace weft {

struct OpTimes {
  SubCycle called = -1;    // the host began to issue it
  SubCycle unblocked = 0;  // the last operation it waited for ended
  SubCycle start = -1;
  SubCycle end = -1;
};

class Frontend {
 public:
  // GPUs of one process share a host thread that issues their collectives one after another.
  Frontend(const Program& program, const LaunchSpec& launch, const HostSpec& host, const ClockDomain& clock);

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

  // The op has reached the device. True when nothing else holds it back.
  bool arrived(OpId op);
  // The op has ended: appends to `ready` what may start now. True when the host goes on, which waited for it.
  bool completed(OpId op, SubCycle now, std::vector<OpId>& ready);

  [[nodiscard]] bool done() const { return left_ == 0 && next_ == program_->ops.size(); }
  [[nodiscard]] const Program& program() const { return *program_; }
  [[nodiscard]] OpTimes& times(OpId op) { return times_[op.value]; }
  [[nodiscard]] const std::vector<OpTimes>& all_times() const { return times_; }

 private:
  [[nodiscard]] SubCycle issue_time(const ProgramOp& op) const;
  [[nodiscard]] SubCycle delay_before(std::size_t op) const;
  [[nodiscard]] bool waits_done(const ProgramOp& op) const;

  const Program* program_;
  SubCycle host_issue_;
  SubCycle collective_issue_;
  SubCycle host_to_device_;
  bool cuda_graph_;
  ClockDomain clock_;
  std::vector<std::uint32_t> missing_;
  std::vector<std::uint32_t> first_dependent_;  // by op, into dependents_
  std::vector<OpId> dependents_;
  std::vector<OpTimes> times_;
  std::size_t next_ = 0;  // the op the host issues next
  std::size_t left_ = 0;  // device ops that have not ended
  bool host_waits_ = false;
};

}  // namespace weft
