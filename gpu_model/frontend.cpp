#include "gpu_model/frontend.h"

#include <algorithm>

#include "sim/error.h"

namespace weft {

Frontend::Frontend(const Program& program, const LaunchSpec& launch, const HostSpec& host, const ClockDomain& clock,
                   const HostState* from)
    : program_(&program),
      host_issue_(clock.to_subcycles(launch.host_issue)),
      collective_issue_(clock.to_subcycles(launch.host_collective_issue) * host.gpus_per_process),
      host_to_device_(clock.to_subcycles(launch.host_to_device)),
      cuda_graph_(host.cuda_graph),
      queue_depth_(launch.queue_depth),
      clock_(clock),
      missing_(program.ops.size(), 0),
      times_(program.ops.size()),
      queued_(program.priorities.size(), 0) {
  std::vector<std::vector<OpId>> dependents(program.ops.size());
  std::vector<std::optional<OpId>> last_on_stream(program.priorities.size());
  const std::uint32_t first = from == nullptr ? 0 : from->first.value;
  const auto had = [&](std::uint32_t op) { return from != nullptr && had_ended(program, *from, op); };
  const std::uint32_t end = from == nullptr ? 0 : std::max(first, from->end);
  for (std::uint32_t i = 0; i < end; ++i) {
    if (!had(i)) continue;
    times_[i] = {0, 0, 0, 0};
    ++ended_;
    ended_to_ = i + 1;
  }
  first_open_ = first;
  for (std::uint32_t i = first; i < program.ops.size(); ++i) {
    const ProgramOp& op = program.ops[i];
    if (op.kind == ProgramOpKind::host_wait || had(i)) continue;
    ++left_;
    std::vector<OpId> predecessors;
    for (const OpId wait : op.waits) {
      WEFT_CHECK(wait.value < i, "a wait for a later operation");
      // What the host waited for before it issued this op is over anyway.
      if (program.ops[wait.value].kind != ProgramOpKind::host_wait && !had(wait.value)) predecessors.push_back(wait);
    }
    WEFT_CHECK(op.stream.value < last_on_stream.size(), "an operation on a stream that does not exist");
    auto& last = last_on_stream[op.stream.value];
    if (last) predecessors.push_back(*last);
    last = OpId{i};
    std::sort(predecessors.begin(), predecessors.end());
    predecessors.erase(std::unique(predecessors.begin(), predecessors.end()), predecessors.end());
    missing_[i] = static_cast<std::uint32_t>(predecessors.size()) + 1;  // and its own arrival
    if (from != nullptr && i < from->issued && is_launch(i)) ++queued_[op.stream.value];
    for (const OpId before : predecessors) dependents[before.value].push_back(OpId{i});
  }
  for (const auto& list : dependents) {
    first_dependent_.push_back(static_cast<std::uint32_t>(dependents_.size()));
    dependents_.insert(dependents_.end(), list.begin(), list.end());
  }
  first_dependent_.push_back(static_cast<std::uint32_t>(dependents_.size()));
  if (from == nullptr) return;
  next_ = from->issued;
  host_waits_ = !from->next_step && next_ < program.ops.size();
}

void Frontend::note_end(std::uint32_t op) {
  ++ended_;
  ended_to_ = std::max(ended_to_, op + 1);
  while (first_open_ < times_.size() && times_[first_open_].end >= 0) ++first_open_;
}

std::optional<ProgramPlace> Frontend::place() const {
  const ProgramPlace place{first_open_, std::max(first_open_, ended_to_)};
  std::uint32_t open = 0;
  for (std::uint32_t i = place.first; i < place.end; ++i) {
    if (times_[i].end >= 0) continue;
    if (program_->ops[i].stream != program_->ops[place.first].stream) return std::nullopt;
    ++open;
  }
  WEFT_CHECK(ended_ + open == place.end, "all that has ended is counted");
  return place;
}

SubCycle Frontend::issue_time(const ProgramOp& op) const {
  if (op.kind == ProgramOpKind::host_wait) return 0;
  return op.kind == ProgramOpKind::collective ? std::max(host_issue_, collective_issue_) : host_issue_;
}

bool Frontend::follows_in_graph(OpId op) const {
  if (!cuda_graph_ || op.value == 0) return false;
  const ProgramOp& before = program_->ops[op.value - 1];
  const ProgramOp& next = program_->ops[op.value];
  return before.kind != ProgramOpKind::host_wait && next.kind != ProgramOpKind::host_wait &&
         before.iteration == next.iteration;
}

bool Frontend::goes_on_in_graph(OpId op) const {
  return op.value + 1 < program_->ops.size() && follows_in_graph(OpId{op.value + 1});
}

SubCycle Frontend::delay_before(std::size_t op) const {
  const ProgramOp& next = program_->ops[op];
  if (follows_in_graph(OpId{static_cast<std::uint32_t>(op)})) return 0;
  return std::max(issue_time(next), clock_.to_subcycles(next.host_delay));
}

std::optional<SubCycle> Frontend::first_step() const {
  if (program_->ops.empty()) return std::nullopt;
  return delay_before(0);
}

bool Frontend::waits_done(const ProgramOp& op) const {
  return std::all_of(op.waits.begin(), op.waits.end(), [&](OpId wait) {
    return program_->ops[wait.value].kind == ProgramOpKind::host_wait || times_[awaited(wait).value].end >= 0;
  });
}

bool Frontend::is_launch(std::size_t op) const {
  const ProgramOp& one = program_->ops[op];
  const bool launches =
      (one.kind == ProgramOpKind::kernel && !one.memory_operation) || one.kind == ProgramOpKind::collective;
  return launches && !follows_in_graph(OpId{static_cast<std::uint32_t>(op)});
}

bool Frontend::may_issue(std::size_t op) const {
  const ProgramOp& next = program_->ops[op];
  if (next.kind == ProgramOpKind::host_wait) return waits_done(next);
  return queue_depth_ == 0 || !is_launch(op) || queued_[next.stream.value] < queue_depth_;
}

std::optional<Frontend::Issue> Frontend::step(SubCycle now) {
  for (const RepeatedOps& ops : left_out_) {
    if (ops.contains(OpId{static_cast<std::uint32_t>(next_)})) next_ = ops.first.value + ops.count;
  }
  if (next_ == program_->ops.size()) return std::nullopt;
  const ProgramOp& op = program_->ops[next_];
  Issue issue;
  if (!may_issue(next_)) {
    host_waits_ = true;
    return std::nullopt;
  }
  if (op.kind == ProgramOpKind::host_wait) {
    times_[next_] = {now, now, now, now};
    note_end(static_cast<std::uint32_t>(next_));
  } else {
    issue.op = OpId{static_cast<std::uint32_t>(next_)};
    issue.arrives = now + host_to_device_;
    times_[next_].called = now - issue_time(op);
    if (is_launch(next_)) ++queued_[op.stream.value];
  }
  ++next_;
  if (next_ < program_->ops.size()) issue.next_step = now + delay_before(next_);
  return issue;
}

bool Frontend::arrived(OpId op) {
  return times_[op.value].end < 0 && --missing_[op.value] == 0;  // else it is left out
}

bool Frontend::completed(OpId op, SubCycle now, std::vector<OpId>& ready) {
  times_[op.value].end = now;
  --left_;
  note_end(op.value);
  if (is_launch(op.value)) --queued_[program_->ops[op.value].stream.value];
  for (std::uint32_t i = first_dependent_[op.value]; i < first_dependent_[op.value + 1]; ++i) {
    ended_before(dependents_[i], now, ready);
  }
  for (const auto& [before, behind] : instead_) {
    if (before == op) ended_before(behind, now, ready);
  }
  return host_goes_on();
}

// One of those that `op` waits for.
void Frontend::ended_before(OpId op, SubCycle now, std::vector<OpId>& ready) {
  if (times_[op.value].end >= 0) return;  // it is left out
  times_[op.value].unblocked = now;
  if (--missing_[op.value] == 0) ready.push_back(op);
}

bool Frontend::host_goes_on() {
  if (!host_waits_ || !may_issue(next_)) return false;
  host_waits_ = false;
  return true;
}

OpId Frontend::awaited(OpId op) const {
  for (const RepeatedOps& ops : left_out_) {
    if (ops.contains(op)) return OpId{op.value - ops.count};
  }
  return op;
}

bool Frontend::leave_out(const RepeatedOps& ops, std::vector<OpId>& ready) {
  left_out_.push_back(ops);
  const std::uint32_t end = ops.first.value + ops.count;
  for (std::uint32_t i = ops.first.value; i < end; ++i) {
    WEFT_CHECK(missing_[i] > 0 && program_->ops[i].kind != ProgramOpKind::host_wait, "it has not begun");
    times_[i] = times_[ops.like.value + (i - ops.first.value) % ops.period];
    --left_;
    note_end(i);
    if (i < next_ && is_launch(i)) --queued_[program_->ops[i].stream.value];
  }
  for (std::uint32_t i = ops.first.value; i < end; ++i) {
    const OpId before = awaited(OpId{i});
    for (std::uint32_t d = first_dependent_[i]; d < first_dependent_[i + 1]; ++d) {
      if (times_[dependents_[d].value].end >= 0) continue;  // it is left out, too
      if (times_[before.value].end >= 0) {
        ended_before(dependents_[d], times_[before.value].end, ready);
      } else {
        instead_.emplace_back(before, dependents_[d]);
      }
    }
  }
  return host_goes_on();
}

}  // namespace weft
