// Waves of a kernel that are left out, and moments at which a run may be cut.
#include "gpu_model/gpu.h"
#include "gpu_model/l2_warming.h"

namespace weft {

void Gpu::watch_waves(const RunningKernel& kernel) {
  waves_.reset();
  if (!kernel.program || active_.size() != 1 || kernel.next_block == kernel.blocks) return;
  double lines = 0;
  double own = 0;
  const auto count = [&](const LineStream& stream) {
    lines += stream.lines;
    if (!stream.through_l1) own += stream.lines;
  };
  for (std::uint32_t p = 0; p < kernel.program->phases(); ++p) {
    const Phase phase = kernel.program->phase(0, p);
    for (std::size_t i = 0; i < phase.load_count; ++i) count(phase.loads.at(i));
    for (std::size_t i = 0; i < phase.store_count; ++i) count(phase.stores.at(i));
  }
  waves_.emplace(kernel.blocks, kernel.next_block, lines, own, static_cast<double>(spec_.l2.bytes) / kLineBytes);
}

void Gpu::leave_out_waves(RunningKernel& kernel) {
  const std::uint64_t blocks = waves_->block_ended(kernel.blocks_done, kernel.next_block, [&] {
    const HbmStatistics hbm = l2_.hbm_statistics();
    return GpuProgress{now(), hbm.read_bytes, hbm.write_bytes, statistics_.memory_transactions,
                       statistics_.unit_seconds_compute};
  });
  if (blocks == 0) return;
  if (active_.size() != 1) {  // not by itself any more
    waves_.reset();
    return;
  }
  skipped_ += waves_->skipped();
  skip_uncertainty_ += waves_->uncertainty();
  std::int64_t bytes = spec_.l2.bytes;
  const std::uint64_t end = kernel.next_block + blocks;
  CountedSlices counted;
  touch_blocks(*kernel.program, last_blocks_of(*kernel.program, kernel.next_block, end, bytes, counted), end, l2_);
  kernel.next_block = end;
  kernel.blocks_done += blocks;
}

std::optional<std::uint32_t> Gpu::quiet() const {
  if (active_.empty() && flushing_.empty()) return frontend_.ended_prefix();
  return std::nullopt;
}

}  // namespace weft
