// Host, streams and work distributor.
#include <algorithm>

#include "gpu_model/gpu.h"
#include "sim/error.h"

namespace weft {

namespace {
// Blocks the distributor starts: one a cycle. UNSOURCED: no rate is published.
constexpr SubCycle kBlockStart = kCycle;

// One that is free, or a new one.
template <class Element>
std::uint32_t take_place(std::vector<std::uint32_t>& free, std::vector<Element>& all) {
  if (free.empty()) {
    all.emplace_back();
    return static_cast<std::uint32_t>(all.size() - 1);
  }
  const std::uint32_t place = free.back();
  free.pop_back();
  return place;
}
}  // namespace

void Gpu::push_control(SubCycle when, const GpuEvent& event) {
  ++control_due_;
  push(when, event);
}

const PushedOutput* Gpu::pushed_by(OpId op) const {
  return work_.pushes.empty() || ports_.empty() ? nullptr : work_.pushes[op.value];
}

void Gpu::host_step() {
  const auto issue = frontend_.step(now());
  if (!issue) return;
  stop_residents_if_done();
  if (issue->op) push_control(issue->arrives, GpuEvent{.kind = EventKind::op_arrives, .agent = issue->op->value});
  if (issue->next_step) push_control(*issue->next_step, GpuEvent{.kind = EventKind::host_step});
}

void Gpu::make_ready(OpId op) {
  const ProgramOp& described = frontend_.program().ops[op.value];
  if (described.kind == ProgramOpKind::collective || pushed_by(op) != nullptr) ++collectives_;
  const SubCycle latency = frontend_.follows_in_graph(op) ? graph_node_ : device_latency_;
  ++starting_;
  push_control(now() + latency + clock_.to_subcycles(described.start_delay),
               GpuEvent{.kind = EventKind::op_starts, .agent = op.value});
}

void Gpu::start_op(OpId op) {
  if (is_resident(op)) {
    parts_left_[op.value] = 1;
    start_kernel(op, work_.residents[op.value - work_.program->ops.size()]);
    return;
  }
  frontend_.times(op).start = now() + skipped_.at;
  --starting_;
  const bool is_kernel = frontend_.program().ops[op.value].kind == ProgramOpKind::kernel;
  const ScriptedKernel* script = is_kernel ? nullptr : work_.scripts[op.value];
  WEFT_CHECK(is_kernel || script != nullptr, "a collective or copy without a script");
  const bool in_parts = script != nullptr && !given_time(op);
  parts_left_[op.value] = in_parts ? 1 + static_cast<std::uint32_t>(script->launched.size()) : 1;
  start_kernel(op, script);
}

std::uint32_t Gpu::engine_unit(Executor executor, std::uint64_t block) const {
  switch (executor) {
    case Executor::compute_units:
      return private_units_ + static_cast<std::uint32_t>(block % spec_.compute_units);
    case Executor::host_copy_engine:
      return spec_.compute_units;
    case Executor::copy_engine:
      WEFT_CHECK(spec_.engines.has_value(), "a GPU without copy engines");
      return nic_unit() + 1 + static_cast<std::uint32_t>(block % spec_.engines->copy_engine.engines);
    case Executor::endpoint_engine:
      WEFT_CHECK(spec_.engines.has_value(), "a GPU without an endpoint engine");
      return nic_unit() + 1 + spec_.engines->copy_engine.engines;
  }
  throw InternalError("unknown executor");
}

void Gpu::start_kernel(OpId op, const ScriptedKernel* script) {
  const std::uint32_t slot = take_place(free_running_, running_);
  const ProgramOp* described = is_resident(op) ? nullptr : &frontend_.program().ops[op.value];
  RunningKernel& kernel = running_[slot];
  kernel = RunningKernel{};
  kernel.op = op;
  kernel.start = now();
  kernel.left_out_before = skipped_.at;
  kernel.sequence = launches_++;
  if (described != nullptr) kernel.priority = frontend_.program().priorities[described->stream.value];
  const std::optional<SubCycle> time = given_time(op);
  if (time) {
    kernel.timed = true;
    kernel.communication = script != nullptr;
    if (kernel.communication) --collectives_;  // it sends nothing
  } else if (script == nullptr) {
    kernel.pushed = pushed_by(op);
    if (kernel.pushed != nullptr) pushing_.push_back(slot);
    kernel.program.emplace(described->kernel, spec_, described->name, kernel.pushed);
    kernel.needs = kernel.program->needs();
    kernel.launched = kernel.program->launched_blocks();
    kernel.blocks = std::max(kernel.launched, kernel.program->blocks());
    kernel.cluster_blocks = kernel.program->cluster_blocks();
  } else {
    kernel.script = script;
    kernel.communication = described == nullptr || described->kind == ProgramOpKind::collective;
    kernel.executor = script->executor;
    kernel.on_units =
        script->executor == Executor::compute_units && !(kernel.communication && work_.private_parts.compute_units);
    kernel.needs = block_needs(spec_.compute_unit, kernel.script->threads_per_block,
                               kernel.script->registers_per_thread, kernel.script->shared_memory_bytes);
    kernel.launched = kernel.blocks = kernel.script->blocks();
  }
  const auto before = [this](std::uint32_t a, std::uint32_t b) {
    return running_[a].priority != running_[b].priority ? running_[a].priority > running_[b].priority
                                                        : running_[a].sequence < running_[b].sequence;
  };
  active_.insert(std::upper_bound(active_.begin(), active_.end(), slot, before), slot);
  if (time) {
    start_timed(slot, *time);
    return;
  }
  if (kernel.blocks == 0) {
    push_control(now() + lasts_of(op), GpuEvent{.kind = EventKind::op_ends, .agent = slot});
    return;
  }
  dispatch(slot);
  if (work_.skip_waves) watch_waves(running_[slot]);
}

void Gpu::end_op(std::uint32_t slot) {
  const OpId op = running_[slot].op;
  if (const auto at = std::find(active_.begin(), active_.end(), slot); at != active_.end()) active_.erase(at);
  running_[slot].program.reset();
  free_running_.push_back(slot);
  if (work_.skip_waves && active_.size() == 1) watch_waves(running_[active_.front()]);  // by itself from now on
  if (--parts_left_[op.value] > 0 || is_resident(op)) return;
  if ((running_[slot].communication && !running_[slot].timed) || running_[slot].pushed != nullptr) --collectives_;
  ready_.clear();
  go_on(frontend_.completed(op, now() + skipped_.at, ready_));
}

// What has become ready starts, and so does the host.
void Gpu::go_on(bool host) {
  // The host polls: it sees the end one way later, as it takes a launch to get here.
  if (host)
    push_control(now() + clock_.to_subcycles(spec_.launch.host_to_device), GpuEvent{.kind = EventKind::host_step});
  for (const OpId next : ready_) make_ready(next);
  stop_residents_if_done();
}

// Each block goes to where most of them would fit, of equals to the next: breadth first, but for units on which others
// stand (G. Gilman et al., Demystifying the Placement Policies of the NVIDIA GPU Thread Block Scheduler for Concurrent
// Kernels, SIGMETRICS PER 48, 2020: so on Pascal, Volta and Turing, and not round robin).
void Gpu::place_anywhere(std::uint32_t slot) {
  RunningKernel& kernel = running_[slot];
  if (kernel.cluster_blocks > 1) {
    dispatch_clusters(slot);
    return;
  }
  if (!kernel.on_units) {
    while (kernel.has_to_place()) place_block(slot, engine_unit(kernel.executor, kernel.next_block));
    return;
  }
  if (!spec_.gpc_units.empty()) order_.next_unit = 0;  // what is free decides, not who came last
  std::vector<std::uint32_t> room;
  for (std::uint32_t u = 0; u < spec_.compute_units; ++u) room.push_back(units_[u].slots.room(kernel.needs));
  for (std::uint32_t most = std::ranges::max(room); most > 0 && kernel.has_to_place(); --most) {
    for (std::uint32_t i = 0; i < spec_.compute_units && kernel.has_to_place(); ++i) {
      const std::uint32_t unit = order_.units[order_.next_unit];
      order_.next_unit = order_.next_unit + 1 == spec_.compute_units ? 0 : order_.next_unit + 1;
      if (room[unit] != most) continue;
      place_block(slot, unit);
      --room[unit];
    }
  }
  // Who found room for all of its blocks elsewhere has to wait for none.
  const auto communicates = [](const Unit& unit) { return unit.communication_blocks > 0; };
  if (kernel.has_to_place() && std::ranges::any_of(units_, communicates)) ledgers_[kernel.op.value].displaced = true;
}

bool Gpu::place_block(std::uint32_t slot, std::uint32_t unit_index, const Block* left) {
  RunningKernel& kernel = running_[slot];
  Unit& unit = units_[unit_index];
  if (kernel.on_units) {
    if (!unit.slots.fits(kernel.needs)) {
      if (unit.communication_blocks > 0) ledgers_[kernel.op.value].displaced = true;
      return false;
    }
    account_unit(unit_index);
    unit.slots.take(kernel.needs);
    ++(kernel.communication ? unit.communication_blocks : unit.compute_blocks);
    ++unit.company;
  }
  const std::uint32_t block = take_place(free_blocks_, blocks_);
  distributor_free_ = std::max(distributor_free_, now()) + kBlockStart;
  const std::uint64_t number = kernel.next_block++;
  const bool part =
      kernel.script != nullptr && (is_resident(kernel.op) || kernel.script != work_.scripts[kernel.op.value]);
  if (number == 0 && !part) frontend_.times(kernel.op).placed = now() + skipped_.at;
  const BlockPrograms* programs = kernel.script == nullptr ? nullptr : kernel.script->programs.get();
  const auto block_number = static_cast<std::uint32_t>(number);
  const std::uint32_t groups = programs == nullptr ? 1 : programs->groups(block_number);
  Block& placed = blocks_[block];
  placed = Block{.unit = unit_index, .kernel = slot, .agents_left = groups, .agents = groups};
  placed.start = distributor_free_;
  if (left != nullptr && left->kernel == slot) {
    placed.stall = left->stall;
    placed.held_by_pipe = left->held_by_pipe;
    placed.slow_clock = left->slow_clock;
  }
  for (std::uint32_t group = 0; group < groups; ++group) {
    const std::uint32_t index = take_place(free_agents_, agents_);
    Agent& agent = agents_[index];
    agent = Agent{};
    agent.unit = programs != nullptr && programs->by_nic(block_number, group) ? nic_unit() : unit_index;
    agent.block = block;
    agent.block_number = number;
    agent.kernel = slot;
    agent.age = agents_placed_++;
    agent.partitions =
        units_[agent.unit].schedulers.place(programs == nullptr ? kernel.program->warps() : WarpSchedulers::kMost);
    if (programs == nullptr) {
      agent.lines_in_flight = kernel.program->lines_in_flight();
      agent.bulk = kernel.program->bulk_loads();
      agent.phase = kernel.program->phase(number, 0);
    } else {
      agent.lines_in_flight = programs->lines_in_flight(block_number, group);
      agent.cursor = programs->start(block_number, group);
      static_cast<void>(agent.cursor->next(agent.phase));  // without one, the empty phase it has is through at once
    }
    enter_phase(index);
    const SubCycle latency = kernel.script == nullptr ? 0 : kernel.script->start_latency;
    push(distributor_free_ + latency, GpuEvent{.kind = EventKind::resume, .agent = index});
  }
  return true;
}

void Gpu::end_block(std::uint32_t index) {
  Block block = blocks_[index];
  free_blocks_.push_back(index);
  RunningKernel& kernel = running_[block.kernel];
  block.stall += now() - block.start - block.pipe_time / block.agents;
  ++kernel.blocks_done;
  if (waves_ && rounds_of_block_ > 0) leave_out_work(rounds_of_block_);
  if (kernel.blocks_done == kernel.blocks) {
    KernelLedger& ledger = ledgers_[kernel.op.value];
    // The blocks that were left out would have been held up like those before and behind them.
    const auto simulated = static_cast<double>(std::max<SubCycle>(1, now() - kernel.start));
    const double grown = 1 + static_cast<double>(skipped_.at - kernel.left_out_before) / simulated;
    ledger.stall = static_cast<double>(block.stall) * grown;
    ledger.held_by_pipe = block.held_by_pipe * grown;
    ledger.slow_clock = block.slow_clock * grown;
    kernel.last_block_end = now();
  }
  if (kernel.on_units) leave_unit(block);
  end_kernel_if_drained(block.kernel);
}

// A kernel has ended when its blocks are through and what they stored is done, and the sums of what it pushed have
// come.
void Gpu::end_kernel_if_drained(std::uint32_t slot) {
  RunningKernel& kernel = running_[slot];
  if (kernel.blocks_done != kernel.blocks || kernel.stores_out != 0) return;
  if (kernel.pushed != nullptr) {
    if (flags_[kernel.pushed->flag].count < kernel.pushed->part_lines()) return;
    std::erase(pushing_, slot);
  }
  const SubCycle drained = std::max(now(), kernel.last_acknowledge);
  KernelLedger& ledger = ledgers_[kernel.op.value];
  (kernel.pushed != nullptr ? ledger.held_by_links : ledger.stall) +=
      static_cast<double>(drained - kernel.last_block_end);
  // The flush at its end is a fence of the whole system: it waits for all that units have under way to other GPUs,
  // unless communication has a memory synchronization domain of its own (CUDA programming guide, Memory Synchronization
  // Domains). Measured with blocks that use the host's memory (docs/validation.md, "What a kernel's end waits for"):
  // loads hold it up as stores do, and within a CUDA graph nothing does.
  const bool flushes = spec_.sync_domains == 1 && kernel.script == nullptr && !work_.private_parts.links &&
                       !frontend_.goes_on_in_graph(kernel.op);
  if (!flushes || fenced_done_ == fenced_) {
    push_control(drained + lasts_of(kernel.op), GpuEvent{.kind = EventKind::op_ends, .agent = slot});
    return;
  }
  kernel.flushes = fenced_;
  kernel.last_acknowledge = drained;
  flushing_.push_back(slot);
}

}  // namespace weft
