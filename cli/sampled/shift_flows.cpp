#include "cli/sampled/shift_flows.h"

#include <algorithm>

namespace weft {

namespace {
// Operations behind the first one that no GPU has begun, of which a GPU begins some before anyone looks again.
constexpr std::uint32_t kAhead = 64;
}  // namespace

bool is_shift(const ProgramOp& op) {
  return op.kind == ProgramOpKind::collective && op.collective.kind == CollectiveKind::shift && !op.collective.first;
}

bool ShiftFlows::has_begun(const Machine& machine, std::uint32_t op) {
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    if (machine.gpu(g).frontend().has_been_ready(OpId{op})) return true;
  }
  return false;
}

void ShiftFlows::choose(const Machine& machine) {
  const auto ops = static_cast<std::uint32_t>(program_->ops.size());
  while (next_ < ops && has_begun(machine, next_)) ++next_;
  bool alone = true;
  std::vector<OpId> running;
  for (std::size_t g = 0; g < machine.gpus() && alone; ++g) {
    machine.gpu(g).communicating(running);
    alone = std::ranges::all_of(running, [&](OpId op) { return is_shift(program_->ops[op.value]); });
  }
  for (std::uint32_t i = next_; i < std::min(ops, next_ + kAhead); ++i) {
    if (is_shift(program_->ops[i]) && timed_[i] != alone && !has_begun(machine, i)) timed_[i] = alone;
  }
}

Transfer transfer_of(const ShiftByItself& shift, std::uint32_t from, std::uint32_t to, bool between_nodes) {
  const SubCycle sooner = std::min(shift.first[from], shift.first[to]);
  if (!between_nodes) return {sooner, sooner, sooner, 0};  // who is through sooner was held up by nothing else
  return {.takes = shift.first[to],
          .staged = shift.shifts > 1 ? shift.both[to] - shift.first[to] : shift.first[to],
          .sends = sooner,
          .ahead = std::max<SubCycle>(0, shift.both[to] - shift.both[from])};
}

std::uint32_t ShiftFlows::receiver(const Machine& machine, std::uint32_t op, std::uint32_t from) const {
  return machine.stands_for(from + program_->ops[op].collective.distance);
}

Transfer ShiftFlows::transfer(const Machine& machine, std::uint32_t op, std::uint32_t from) const {
  const std::uint32_t to = from + program_->ops[op].collective.distance;
  const bool between_nodes = gpus_per_node_ > 0 && from / gpus_per_node_ != to / gpus_per_node_;
  return transfer_of(by_itself_(OpId{op}), from, receiver(machine, op, from), between_nodes);
}

SubCycle ShiftFlows::come(const Machine& machine, std::uint32_t op, std::uint32_t from) {
  Running& shift = running_.at(op);
  const SubCycle sent = shift.starts[from];
  const SubCycle awaited = shift.starts[receiver(machine, op, from)];
  if (shift.comes[from] >= 0 || sent < 0 || awaited < 0) return shift.comes[from];
  const Transfer way = transfer(machine, op, from);
  const SubCycle come = std::max(sent + way.takes, awaited + way.staged);
  return shift.comes[from] = come;
}

void ShiftFlows::look(Machine& machine, Time now) {
  choose(machine);
  const auto gpus = static_cast<std::uint32_t>(machine.gpus());
  for (std::uint32_t g = 0; g < gpus; ++g) {
    Gpu& gpu = machine.gpu(g);
    gpu.come_to(now);
    for (const TimedKernel& kernel : gpu.timed()) {
      if (!is_shift(program_->ops[kernel.op.value])) continue;
      Running& shift = running_[kernel.op.value];
      shift.starts.resize(gpus, -1);
      shift.comes.resize(gpus, -1);
      shift.starts[g] = kernel.start;
    }
  }
  std::erase_if(running_, [&](const auto& running) {
    const std::uint32_t op = running.first;
    bool over = true;
    for (std::uint32_t from = 0; from < gpus; ++from) static_cast<void>(come(machine, op, from));
    for (std::uint32_t g = 0; g < gpus; ++g) {
      if (machine.gpu(g).times()[op].end >= 0) continue;
      over = false;
      std::uint32_t before = 0;  // who sends to it
      while (receiver(machine, op, before) != g) ++before;
      const SubCycle received = running.second.comes[before];
      const SubCycle delivered = running.second.comes[g];
      if (delivered < 0 || received < 0) continue;
      const Transfer way = transfer(machine, op, g);
      const SubCycle through = std::max(running.second.starts[g] + way.sends, delivered - way.ahead);
      machine.gpu(g).set_end(OpId{op}, std::max(received, through));
      machine.changed(g);
    }
    return over;
  });
}

}  // namespace weft
