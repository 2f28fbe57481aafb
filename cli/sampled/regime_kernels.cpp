// Kernels by themselves.
#include <algorithm>
#include <cmath>

#include "gpu_model/l2_of_addresses.h"
#include "cli/sampled/regime_lab.h"
#include "gpu_model/demand_size.h"
#include "gpu_model/l2_warming.h"
#include "sim/error.h"

namespace weft {

namespace {
// So exactly is it known which kernel moved what: less than it takes to launch the next one.
constexpr Time kFlowStep = nanoseconds(500);

// Operations before the first collective of which it is kept what the L2 holds; a stretch that begins earlier has a
// guess. A choice: each is a copy of the tags.
constexpr std::uint32_t kKeptBefore = 4;

// One L2 slice in eight is asked whether it lets through as much: lines are spread over them by a hash, evenly.
constexpr std::uint32_t kAskedSlices = 7;

void run_to_end_of(OpId op, Gpu& gpu) {
  while (gpu.times()[op.value].end < 0) {
    const Time next = gpu.next_activity();
    WEFT_CHECK(next != Time::max(), "a kernel by itself ends");
    gpu.advance(next + kFlowStep);
  }
}

GpuProgress done_by(const Gpu& gpu) {
  const HbmStatistics hbm = gpu.l2().hbm_statistics();
  GpuProgress done{.hbm_read_bytes = hbm.read_bytes,
                   .hbm_write_bytes = hbm.write_bytes,
                   .unit_seconds_compute = gpu.statistics().unit_seconds_compute};
  done += gpu.skipped();
  done.memory_transactions = gpu.statistics().memory_transactions;  // those that were simulated
  return done;
}

}  // namespace

// What comes first beside a collective begins with or soon before it; until then all is as without communication.
void RegimeLab::keep_before_first_collective(OpId op) {
  if (scripts_ != nullptr || op.value > first_collective_ || first_collective_ - op.value > kKeptBefore) return;
  kept_.insert_or_assign(op.value, l2_before(op));
}

// The GPU that runs kernels one after the other, before `op`. If it must begin anew where the L2 is not known, then one
// earlier: a kernel meets what the one before still writes.
void RegimeLab::start_flow_at(OpId op) {
  if (flow_ != nullptr && flow_next_ == op.value) return;
  const SharedList<ProgramOp>& all = programs_->front().ops;
  const bool known = l2_ && l2_at_ == op.value;
  const bool follows = !known && op.value > 0 && all[op.value - 1].kind != ProgramOpKind::host_wait;
  const std::uint32_t first = op.value - (follows ? 1 : 0);
  flow_state_ = state_before(first);
  GpuWork work = quiet_work();
  work.from = &flow_state_;
  work.skip_waves = true;
  L2Cache l2 = l2_before(OpId{first});  // it may be that of the flow
  flow_ = std::make_unique<Gpu>(GpuId{0}, config_->system.gpu, work, LinkPorts());
  flow_->set_l2(std::move(l2));
  flow_done_ = {};
  if (first < op.value) flow_done_ = flow_to_end_of(OpId{first});
}

GpuProgress RegimeLab::flow_to_end_of(OpId op) {
  run_to_end_of(op, *flow_);
  flow_next_ = op.value + 1;
  return done_by(*flow_);
}

void RegimeLab::bring_l2_before(OpId op) {
  if (l2_ && l2_at_ == op.value) return;
  if (l2_ && flow_ != nullptr && flow_next_ == op.value) {
    *l2_ = flow_->l2();
    l2_->rest();
  } else {
    l2_ = l2_before(op);
  }
  l2_at_ = op.value;
}

// Behind as much as fills the L2, nothing is left there that others touched: up to then is where kernels differ that
// ask for the same.
L2Cache::Touched RegimeLab::told_of(const KernelProgram& kernel, double bytes) {
  const std::int64_t l2 = config_->system.gpu.l2.bytes;
  const double share = std::min(1.0, static_cast<double>(WaveSkip::kFills * l2) / bytes);
  const auto blocks = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(kernel.blocks())));
  asked_ = l2_;
  L2Cache::Touched told =
      touch_blocks(kernel, 0, blocks, resident_blocks(config_->system.gpu, kernel), *asked_, 0, kAskedSlices);
  for (std::int64_t* moved : {&told.fetched_bytes, &told.written_back_bytes}) {
    *moved = std::llround(static_cast<double>(*moved) / asked_->share_told(kAskedSlices));
  }
  return told;
}

