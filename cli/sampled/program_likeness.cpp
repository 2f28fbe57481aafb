#include "cli/sampled/program_likeness.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu_model/calibration.h"

namespace weft {

namespace {

bool in_place(const CollectiveDemand& demand) { return demand.send_address == demand.receive_address; }

// In groups of as many, which may be others.
bool same(const CollectiveDemand& a, const CollectiveDemand& b) {
  return a.kind == b.kind && a.bytes == b.bytes && a.type == b.type && a.group.size() == b.group.size() &&
         a.root == b.root && a.distance == b.distance && a.first == b.first && in_place(a) == in_place(b);
}

// But for where buffers lie, who else is in a collective, and when they meet.
bool same(const ProgramOp& a, const ProgramOp& b) {
  return a.kind == b.kind && a.fused == b.fused && a.memory_operation == b.memory_operation && a.stream == b.stream &&
         a.host_delay == b.host_delay && a.start_delay == b.start_delay && same(a.collective, b.collective) &&
         a.copy.bytes == b.copy.bytes && a.copy.to_device == b.copy.to_device;
}

// With the buffers of `at`.
KernelDemand moved(KernelDemand demand, const KernelDemand& at) {
  const auto move = [](std::vector<Operand>& operands, const std::vector<Operand>& to) {
    for (std::size_t i = 0; i < std::min(operands.size(), to.size()); ++i) operands[i].base = to[i].base;
  };
  move(demand.reads, at.reads);
  move(demand.writes, at.writes);
  return demand;
}

bool same_addresses(const ProgramOp& a, const ProgramOp& b) {
  return a.collective.send_address == b.collective.send_address &&
         a.collective.receive_address == b.collective.receive_address && a.copy.address == b.copy.address;
}

}  // namespace

ProgramLikeness compare_programs(const std::vector<Program>& programs) {
  const Program& first = programs.front();
  ProgramLikeness likeness;
  for (std::size_t g = 1; g < programs.size(); ++g) {
    const Program& other = programs[g];
    if (other.ops.shares(first.ops) && other.priorities == first.priorities) continue;
    if (other.ops.size() != first.ops.size() || other.priorities != first.priorities) {
      return {fmt::format("GPU {} has other operations than GPU 0", g)};
    }
    for (std::size_t i = 0; i < first.ops.size(); ++i) {
      const ProgramOp& a = first.ops[i];
      const ProgramOp& b = other.ops[i];
      const bool same_kernel = same_demand(a.kernel, b.kernel);
      if (!same(a, b) || a.waits != b.waits || a.collective.sequence != b.collective.sequence ||
          (!same_kernel && !same_demand(moved(a.kernel, b.kernel), b.kernel))) {
        return {fmt::format("operation {} ({}) of GPU {} is not that of GPU 0", i, b.name, g)};
      }
      if (!same_kernel || !same_addresses(a, b)) likeness.at_other_addresses = true;
    }
  }
  return likeness;
}

bool is_alike_later(const ProgramOp& op, const ProgramOp& later, std::uint32_t ahead) {
  const auto ahead_of = [ahead](OpId a, OpId b) { return a.value + ahead == b.value; };
  return op.kind != ProgramOpKind::host_wait && op.phase == later.phase && op.iteration == later.iteration &&
         same(op, later) && std::ranges::equal(op.waits, later.waits, ahead_of) &&
         op.collective.group == later.collective.group && same_demand(moved(op.kernel, later.kernel), later.kernel);
}

}  // namespace weft
