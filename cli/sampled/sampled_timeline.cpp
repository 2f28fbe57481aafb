#include "cli/sampled/sampled_timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/error.h"

namespace weft {

namespace {
// Of the time in company of what was only paced, one standard deviation (docs/validation.md).
constexpr double kPacedScatter = 0.03;
constexpr SubCycle kNever = std::numeric_limits<SubCycle>::max();
// A collective of so many bytes takes as long whatever kernels have left in the L2: only little of it lies there.
constexpr std::int64_t kLongMessage = 4 << 20;
}  // namespace

SampledTimeline::SampledTimeline(const RunConfig& config, const Program& program, bool communicates,
                                 RegimeMemory& memory, RegimeLab& lab)
    : program_(&program),
      communicates_(communicates),
      clock_(config.system.gpu.clock),
      frontend_(program, config.system.gpu.launch, config.host, clock_),
      keys_(config, program, communicates),
      second_samples_(config.system.gpu, program),
      memory_(&memory),
      lab_(&lab),
      device_latency_(clock_.to_subcycles(config.system.gpu.launch.device_latency)),
      graph_node_(config.host.cuda_graph ? clock_.to_subcycles(config.system.gpu.launch.graph_node) : device_latency_),
      host_to_device_(clock_.to_subcycles(config.system.gpu.launch.host_to_device)),
      long_message_(kLongMessage),
      done_(program.ops.size(), {.duration = -1, .ledger = {}}),
      arrivals_(program.ops.size(), -1),
      has_arrived_(program.ops.size(), false),
      streams_(program.priorities.size()),
      heads_(program.priorities.size(), 0),
      paced_([this](OpId kernel, OpId collective) { return pacer_->beside(kernel, collective); }) {
  if (communicates) pacer_.emplace(config, program, keys_, memory, lab);
  const auto is_kernel = [](const ProgramOp& op) { return op.kind == ProgramOpKind::kernel; };
  if (std::ranges::none_of(program.ops, is_kernel)) long_message_ = std::max(kLongMessage, config.system.gpu.l2.bytes);
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].kind != ProgramOpKind::host_wait) streams_[program.ops[i].stream.value].push_back(i);
  }
  next_host_step_ = frontend_.first_step();
  if (next_host_step_) push(*next_host_step_, EventKind::host_step);
}

void SampledTimeline::push(SubCycle at, EventKind kind, std::uint32_t op) { events_.push({at, pushed_++, kind, op}); }

void SampledTimeline::run(const std::function<void(double)>& progress) {
  std::size_t handled = 0;
  while (!events_.empty()) {
    const SubCycle now = events_.top().at;
    while (!events_.empty() && events_.top().at == now) {
      const Event event = events_.top();
      events_.pop();
      handle(event, now);
    }
    if (!waiting_.empty() && running_ == 0 && !paced_begins_) take_stretch(now);
    if (progress && ++handled % 16 == 0) {
      progress(static_cast<double>(frontend_.first_open()) / static_cast<double>(program_->ops.size()));
    }
  }
  learn_from_stretch();
  end_ += last_of(apart_);
  WEFT_CHECK(frontend_.done(), "a program in samples comes to its end");
}

void SampledTimeline::handle(const Event& event, SubCycle now) {
  const OpId op{event.op};
  switch (event.kind) {
    case EventKind::host_step:
      host_step(now);
      return;
    case EventKind::arrives:
      has_arrived_[op.value] = true;
      if (frontend_.arrived(op)) make_ready(op, now);
      return;
    case EventKind::starts:
      if (done_[op.value].duration < 0 && pacing_) {
        begin_paced(op, now);
        return;
      }
      if (done_[op.value].duration < 0) {  // it begins the next stretch
        push(now + device_latency_, EventKind::starts, op.value);
        return;
      }
      frontend_.times(op).start = now;
      frontend_.times(op).placed = now + done_[op.value].behind;
      push(now + done_[op.value].duration, EventKind::ends, op.value);
      return;
    case EventKind::ends:
      end(op, now);
      return;
    case EventKind::paced_ends:
      if (event.op == expected_) end_paced(now);
      return;
  }
}

