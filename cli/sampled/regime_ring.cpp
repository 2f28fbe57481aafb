// Rings over nodes, through which some GPUs that stand for all go apart from each other: kernels, and shifts of long
// messages, only take their time.
#include <algorithm>
#include <cmath>

#include "cli/run/standstill.h"
#include "cli/sampled/kernel_paces.h"
#include "gpu_model/l2_of_addresses.h"
#include "cli/sampled/network_loads.h"
#include "cli/sampled/observed_regime.h"
#include "cli/sampled/regime_lab.h"
#include "cli/sampled/repeated_steps.h"
#include "cli/sampled/steady_collectives.h"

namespace weft {

namespace {

// Of what so many shifts did, one's part. They ask nothing of switches but to pass it on.
Regime one_of(Regime did, std::uint32_t count) {
  for (std::int64_t* bytes : {&did.hbm_read_bytes, &did.hbm_write_bytes, &did.hbm_communication_bytes}) *bytes /= count;
  did.unit_seconds_communication /= count;
  did.uncertainty /= count;
  for (LinkLoad& link : did.links) {
    for (std::int64_t* value : {&link.payload_bytes, &link.wire_bytes, &link.packets, &link.busy, &link.stalled}) {
      *value /= count;
    }
  }
  return did;
}

}  // namespace

bool RegimeLab::goes_round_rings() {
  if (scripts_ == nullptr) return false;
  const FoldedMachine& folded = *at_grain(1).folded;
  if (!folded.why_not().empty() || folded.standing() == 1) return false;
  if (!round_rings_) round_rings_ = !repeated_steps(programs_->front(), 0).empty();
  return *round_rings_;
}

// Of kernels that ask for the same, the first one's.
const Regime& RegimeLab::alone(OpId op) {
  Regime& known = alone_[kernel_signature(programs_->front().ops[op.value])];
  if (known.operations.empty()) {
    known = kernel_on(l2_of_addresses(config_->system.gpu, programs_->front(), op, true), op, true);
  }
  return known;
}

const PaceBeside& RegimeLab::beside(OpId kernel, OpId collective) {
  const Program& program = programs_->front();
  const auto key =
      std::pair(kernel_signature(program.ops[kernel.value]), message_of(program.ops[collective.value].collective));
  const auto known = beside_.find(key);
  if (known != beside_.end()) return known->second;
  const L2Cache l2 = l2_of_addresses(config_->system.gpu, program, kernel, true);
  PaceBeside found = pace_beside(*config_, *at_grain(1).folded, program, kernel, collective, l2);
  memory_transactions_ += found.memory_transactions;
  packets_ += found.packets;
  simulated_ += found.simulated;
  return beside_.emplace(key, std::move(found)).first->second;
}

// The next one that moves as much, else it itself.
OpId RegimeLab::shift_behind(OpId op) const {
  const SharedList<ProgramOp>& ops = programs_->front().ops;
  const Message message = message_of(ops[op.value].collective);
  for (auto i = static_cast<std::uint32_t>(op.value + 1); i < ops.size(); ++i) {
    if (is_shift(ops[i]) && message_of(ops[i].collective) == message) return OpId{i};
  }
  return op;
}

const ShiftByItself& RegimeLab::shift(OpId op, std::uint32_t grain) {
  const auto [known, fresh] = shifts_.try_emplace({grain, message_of(programs_->front().ops[op.value].collective)});
  ShiftByItself& found = known->second;
  if (!fresh) return found;
  std::vector<OpId> ops{op};
  if (const OpId behind = shift_behind(op); behind != op) ops.push_back(behind);
  Program program{.ops = {}, .priorities = programs_->front().priorities, .memory = {}};
  for (const OpId one : ops) program.ops.push_back(at_once(programs_->front().ops[one.value]));
  const HostState start{OpId{0}, static_cast<std::uint32_t>(ops.size()), std::vector<SubCycle>(ops.size(), 0),
                        std::nullopt, 0};
  const Grain& at = at_grain(grain);
  std::vector<GpuWork> works;
  for (std::uint32_t g = 0; g < at.folded->standing(); ++g) {
    works.push_back(at.folded->work(g));
    std::vector<const ScriptedKernel*> scripts;
    for (const OpId one : ops) scripts.push_back(works.back().scripts[one.value]);
    works.back().scripts = std::move(scripts);
    works.back().program = &program;
    works.back().from = &start;
  }
  const std::unique_ptr<Machine> built = at.folded->machine(at.system, works);
  Machine& machine = *built;
  machine.set_l2(at_grain(l2_of_addresses(config_->system.gpu, programs_->front(), op, true), 1, grain));
  SteadyCollectives steady(machine);
  machine.run_until(config_->threads, [&](Time now) {
    steady.look(now);
    return false;
  });
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    const std::vector<OpTimes>& times = machine.gpu(g).times();
    if (times.back().end < 0) throw Standstill("shifts by themselves come to a standstill");
    found.first.push_back(times.front().end - times.front().start);
    found.both.push_back(times.back().end - times.front().start);
  }
  found.shifts = static_cast<std::uint32_t>(ops.size());
  Regime did = observed_regime(machine, program, start, found.shifts);
  did.uncertainty = steady.uncertainty();
  tell_real_network(machine, grain, did);
  found.did = one_of(std::move(did), found.shifts);
  count(machine);
  simulated_ += machine.end();
  return found;
}