Regime RegimeLab::kernel(OpId op) {
  if (!like_->worth_asking(op)) return simulated(op);
  const ProgramOp& described = programs_->front().ops[op.value];
  const GpuSpec& gpu = config_->system.gpu;
  const KernelProgram program(described.kernel, gpu, described.name);
  const bool known = l2_ && l2_at_ == op.value;
  bring_l2_before(op);
  const L2Cache::Touched told = told_of(program, bytes_of(described.kernel));
  std::optional<Regime> found = like_->find(op, told);
  if (!found) {
    if (!known) l2_at_ = kNowhere;  // it may be a guess: the flow begins a kernel earlier then
    found = simulated(op);
    like_->add(op, told, *found);
    return *std::move(found);
  }
  const std::uint64_t resident = resident_blocks(gpu, program);
  const std::int64_t filling = WaveSkip::kFills * gpu.l2.bytes;
  const bool all = bytes_of(described.kernel) <= static_cast<double>(filling);
  const std::uint64_t first = all ? 0 : first_told(program, program.blocks(), resident, filling);
  touch_blocks(program, first, program.blocks(), resident, *l2_);
  touch_pages(program, gpu.l2.tlb, *l2_);
  l2_->rest();
  l2_at_ = op.value + 1;
  keep_before_first_collective(OpId{l2_at_});
  return *std::move(found);
}

Regime RegimeLab::simulated(OpId op) {
  start_flow_at(op);
  const double uncertain = flow_->skip_variance();
  const GpuProgress done = flow_to_end_of(op);
  keep_before_first_collective(OpId{flow_next_});
  const GpuProgress moved = done.since(flow_done_);
  flow_done_ = done;
  return observed(*flow_, op, moved, flow_->skip_variance() - uncertain);
}

Regime RegimeLab::observed(const Gpu& gpu, OpId kernel, const GpuProgress& moved, double variance) {
  const OpTimes& times = gpu.times()[kernel.value];
  Regime regime;
  regime.operations.push_back({.duration = times.end - times.start, .ledger = {}});
  regime.hbm_read_bytes = moved.hbm_read_bytes;
  regime.hbm_write_bytes = moved.hbm_write_bytes;
  regime.unit_seconds_compute = moved.unit_seconds_compute;
  regime.uncertainty = std::llround(std::sqrt(variance));
  memory_transactions_ += moved.memory_transactions;
  simulated_ += gpu.clock().to_time(times.end - times.start - moved.at);
  return regime;
}

// By itself from the beginning on: nothing of the kernel before is under way.
Regime RegimeLab::kernel_on(L2Cache l2, OpId op, bool skip_waves) {
  const HostState state = state_before(op.value);
  GpuWork work = quiet_work();
  work.from = &state;
  work.skip_waves = skip_waves;
  Gpu gpu(GpuId{0}, config_->system.gpu, work, LinkPorts());
  gpu.set_l2(std::move(l2));
  run_to_end_of(op, gpu);
  return observed(gpu, op, done_by(gpu), gpu.skip_variance());
}

Regime RegimeLab::kernel_twice(OpId op) {
  const SubCycle second = kernel_on(l2_before(op), op, false).operations.front().duration;
  Regime first = kernel(op);
  first.second = second;
  return first;
}

}  // namespace weft
