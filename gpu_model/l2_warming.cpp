#include "gpu_model/l2_warming.h"

#include <array>

namespace weft {

namespace {

// Slices of operands that have been seen, so that each counts once.
class Seen {
 public:
  bool add(std::size_t operand, const LineStream& slice) {
    // Who shares nothing need not be looked up: its slices differ.
    return slice.lines > 0 && (!slice.through_l1 || slices_.at(operand).insert(slice.first).second);
  }

 private:
  std::array<std::unordered_set<LineAddress>, Phase::kMaxLoads> slices_;
};

template <class Visit>
void for_slices(const KernelProgram& kernel, std::uint64_t block, Visit&& visit) {
  for (std::uint32_t p = 0; p < kernel.phases(); ++p) {
    const Phase phase = kernel.phase(block, p);
    for (std::size_t i = 0; i < phase.load_count; ++i) visit(i, phase.loads.at(i), false);
    for (std::size_t i = 0; i < phase.store_count; ++i) visit(i, phase.stores.at(i), true);
  }
}

}  // namespace

L2Cache::Touched touch_blocks(const KernelProgram& kernel, std::uint64_t first, std::uint64_t end, L2Cache& l2) {
  Seen seen;
  L2Cache::Touched moved;
  for (std::uint64_t block = first; block < end; ++block) {
    for_slices(kernel, block, [&](std::size_t operand, const LineStream& slice, bool stored) {
      if (!stored && !seen.add(operand, slice)) return;
      moved += l2.touch({.first = slice.first,
                         .count = slice.lines,
                         .first_sectors = slice.first_sectors,
                         .last_sectors = slice.last_sectors},
                        stored || slice.atomic, slice.through_l1);
    });
  }
  return moved;
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

}  // namespace weft
