#include "cli/sampled/like_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "gpu_model/demand_size.h"
#include "gpu_model/kernel_signature.h"
#include "gpu_model/wave_skip.h"

namespace weft {

namespace {

// As the signature, with what was fitted.
KernelSignature kind_of(const ProgramOp& op) {
  KernelSignature kind = kernel_signature(op);
  for (const double fitted : {op.kernel.extra_cycles_per_block, op.kernel.memory_scale}) {
    kind.push_back(std::bit_cast<std::uint64_t>(fitted));
  }
  kind.push_back(op.kernel.extra_waits ? 1 : 0);
  return kind;
}

double bytes_of(const L2Cache::Touched& told) {
  return static_cast<double>(told.fetched_bytes + told.written_back_bytes);
}

double hbm_bytes(const Regime& regime) { return static_cast<double>(regime.hbm_read_bytes + regime.hbm_write_bytes); }

}  // namespace

LikeKernels::LikeKernels(const GpuSpec& gpu, const Program& program)
    : kind_of_(program.ops.size(), kNone), hbm_rate_(hbm_rate_of(gpu)) {
  std::map<KernelSignature, std::uint32_t> first;  // operation
  for (std::uint32_t i = 0; i < kind_of_.size(); ++i) {
    const ProgramOp& op = program.ops[i];
    if (op.kind != ProgramOpKind::kernel || streamed_bytes(op.kernel) < kLongBytes) continue;
    const auto [at, fresh] = first.try_emplace(kind_of(op), i);
    if (fresh) continue;
    std::uint32_t& kind = kind_of_[at->second];
    if (kind == kNone) {
      kind = static_cast<std::uint32_t>(samples_.size());
      samples_.emplace_back();
      bytes_of_kind_.push_back(bytes_of(op.kernel));
    }
    kind_of_[i] = kind;
  }
}

std::optional<Regime> LikeKernels::find(OpId kernel, const L2Cache::Touched& told) const {
  const Sample* nearest = nullptr;
  double least = kAlike;
  const std::uint32_t kind = kind_of_[kernel.value];
  for (const Sample& sample : samples_[kind]) {
    const double moved = hbm_bytes(sample.regime);
    const double apart = std::abs(bytes_of(told) - bytes_of(sample.told)) / std::max(moved, bytes_of_kind_[kind]);
    if (apart > least) continue;
    least = apart;
    nearest = &sample;
  }
  if (nearest == nullptr) return std::nullopt;
  Regime regime = nearest->regime;
  const auto as_told = [](std::int64_t& bytes, std::int64_t now, std::int64_t then) {
    bytes = std::max<std::int64_t>(0, bytes + now - then);
  };
  as_told(regime.hbm_read_bytes, told.fetched_bytes, nearest->told.fetched_bytes);
  as_told(regime.hbm_write_bytes, told.written_back_bytes, nearest->told.written_back_bytes);
  SubCycle& duration = regime.operations.front().duration;
  const double longer =
      time_of_bytes(1, hbm_bytes(nearest->regime), hbm_bytes(regime), hbm_rate_ * static_cast<double>(duration));
  duration = std::llround(static_cast<double>(duration) * longer);
  regime.unit_seconds_compute *= longer;
  regime.uncertainty = std::llround(
      std::hypot(static_cast<double>(regime.uncertainty) * longer, kScatter * static_cast<double>(duration)));
  regime.second = 0;
  return regime;
}

void LikeKernels::add(OpId kernel, const L2Cache::Touched& told, const Regime& regime) {
  samples_[kind_of_[kernel.value]].push_back({told, regime});
}

}  // namespace weft
