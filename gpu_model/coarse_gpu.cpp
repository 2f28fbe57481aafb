#include "gpu_model/coarse_gpu.h"

#include <algorithm>
#include <cmath>

#include "network/packet.h"

namespace weft {

namespace {

// Slices that are taken together, and channels with them: both halves of the L2 keep some.
std::uint32_t merged_slices(const GpuSpec& gpu, std::uint32_t grain) {
  constexpr std::uint32_t kFewestSlices = 4;
  for (std::uint32_t merged = grain; merged > 1; --merged) {
    const bool divides = gpu.l2.slices % (2 * merged) == 0 && gpu.hbm.channels % merged == 0;
    if (divides && gpu.l2.slices / merged >= kFewestSlices) return merged;
  }
  return 1;
}

std::uint32_t divided(std::uint32_t n, double by) {
  return n == 0 ? 0 : std::max(1U, static_cast<std::uint32_t>(std::lround(n / by)));
}

}  // namespace

GpuSpec coarse(const GpuSpec& gpu, std::uint32_t grain) {
  GpuSpec coarse = gpu;
  coarse.grain = grain;
  ComputeUnitSpec& unit = coarse.compute_unit;
  unit.max_outstanding_lines = divided(unit.max_outstanding_lines, grain);
  unit.max_outstanding_stores = divided(unit.max_outstanding_stores, grain);
  coarse.gpc_bytes_per_cycle /= grain;
  unit.l2_bytes_per_cycle /= grain;
  unit.store_bytes_per_cycle /= grain;
  coarse.l2.tlb.unit_page /= grain;
  coarse.l2.tlb.page /= grain;
  const std::uint32_t merged = merged_slices(gpu, grain);
  const double slower = static_cast<double>(grain) / merged;  // each that is left
  L2Spec& l2 = coarse.l2;
  l2.slices /= merged;
  l2.bytes_per_cycle /= slower;
  l2.write_bytes_per_cycle /= slower;
  l2.atomic_bytes_per_cycle /= slower;
  const std::int64_t set_bytes = std::int64_t{kLineBytes} * l2.ways * l2.slices;
  l2.bytes = std::max(set_bytes, l2.bytes / grain / set_bytes * set_bytes);
  coarse.hbm.channels /= merged;
  coarse.hbm.bytes /= grain;
  coarse.hbm.bandwidth = Bandwidth(coarse.hbm.bandwidth.count() / grain);
  coarse.host_link = Bandwidth(coarse.host_link.count() / grain);
  return coarse;
}

void copy_lines(const L2Cache& from, std::uint32_t grain, std::uint32_t wanted, L2Cache& to) {
  from.for_each_line([&](LineAddress line, bool dirty, bool communication) {
    const std::uint64_t first = std::uint64_t{line} * grain;
    if (first % wanted != 0) return;  // the first of those that a line stands for speaks for all
    to.touch({.first = static_cast<LineAddress>(first / wanted),
              .count = std::max(1U, grain / wanted),
              .communication = communication},
             dirty ? L2Cache::Use::write : L2Cache::Use::read);
  });
}

}  // namespace weft