KernelPaces RegimeLab::paces_of(Machine& machine) {
  return {machine,
          programs_->front(),
          {.alone = [this](OpId op) { return alone(op).operations.front().duration; },
           .beside = [this](OpId kernel, OpId collective) -> const PaceBeside& { return beside(kernel, collective); }}};
}

// What kernels and shifts did that only took their time. Of kernels, the mean of all GPUs is what counts.
void RegimeLab::add_timed(const Machine& machine, const KernelPaces& paces, const std::vector<bool>& shifts,
                          std::uint32_t first, std::uint32_t grain, Regime& regime) {
  NetworkLoad network{regime.links, regime.switches};
  for (std::uint32_t i = 0; i < regime.operations.size(); ++i) {
    const OpId op{first + i};
    Regime::Operation& operation = regime.operations[i];
    const bool is_kernel = programs_->front().ops[op.value].kind == ProgramOpKind::kernel;
    if (operation.duration < 0 || (!is_kernel && !shifts[op.value])) continue;
    const ShiftByItself* moved = is_kernel ? nullptr : &shift(op, grain);
    const Regime& did = is_kernel ? alone(op) : moved->did;
    regime.hbm_read_bytes += did.hbm_read_bytes;
    regime.hbm_write_bytes += did.hbm_write_bytes;
    regime.hbm_communication_bytes += did.hbm_communication_bytes;
    regime.unit_seconds_compute += did.unit_seconds_compute;
    regime.uncertainty += did.uncertainty;
    if (is_kernel) {
      operation.ledger = paces.ledger(op);
      operation.early = operation.duration - mean_duration(machine, op.value);
      continue;
    }
    // Its blocks are there until it ends.
    const double usual = static_cast<double>(moved->both.front()) / moved->shifts;
    regime.unit_seconds_communication +=
        did.unit_seconds_communication * static_cast<double>(operation.duration) / usual;
    add(did.links, did.switches, network);
  }
  regime.links = std::move(network.links);
  regime.switches = std::move(network.switches);
}

Regime RegimeLab::long_ring(const HostState& state, std::uint32_t grain) {
  const Program& program = programs_->front();
  const Grain& at = at_grain(grain);
  const auto& cluster = config_->system.network.cluster;
  ShiftFlows flows(program, cluster ? cluster->gpus_per_node : 0,
                   [&](OpId op) -> const ShiftByItself& { return shift(op, grain); });
  std::vector<GpuWork> works;
  for (std::uint32_t g = 0; g < at.folded->standing(); ++g) {
    works.push_back(at.folded->work(g));
    works.back().from = &state;
    works.back().kernels_timed = true;
    works.back().timed_collectives = &flows.timed();
  }
  const std::unique_ptr<Machine> built = at.folded->machine(at.system, works);
  Machine& machine = *built;
  machine.set_l2(at_grain(l2_before(state.first), 1, grain));
  SteadyCollectives steady(machine);
  KernelPaces paces = paces_of(machine);
  flows.choose(machine);
  const ProgramPlace from{state.first.value, std::max(state.first.value, state.end)};
  const auto [to, after, all_at_once] = machine.run_until_quiet(
      from, config_->threads,
      [&](Time now) {
        flows.look(machine, now);
        paces.look(now);
        steady.look(now);
      },
      [&](const std::vector<std::uint32_t>& ended) { return ended_apart(machine, program, uneven_, ended); });
  if (to == from) throw Standstill("a stretch of the program comes to a standstill");
  Regime regime =
      observed_regime(machine, program, state, to.end, all_at_once ? Waits::at_the_end : Waits::each_collective, true);
  tell_real_network(machine, grain, regime);
  add_timed(machine, paces, flows.timed(), state.first.value, grain, regime);
  count(machine);
  SubCycle last = 0;
  for (std::uint32_t i = state.first.value; i < to.end; ++i) last = std::max(last, machine.gpu(0).times()[i].end);
  const double scatter = kGrainScatter + at.folded->scatter(state.first.value, to.end);
  regime.uncertainty += steady.uncertainty() + std::llround(scatter * static_cast<double>(last));
  l2_.reset();  // what kernels touched is not in it
  return regime;
}

}  // namespace weft