void SampledTimeline::end(OpId op, SubCycle now) {
  end_ = std::max(end_, now);
  --running_;
  ready_.clear();
  ++heads_[program_->ops[op.value].stream.value];
  if (frontend_.completed(op, now, ready_)) {
    next_host_step_ = now + host_to_device_;
    push(*next_host_step_, EventKind::host_step);
  }
  for (const OpId next : ready_) make_ready(next, now);
}

void SampledTimeline::host_step(SubCycle now) {
  const auto issue = frontend_.step(now);
  next_host_step_ = issue ? issue->next_step : std::nullopt;
  if (!issue) return;
  if (issue->op) {
    arrivals_[issue->op->value] = issue->arrives;
    push(issue->arrives, EventKind::arrives, issue->op->value);
  }
  if (next_host_step_) push(*next_host_step_, EventKind::host_step);
}

void SampledTimeline::make_ready(OpId op, SubCycle now) {
  const ProgramOp& described = program_->ops[op.value];
  const SubCycle latency = frontend_.follows_in_graph(op) ? graph_node_ : device_latency_;
  push(now + latency + clock_.to_subcycles(described.start_delay), EventKind::starts, op.value);
  if (done_[op.value].duration < 0) waiting_.push_back(op.value);
}

HostState SampledTimeline::state_at(SubCycle now) const {
  const auto place = frontend_.place();
  WEFT_CHECK(place.has_value(), "at a quiet moment operations have ended in order, but for one stream's");
  HostState state{OpId{place->first}, frontend_.issued(), {}, {}, place->end};
  for (std::uint32_t i = place->first; i < state.issued; ++i) {
    state.arrivals.push_back(has_arrived_[i] ? 0 : std::max<SubCycle>(arrivals_[i] - now, 0));
  }
  if (next_host_step_) state.next_step = *next_host_step_ - now;
  return state;
}

// Relative to now; -1: not known, the host waits before.
SubCycle SampledTimeline::arrival_of(std::uint32_t op, SubCycle now) const {
  if (arrivals_[op] >= 0) return has_arrived_[op] ? 0 : std::max<SubCycle>(arrivals_[op] - now, 0);
  if (!next_host_step_) return -1;
  SubCycle at = *next_host_step_;
  for (std::uint32_t i = frontend_.issued(); i < op; ++i) {
    if (program_->ops[i].kind == ProgramOpKind::host_wait) return -1;
    at += frontend_.delay_before(i + 1);
  }
  return at + host_to_device_ - now;
}

// When something else gets ready beside `first`, by itself the only one that is: relative to now.
SubCycle SampledTimeline::company_from(OpId first, SubCycle now) {
  SubCycle earliest = kNever;
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    if (s == program_->ops[first.value].stream.value || heads_[s] == streams_[s].size()) continue;
    const std::uint32_t head = streams_[s][heads_[s]];
    if (frontend_.waits_for_others(OpId{head}, has_arrived_[head])) continue;
    const SubCycle arrives = arrival_of(head, now);
    if (arrives >= 0) earliest = std::min(earliest, arrives);
  }
  return earliest;
}

