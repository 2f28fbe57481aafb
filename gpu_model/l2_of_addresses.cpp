#include "gpu_model/l2_of_addresses.h"

#include <algorithm>
#include <vector>

#include "gpu_model/demand_size.h"
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

namespace {

// More than fills the cache, since slices that overlap count each by itself and some sets keep their lines longer than
// others.
std::int64_t bytes_that_replace_all(const L2Spec& l2) { return 2 * l2.bytes; }

void touch(std::uint64_t address, std::int64_t bytes, bool communication, L2Cache& l2) {
  l2.touch({.first = static_cast<LineAddress>(address / kLineBytes),
            .count = static_cast<std::uint32_t>((bytes + kLineBytes - 1) / kLineBytes),
            .communication = communication},
           L2Cache::Use::write);
}

// Blocks of a kernel from the first one given.
void touch_operation(const GpuSpec& gpu, const ProgramOp& op, std::uint64_t first_block, bool communicates,
                     L2Cache& l2) {
  if (op.kind == ProgramOpKind::kernel) {
    const KernelProgram kernel(op.kernel, gpu, op.name);
    touch_blocks(kernel, first_block, kernel.blocks(), resident_blocks(gpu, kernel), l2);
    touch_pages(kernel, gpu.l2.tlb, l2);
  } else if (op.kind == ProgramOpKind::collective && communicates) {
    touch(op.collective.receive_address, bytes_received(op.collective), true, l2);
  } else if (op.kind == ProgramOpKind::copy && op.copy.to_device) {
    touch(op.copy.address, op.copy.bytes.count(), false, l2);
  }
}

}  // namespace

bool touch_operations(const GpuSpec& gpu, const Program& program, OpId from, OpId to, bool communicates, L2Cache& l2) {
  double left = static_cast<double>(bytes_that_replace_all(gpu.l2));
  for (std::uint32_t i = from.value; i < to.value; ++i) {
    const ProgramOp& op = program.ops[i];
    if (op.kind == ProgramOpKind::kernel) left -= bytes_of(op.kernel);
    if (op.kind == ProgramOpKind::collective && communicates)
      left -= static_cast<double>(bytes_received(op.collective));
    if (left < 0) return false;
  }
  for (std::uint32_t i = from.value; i < to.value; ++i) touch_operation(gpu, program.ops[i], 0, communicates, l2);
  l2.rest();
  return true;
}

L2Cache l2_of_addresses(const GpuSpec& gpu, const Program& program, OpId op, bool communicates) {
  const SharedList<ProgramOp>& ops = program.ops;
  struct Toucher {
    std::uint32_t op = 0;
    std::uint64_t first_block = 0;
  };
  std::vector<Toucher> touchers;
  // What is touched again counts once; but how far back one looks has an end.
  CountedSlices counted;
  std::int64_t left = bytes_that_replace_all(gpu.l2);
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
  std::reverse(touchers.begin(), touchers.end());  // the latest is touched last
  for (const Toucher& toucher : touchers) {
    touch_operation(gpu, ops[toucher.op], toucher.first_block, communicates, l2);
  }
  l2.rest();
  return l2;
}

}  // namespace weft
