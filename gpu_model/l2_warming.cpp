#include "gpu_model/l2_warming.h"

#include <algorithm>
#include <array>
#include <vector>

#include "gpu_model/occupancy.h"

namespace weft {

namespace {

// Parts of operands that have been seen, so that each counts once.
class Seen {
 public:
  bool add(std::size_t operand, const LineStream& slice, std::uint32_t from, bool stored) {
    // Who shares nothing need not be looked up: its slices differ.
    if (!slice.through_l1 && !slice.atomic) return true;
    return parts_.at(stored ? Phase::kMaxLoads + operand : operand).insert(slice.first + from).second;
  }

 private:
  std::array<std::unordered_set<LineAddress>, Phase::kMaxLoads + Phase::kMaxStores> parts_;
};

// In so many steps a phase is touched: rounds together, where there are more.
constexpr std::uint32_t kMostSteps = 8;

// Where a few lines are touched over and over, more waves do not change what the L2 holds.
constexpr std::uint64_t kMostWavesTold = 16;

// Blocks that are asked for the pages of a kernel: pages are large.
constexpr std::uint64_t kPageSamples = 64;

template <class Visit>
void for_slices(const KernelProgram& kernel, std::uint64_t block, Visit&& visit) {
  for (std::uint32_t p = 0; p < kernel.phases(); ++p) {
    const Phase phase = kernel.phase(block, p);
    for (std::size_t i = 0; i < phase.load_count; ++i) visit(i, phase.loads.at(i), false);
    for (std::size_t i = 0; i < phase.store_count; ++i) visit(i, phase.stores.at(i), true);
  }
}

}  // namespace

std::uint64_t resident_blocks(const GpuSpec& gpu, const KernelProgram& kernel) {
  return std::uint64_t{gpu.compute_units} * std::max(1U, blocks_per_unit(gpu.compute_unit, kernel.needs()));
}

L2Cache::Touched touch_blocks(const KernelProgram& kernel, std::uint64_t first, std::uint64_t end,
                              std::uint64_t resident, L2Cache& l2, std::uint64_t storing,
                              std::uint32_t slices) {
  L2Cache::Touched moved;
  std::vector<Phase> wave;
  for (std::uint64_t begin = first; begin < end; begin += resident) {
    const std::uint64_t behind = std::min(end, begin + resident);
    for (std::uint32_t p = 0; p < kernel.phases(); ++p) {
      wave.clear();
      for (std::uint64_t block = begin; block < behind; ++block) wave.push_back(kernel.phase(block, p));
      const std::uint32_t steps = std::min(wave.front().rounds, kMostSteps);
      Seen seen;
      for (std::uint32_t step = 0; step < steps; ++step) {
        const auto touch = [&](std::size_t operand, const LineStream& slice, bool stored) {
          const std::uint32_t from = slice.lines_before(step, steps);
          const std::uint32_t to = slice.lines_before(step + 1, steps);
          if (from == to || !seen.add(operand, slice, from, stored)) return;
          const L2Cache::Use use = stored ? L2Cache::Use::write : L2Cache::Use::read;
          moved += l2.touch({.first = slice.first + from,
                             .count = to - from,
                             .first_sectors = slice.sectors(from),
                             .last_sectors = slice.sectors(to - 1)},
                            slice.atomic ? L2Cache::Use::atomic : use, slices);
        };
        for (std::size_t b = 0; b < wave.size(); ++b) {
          const Phase& phase = wave[b];
          for (std::size_t i = 0; i < phase.load_count; ++i) touch(i, phase.loads.at(i), false);
          if (begin + b + storing >= end) continue;
          for (std::size_t i = 0; i < phase.store_count; ++i) touch(i, phase.stores.at(i), true);
        }
      }
    }
  }
  return moved;
}

void touch_pages(const KernelProgram& kernel, const TlbSpec& tlb, L2Cache& l2) {
  LineAddress last = ~LineAddress{0};
  const auto lines_of_page = static_cast<LineAddress>(tlb.page / kLineBytes);
  const std::uint64_t step = std::max<std::uint64_t>(1, kernel.blocks() / kPageSamples);
  for (std::uint64_t block = 0; block < kernel.blocks(); block += step) {
    for_slices(kernel, block, [&](std::size_t /*operand*/, const LineStream& slice, bool /*stored*/) {
      if (slice.lines == 0 || slice.first / lines_of_page == last) return;
      last = slice.first / lines_of_page;
      l2.translate(slice.first, 0);
    });
  }
}

std::uint64_t last_blocks_of(const KernelProgram& kernel, std::uint64_t first, std::uint64_t end, std::int64_t& bytes,
                             CountedSlices& counted) {
  while (end > first && bytes > 0) {
    --end;
    for_slices(kernel, end, [&](std::size_t /*operand*/, const LineStream& slice, bool /*stored*/) {
      if (counted.insert(slice.first).second) bytes -= std::int64_t{slice.lines} * kLineBytes;
    });
  }
  return end;
}

std::uint64_t first_told(const KernelProgram& kernel, std::uint64_t end, std::uint64_t resident, std::int64_t bytes) {
  CountedSlices counted;
  return last_blocks_of(kernel, end - std::min(end, kMostWavesTold * resident), end, bytes, counted);
}

}  // namespace weft
