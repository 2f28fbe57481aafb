#include "cli/sampled/kernel_paces.h"

#include <algorithm>

namespace weft {

void KernelPaces::look(Time now) {
  for (std::uint32_t g = 0; g < machine_->gpus(); ++g) look(g, now);
}

void KernelPaces::look(std::uint32_t g, Time now) {
  Gpu& gpu = machine_->gpu(g);
  gpu.come_to(now);
  std::vector<Going>& going = going_[g];
  const std::vector<TimedKernel>& timed = gpu.timed();
  std::erase_if(going, [&](const Going& kernel) {
    return std::ranges::none_of(timed, [&](const TimedKernel& other) { return other.op == kernel.op; });
  });
  if (timed.empty()) return;
  for (const TimedKernel& kernel : timed) {
    if (program_->ops[kernel.op.value].kind != ProgramOpKind::kernel) continue;
    if (std::ranges::any_of(going, [&](const Going& other) { return other.op == kernel.op; })) continue;
    going.push_back({.op = kernel.op, .since = kernel.start, .left = static_cast<double>(known_.alone(kernel.op))});
  }
  std::vector<OpId> company;
  gpu.communicating(company);
  const SubCycle at = gpu.clock().to_subcycles(now) + gpu.skipped().at;
  for (Going& kernel : going) {
    const double with = pace(kernel.op, company);
    if (with == kernel.pace) continue;
    if (kernel.pace > 0) {
      kernel.left -= static_cast<double>(at - kernel.since) / kernel.pace;
      kernel.since = at;
    }
    kernel.pace = with;
    gpu.set_end(kernel.op, kernel.since + static_cast<SubCycle>(std::max(0.0, kernel.left) * kernel.pace));
    machine_->changed(g);
  }
}

double KernelPaces::pace(OpId kernel, const std::vector<OpId>& company) {
  double longer = 0;
  for (const OpId collective : company) {
    const PaceBeside& beside = known_.beside(kernel, collective);
    longer += beside.times_longer - 1;
    ledgers_[kernel_signature(program_->ops[kernel.value])] = beside.ledger;
  }
  return 1 + longer;
}

KernelLedger KernelPaces::ledger(OpId kernel) const {
  const auto found = ledgers_.find(kernel_signature(program_->ops[kernel.value]));
  return found == ledgers_.end() ? KernelLedger() : found->second;
}

}  // namespace weft
