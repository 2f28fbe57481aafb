#include "gpu_model/kernel_signature.h"

#include <bit>
#include <string>

namespace weft {

namespace {

// FNV-1a: the same everywhere, as it goes into files.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

}  // namespace

bool same_demand(const KernelDemand& a, const KernelDemand& b) {
  return a.shape == b.shape && a.reads == b.reads && a.writes == b.writes && a.flops == b.flops &&
         a.iterations == b.iterations && a.stages == b.stages && a.write_at_end == b.write_at_end &&
         a.barrier == b.barrier && a.attention == b.attention && a.pieces == b.pieces && a.bulk_loads == b.bulk_loads &&
         a.piece_order == b.piece_order && a.instructions == b.instructions &&
         a.extra_cycles_per_block == b.extra_cycles_per_block && a.extra_waits == b.extra_waits &&
         a.memory_scale == b.memory_scale;
}

KernelSignature launch_signature(const ProgramOp& op) {
  KernelSignature out{hash_of(op.name)};
  for (const auto& size : {op.kernel.shape.grid, op.kernel.shape.block})
    out.insert(out.end(), size.begin(), size.end());
  return out;
}

KernelSignature kernel_signature(const ProgramOp& op) {
  const KernelDemand& demand = op.kernel;
  KernelSignature out{hash_of(op.name)};
  const auto add = [&out](auto... values) { (out.push_back(static_cast<std::uint64_t>(values)), ...); };
  for (const auto& size : {demand.shape.grid, demand.shape.block}) add(size[0], size[1], size[2]);
  add(demand.shape.registers_per_thread, demand.shape.shared_memory_bytes);
  for (const double flops : demand.flops) add(std::bit_cast<std::uint64_t>(flops));
  add(demand.iterations, demand.stages, demand.write_at_end, demand.barrier, demand.attention,
      demand.shape.cluster_blocks, std::bit_cast<std::uint64_t>(demand.instructions), demand.reads.size());
  if (demand.pieces > 0) add(demand.pieces, demand.piece_order);
  if (demand.bulk_loads) add(demand.bulk_loads);
  for (const auto* operands : {&demand.reads, &demand.writes}) {
    for (const Operand& operand : *operands) {
      add(operand.bytes_per_block, operand.divisor, operand.modulo, operand.atomic);
      if (operand.shared_by > 1) add(operand.shared_by, operand.shared_divisor);
    }
  }
  return out;
}

}  // namespace weft
