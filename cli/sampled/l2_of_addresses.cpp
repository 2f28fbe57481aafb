#include "cli/sampled/l2_of_addresses.h"

#include <algorithm>
#include <vector>

#include "cli/sampled/regime.h"
#include "gpu_model/l2_warming.h"
#include "network/generated_schedule.h"

namespace weft {

std::int64_t bytes_received(const CollectiveDemand& collective) {
  return output_bytes_of({.kind = collective.kind,
                          .bytes = collective.bytes.count(),
                          .element_bytes = bytes_per_element(collective.type),
                          .ranks = static_cast<std::uint32_t>(collective.group.size()),
                          .root = collective.root},
                         0);
}

L2Cache l2_of_addresses(const GpuSpec& gpu, const Program& program, OpId op, bool communicates) {
  const SharedList<ProgramOp>& ops = program.ops;
  struct Toucher {
    std::uint32_t op = 0;
    std::uint64_t first_block = 0;
  };
  std::vector<Toucher> touchers;
  // What is touched again counts once; but how far back one looks has an end. More than fills the cache, since slices
  // that overlap count each by itself and some sets keep their lines longer than others.
  CountedSlices counted;
  std::int64_t left = 2 * gpu.l2.bytes;
  std::int64_t look = 2 * kLookBack * gpu.l2.bytes;
  for (std::uint32_t i = op.value; i-- > 0 && left > 0 && look > 0;) {
    Toucher toucher{i};
    if (ops[i].kind == ProgramOpKind::kernel) {
      const KernelProgram kernel(ops[i].kernel, gpu, ops[i].name);
      toucher.first_block = last_blocks_of(kernel, 0, kernel.blocks(), left, counted);
      for (const Operand& operand : ops[i].kernel.writes) {
        look -= static_cast<std::int64_t>(kernel.blocks() * operand.bytes_per_block);
      }
    } else if (ops[i].kind == ProgramOpKind::collective && communicates) {
      left -= bytes_received(ops[i].collective);
    }
    touchers.push_back(toucher);
  }
  L2Cache l2(gpu.l2, gpu.hbm, gpu.clock);
  const auto touch = [&](std::uint64_t address, std::int64_t bytes, bool communication) {
    l2.touch({.first = static_cast<LineAddress>(address / kLineBytes),
              .count = static_cast<std::uint32_t>((bytes + kLineBytes - 1) / kLineBytes),
              .communication = communication},
             L2Cache::Use::write);
  };
  std::reverse(touchers.begin(), touchers.end());  // the latest is touched last
  for (const auto& toucher : touchers) {
    const ProgramOp& before = ops[toucher.op];
    if (before.kind == ProgramOpKind::kernel) {
      const KernelProgram kernel(before.kernel, gpu, before.name);
      touch_blocks(kernel, toucher.first_block, kernel.blocks(), resident_blocks(gpu, kernel), l2);
      touch_pages(kernel, gpu.l2.tlb, l2);
    } else if (before.kind == ProgramOpKind::collective && communicates) {
      touch(before.collective.receive_address, bytes_received(before.collective), true);
    } else if (before.kind == ProgramOpKind::copy && before.copy.to_device) {
      touch(before.copy.address, before.copy.bytes.count(), false);
    }
  }
  l2.rest();
  return l2;
}

}  // namespace weft