// Nothing runs and something is about to start: what follows is known up to the next such moment, or is simulated.
void SampledTimeline::take_stretch(SubCycle now) {
  pacing_ = false;
  learn_from_stretch();
  const HostState state = state_at(now);
  const ProgramOp& first = program_->ops[state.first.value];
  const bool alone = waiting_.size() == 1 && first.kind != ProgramOpKind::host_wait;
  if (alone && first.kind == ProgramOpKind::kernel && !(communicates_ && first.fused)) {
    const SubCycle company = company_from(state.first, now);
    const std::string key = keys_.of_kernel(state.first);
    const Regime* regime = memory_->find(key, 1);
    if (regime == nullptr && company == kNever) {
      Regime fresh = second_samples_.wanted(state.first) ? lab_->kernel_twice(state.first) : lab_->kernel(state.first);
      regime = &memory_->add(key, std::move(fresh));
    }
    const SubCycle latency = frontend_.follows_in_graph(state.first) ? graph_node_ : device_latency_;
    if (regime != nullptr && latency + regime->operations.front().duration <= company) {
      second_samples_.count(state.first, static_cast<double>(regime->operations.front().duration),
                            static_cast<double>(regime->second));
      apply(*regime, state.first.value, now);
      return;
    }
  }
  if (alone && first.kind == ProgramOpKind::collective && !communicates_) {  // it ends at once
    done_[state.first.value].duration = 0;
    waiting_.clear();
    running_ = 1;
    return;
  }
  const bool by_itself = alone && first.kind == ProgramOpKind::collective && company_from(state.first, now) == kNever &&
                         !lab_->next_begins_apart(state.first);
  if (by_itself && first.collective.bytes.count() >= long_message_) {
    apart_ = beginnings_.like(keys_.of_long_collective(state.first), apart_);
    const std::string key = keys_.of_long_collective(state.first, apart_);
    const Regime* regime = memory_->find(key, 1);
    apply(regime != nullptr ? *regime : memory_->add(key, lab_->company(state, true, apart_)), state.first.value, now);
    return;
  }
  RegimeKeys::Stretch name(keys_, state);
  name.add(state.first, arrival_of(state.first.value, now));
  apart_ = beginnings_.like(name.name(), apart_);
  const Regime* regime = known_stretch(state, now);
  if (regime == nullptr && !by_itself && pace_stretch(state.first)) return;
  apply(regime != nullptr ? *regime : simulated_stretch(state, now, by_itself), state.first.value, now);
}

void SampledTimeline::apply(const Regime& regime, std::uint32_t first, SubCycle now) {
  SubCycle longest = 0;
  if (regime.gpus > 0) apart_ = regime.apart;
  for (std::uint32_t i = 0; i < regime.operations.size(); ++i) {
    if (regime.operations[i].duration < 0) continue;  // not of this stretch
    done_[first + i] = regime.operations[i];
    if (program_->ops[first + i].kind == ProgramOpKind::kernel) done_[first + i].late = last_of(apart_);
    longest = std::max(longest, regime.operations[i].duration);
    if (program_->ops[first + i].kind != ProgramOpKind::host_wait) ++running_;
  }
  std::erase_if(waiting_, [&](std::uint32_t op) { return done_[op].duration >= 0; });
  add_sums(regime);
  if (regime.uncertainty > 0) {
    const auto [at, fresh] = uncertain_at_.try_emplace(&regime, uncertain_.size());
    if (fresh) uncertain_.push_back(0);
    uncertain_[at->second] += static_cast<double>(regime.uncertainty);
  }
  spread_traffic(regime, now, now + longest);
}

void SampledTimeline::add_sums(const Regime& regime) {
  sum_.hbm_read_bytes += regime.hbm_read_bytes;
  sum_.hbm_write_bytes += regime.hbm_write_bytes;
  sum_.hbm_communication_bytes += regime.hbm_communication_bytes;
  sum_.unit_seconds_compute += regime.unit_seconds_compute;
  sum_.unit_seconds_communication += regime.unit_seconds_communication;
  if (!regime.links.empty()) add(regime.links, regime.switches, network_[regime.gpus]);
}

double SampledTimeline::error_estimate() const {
  if (end_ <= 0) return 0;
  const auto end = static_cast<double>(end_);
  const SecondSamples::Off off = second_samples_.off(end);
  double squares = off.scatter * off.scatter;
  for (const double uncertain : uncertain_) squares += uncertain / end * (uncertain / end);
  squares += std::pow(kPacedScatter * paced_together_ / end, 2);
  return off.bias + 2 * std::sqrt(squares);
}

void SampledTimeline::spread_traffic(const Regime& regime, SubCycle from, SubCycle to) {
  const std::int64_t first = clock_.to_time(from) / kShortestTimeBin;
  const std::int64_t bins = std::max<std::int64_t>(1, clock_.to_time(to) / kShortestTimeBin - first);
  const auto spread = [&](TimeBins& series, std::int64_t bytes) {
    for (std::int64_t b = 0; b < bins; ++b) series.add(first + b, bytes * (b + 1) / bins - bytes * b / bins);
  };
  spread(hbm_.read, regime.hbm_read_bytes);
  spread(hbm_.written, regime.hbm_write_bytes);
  spread(hbm_.communication, regime.hbm_communication_bytes);
}

}  // namespace weft
