#include "cli/sampled/repeated_steps.h"

#include <algorithm>
#include <cmath>

#include "cli/sampled/program_likeness.h"
#include "cli/sampled/shift_flows.h"
#include "network/collective_algorithm.h"
#include "traces/matched_collectives.h"

namespace weft {

namespace {
// Choices, fitted to nothing. Operations of a step at most, and steps that are worth while.
constexpr std::uint32_t kLongestStep = 16;
constexpr std::uint32_t kFewestTimes = 5;
// Steps take the same time if they differ by no more than this share.
constexpr double kAlike = 0.01;
// The last step is simulated: what comes behind meets GPUs as far apart as they are.
constexpr std::uint32_t kStaying = 1;
// Two buffers in turn. They lie elsewhere in the L2, so that every second step may take longer: two count as one.
constexpr std::uint32_t kBuffers = 2;

// GPUs that end a collective so far apart from the first one, as a share of its time, do not wait for each other: who
// is through goes on, unless kernels last longer.
constexpr double kApart = 0.05;

bool apart(const OpTimes& first, const OpTimes& other) {
  return static_cast<double>(std::abs(other.end - first.end)) > kApart * static_cast<double>(first.end - first.start);
}

std::uint32_t times_from(const Program& program, std::uint32_t first, std::uint32_t period) {
  std::uint32_t alike = 0;
  while (first + alike + period < program.ops.size() &&
         is_alike_later(program.ops[first + alike], program.ops[first + alike + period], period)) {
    ++alike;
  }
  return alike / period + 1;
}

}  // namespace

std::vector<RepeatedSteps> repeated_steps(const Program& program, std::uint32_t from) {
  std::vector<RepeatedSteps> found;
  const auto has = [&](const RepeatedSteps& steps, auto&& is) {
    return std::any_of(program.ops.begin() + steps.first, program.ops.begin() + steps.first + steps.period, is);
  };
  const auto ops = static_cast<std::uint32_t>(program.ops.size());
  for (std::uint32_t i = from; i < ops;) {
    RepeatedSteps best{.first = i};
    for (std::uint32_t period = 2; period <= kLongestStep && best.times < kFewestTimes; ++period) {
      best = {i, period, times_from(program, i, period)};
    }
    if (best.times >= kFewestTimes && has(best, is_shift) &&
        has(best, [](const ProgramOp& op) { return op.kind == ProgramOpKind::kernel; })) {
      found.push_back(best);
      i += best.period * best.times;
    } else {  // nor are they in the middle of what repeats without
      const std::uint32_t alike = best.times >= kFewestTimes ? best.period * best.times : 1;
      i += std::max(alike, kLongestStep) - kLongestStep + 1;
    }
  }
  return found;
}

std::vector<bool> uneven_operations(const Program& program, const Scripts* scripts) {
  std::vector<bool> uneven(program.ops.size(), false);
  for (std::size_t i = 0; i < uneven.size(); ++i) {
    const ProgramOp& op = program.ops[i];
    uneven[i] = op.kind == ProgramOpKind::collective && !ends_everywhere(op.collective.kind);
  }
  if (scripts == nullptr) return uneven;
  for (const Scripts::Collective& collective : scripts->collectives()) {
    if (collective.plan.algorithm != to_string(CollectiveAlgorithm::tree)) continue;
    for (const auto& [gpu, op] : collective.members) {
      if (gpu == 0) uneven[op.value] = true;
    }
  }
  return uneven;
}

bool ended_apart(const Machine& machine, const Program& program, const std::vector<bool>& uneven,
                 const std::vector<std::uint32_t>& operations) {
  if (operations.empty()) return false;
  const OpTimes* first_last = nullptr;
  bool uneven_apart = false;
  bool ends_apart = false;
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    const std::vector<OpTimes>& times = machine.gpu(g).times();
    const std::uint32_t last = std::ranges::max(operations, {}, [&](std::uint32_t i) { return times[i].end; });
    if (g == 0) first_last = &times[last];
    ends_apart = ends_apart || program.ops[last].kind != ProgramOpKind::kernel || apart(*first_last, times[last]);
    for (const std::uint32_t i : operations) {
      uneven_apart = uneven_apart || (uneven[i] && apart(machine.gpu(0).times()[i], times[i]));
    }
  }
  return uneven_apart && ends_apart;
}

void SteadySequence::begin() {
  for (const auto& [first, period, times] : repeated_steps(*program_, from_)) {
    const RepeatedSteps of_all_buffers{first, period * kBuffers, times / kBuffers};
    going_.push_back({of_all_buffers, std::vector<std::uint32_t>(machine_->gpus(), 0)});
  }
}

