#include "cli/sampled/other_gpus.h"

#include <map>

#include "gpu_model/kernel_signature.h"

namespace weft {

namespace {
// Operations behind the first one that has not ended, among which others may have.
constexpr std::uint32_t kAhead = 64;
}  // namespace

std::vector<std::uint32_t> kinds_of_kernels(const Program& program) {
  std::map<KernelSignature, std::uint32_t> known;
  std::vector<std::uint32_t> kinds;
  for (const ProgramOp& op : program.ops) {
    kinds.push_back(0);
    if (op.kind != ProgramOpKind::kernel || op.fused) continue;
    kinds.back() = known.try_emplace(kernel_signature(op), static_cast<std::uint32_t>(known.size() + 1)).first->second;
  }
  return kinds;
}

OtherGpus::OtherGpus(Machine& machine, const Program& program, const std::vector<std::uint32_t>* kinds,
                     std::uint32_t from, std::function<SubCycle(OpId)> alone)
    : machine_(&machine),
      program_(&program),
      kinds_(kinds),
      alone_(std::move(alone)),
      first_open_(from),
      seen_(program.ops.size(), false) {}

void OtherGpus::set(OpId kernel, SubCycle lasts) {
  for (std::size_t g = 1; g < machine_->gpus(); ++g) {
    machine_->gpu(g).set_duration((*kinds_)[kernel.value], lasts);
    machine_->changed(g);
  }
}

void OtherGpus::look(Time now) {
  if (kinds_ == nullptr) return;
  for (std::size_t g = 1; g < machine_->gpus(); ++g) machine_->gpu(g).come_to(now);
  const std::vector<OpTimes>& times = machine_->gpu(0).times();
  const auto ops = static_cast<std::uint32_t>(program_->ops.size());
  while (first_open_ < ops && seen_[first_open_]) ++first_open_;
  for (std::uint32_t i = first_open_; i < std::min(ops, first_open_ + kAhead); ++i) {
    if (seen_[i] || times[i].end < 0) continue;
    seen_[i] = true;
    const bool before = times[i].start == 0;  // the stretch began
    if ((*kinds_)[i] > 0 && !before) set(OpId{i}, times[i].end - times[i].start);
  }
  for (std::size_t g = 1; g < machine_->gpus(); ++g) {
    for (const OpId op : machine_->gpu(g).untimed()) {
      if (times[op.value].start < 0) set(op, alone_(op));
    }
  }
}

}  // namespace weft