void SteadySequence::look(Time now) {
  while (!going_.empty() && !look(going_.front(), now)) going_.erase(going_.begin());
}

bool SteadySequence::look(Going& going, Time now) {
  bool more = false;
  for (std::uint32_t g = 0; g < machine_->gpus(); ++g) {
    const std::vector<OpTimes>& times = machine_->gpu(g).times();
    const auto ends = [&](std::uint32_t step) {
      const std::uint32_t first = going.steps.first + step * going.steps.period;
      return std::all_of(times.begin() + first, times.begin() + first + going.steps.period,
                         [](const OpTimes& op) { return op.end >= 0; });
    };
    while (going.ended[g] < going.steps.times && ends(going.ended[g])) {
      ++going.ended[g];
      more = true;
      if (g > 0) continue;
      going.before = going.last;
      going.last = moved();
    }
  }
  if (going.ended.front() == going.steps.times) return false;
  return !more || !steady(going) || !leave_out(going, now);
}

SteadySequence::Moved SteadySequence::moved() const {
  const Gpu& gpu = machine_->gpu(0);
  const HbmBytes hbm = gpu.hbm_bytes();
  Moved moved;
  moved.gpu = {.hbm_read_bytes = hbm.read,
               .hbm_write_bytes = hbm.written,
               .hbm_communication_bytes = hbm.communication,
               .unit_seconds_compute = gpu.statistics().unit_seconds_compute};
  moved.gpu += gpu.skipped();
  moved.communicating = gpu.statistics().unit_seconds_communication;
  moved.remote_lines = gpu.remote_lines() + gpu.remote_lines_left_out();
  return moved;
}

double SteadySequence::time_of(const RepeatedSteps& steps, std::uint32_t gpu, std::uint32_t step) const {
  const std::vector<OpTimes>& times = machine_->gpu(gpu).times();
  double sum = 0;
  for (std::uint32_t i = steps.first + step * steps.period; i < steps.first + (step + 1) * steps.period; ++i) {
    sum += static_cast<double>(times[i].end - times[i - steps.period].end);
  }
  return sum / steps.period;
}

// The last two steps of the first GPU, and the last one of each other.
bool SteadySequence::steady(const Going& going) const {
  if (going.ended.front() < 3 || std::ranges::min(going.ended) < 2) return false;
  const double time = time_of(going.steps, 0, going.ended.front() - 1);
  const auto alike = [&](double other) { return std::abs(other - time) <= kAlike * time; };
  for (std::uint32_t g = 0; g < machine_->gpus(); ++g) {
    if (!alike(time_of(going.steps, g, going.ended[g] - 1))) return false;
  }
  return alike(time_of(going.steps, 0, going.ended.front() - 2));
}

bool SteadySequence::leave_out(const Going& going, Time now) {
  const auto& [first, period, times] = going.steps;
  std::uint32_t next = std::ranges::max(going.ended);  // no GPU has begun this step
  const auto begun = [&](std::uint32_t step) {
    for (std::uint32_t g = 0; g < machine_->gpus(); ++g) {
      for (std::uint32_t i = first + step * period; i < first + (step + 1) * period; ++i) {
        if (machine_->gpu(g).frontend().has_been_ready(OpId{i})) return true;
      }
    }
    return false;
  };
  while (next < times && begun(next)) ++next;
  if (next + kStaying >= times) return false;
  const std::uint32_t steps = times - next - kStaying;
  const std::uint32_t like = std::ranges::min(going.ended) - 1;
  const RepeatedOps ops{OpId{first + next * period}, steps * period, OpId{first + like * period}, period};
  const Moved& last = going.last;
  GpuProgress moved = last.gpu.since(going.before.gpu).times(steps);
  moved.at = 0;  // times of what is left out are those of operations
  moved.memory_transactions = 0;
  const double communicating = (last.communicating - going.before.communicating) * steps;
  for (std::uint32_t g = 0; g < machine_->gpus(); ++g) {
    machine_->gpu(g).come_to(now);
    machine_->gpu(g).leave_out(ops, g == 0 ? moved : GpuProgress(), g == 0 ? communicating : 0);
    machine_->changed(g);
    machine_->gpu(g).add_left_out({}, (last.remote_lines - going.before.remote_lines) * steps);
  }
  const double time = time_of(going.steps, 0, going.ended.front() - 1);
  const double before = time_of(going.steps, 0, going.ended.front() - 2);
  uncertainty_ += std::llround(std::abs(time - before) * steps);
  return true;
}

}  // namespace weft
