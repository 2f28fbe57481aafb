#include "workloads/address_plan.h"

#include <algorithm>
#include <optional>

#include "sim/error.h"

namespace weft {
namespace {

struct Lifetime {
  std::size_t first = 0, last = 0;
  bool persistent = false;
};

bool is_persistent(MemoryClass memory_class) {
  return memory_class == MemoryClass::parameters || memory_class == MemoryClass::gradients ||
         memory_class == MemoryClass::optimizer;
}

TensorId storage_of(const Graph& graph, TensorId id) { return graph.tensors[id.value].view_of.value_or(id); }

std::vector<std::optional<Lifetime>> lifetimes(const Graph& graph) {
  std::vector<std::optional<Lifetime>> all(graph.tensors.size());
  const auto use = [&](TensorId id, std::size_t node, bool written) {
    auto& lifetime = all[storage_of(graph, id).value];
    if (!lifetime) lifetime = Lifetime{written ? node : 0, node, false};
    lifetime->last = node;
  };
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const KernelNode& kernel = graph.nodes[i].kernel;
    for (const TensorUse& read : kernel.reads) use(read.tensor, i, false);
    for (const TensorUse& write : kernel.writes) use(write.tensor, i, true);
    const CollectiveNode& collective = graph.nodes[i].collective;
    if (collective.source) use(collective.source->tensor, i, false);
    if (collective.target) use(collective.target->tensor, i, true);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (tensor.held_until && all[i])
      all[i]->last = std::max<std::size_t>(all[i]->last + 1, tensor.held_until->value) - 1;
    if (tensor.view_of || !is_persistent(tensor.memory_class)) continue;
    all[i] = Lifetime{0, graph.nodes.size(), true};
  }
  return all;
}

}  // namespace

std::uint64_t DeviceAllocator::rounded(std::uint64_t bytes) {
  return std::max<std::uint64_t>(1, (bytes + kGranularity - 1) / kGranularity) * kGranularity;
}

std::uint64_t DeviceAllocator::allocate(std::uint64_t bytes) {
  const std::uint64_t size = rounded(bytes);
  auto best = free_.end();
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    if (block->second >= size && (best == free_.end() || block->second < best->second)) best = block;
  }
  if (best == free_.end()) {
    const std::uint64_t address = end_;
    end_ += size;
    used_[address] = size;
    return address;
  }
  const auto [address, available] = *best;
  free_.erase(best);
  if (available > size) free_[address + size] = available - size;
  used_[address] = size;
  return address;
}

void DeviceAllocator::release(std::uint64_t address) {
  const auto used = used_.find(address);
  WEFT_CHECK(used != used_.end(), "release of an address that is not allocated");
  auto block = free_.emplace(address, used->second).first;
  used_.erase(used);
  const auto next = std::next(block);
  if (next != free_.end() && block->first + block->second == next->first) {
    block->second += next->second;
    free_.erase(next);
  }
  if (block == free_.begin()) return;
  const auto previous = std::prev(block);
  if (previous->first + previous->second == block->first) {
    previous->second += block->second;
    free_.erase(block);
  }
}

AddressPlan plan_addresses(const Graph& graph) {
  const auto lives = lifetimes(graph);
  std::vector<std::vector<TensorId>> starting(graph.nodes.size() + 1), ending(graph.nodes.size() + 1);
  AddressPlan plan;
  plan.addresses.assign(graph.tensors.size(), 0);
  DeviceAllocator allocator(kFirstAddress);
  const auto size = [&](TensorId id) {
    return DeviceAllocator::rounded(static_cast<std::uint64_t>(graph.tensors[id.value].bytes.count()));
  };
  const auto start = [&](std::size_t node, TensorId id, bool persistent) {
    plan.addresses[id.value] = allocator.allocate(size(id));
    plan.events.push_back({node, id, Bytes(static_cast<std::int64_t>(size(id))), persistent});
  };
  for (std::uint32_t i = 0; i < lives.size(); ++i) {
    if (!lives[i]) continue;
    if (lives[i]->persistent) {
      start(0, TensorId{i}, true);
    } else {
      starting[lives[i]->first].push_back(TensorId{i});
      ending[lives[i]->last + 1].push_back(TensorId{i});
    }
  }
  for (std::size_t node = 0; node <= graph.nodes.size(); ++node) {
    for (const TensorId id : ending[node]) {
      allocator.release(plan.addresses[id.value]);
      plan.events.push_back({node, id, Bytes(-static_cast<std::int64_t>(size(id))), false});
    }
    for (const TensorId id : starting[node]) start(node, id, false);
  }
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    if (tensor.view_of) plan.addresses[i] = plan.addresses[tensor.view_of->value] + tensor.view_offset;
  }
  plan.end = allocator.end();
  return plan;
}

ProgramOp place(const Node& node, const AddressPlan& plan) {
  const auto operand = [&](const TensorUse& use) {
    const std::uint64_t base = plan.addresses[use.tensor.value] + use.offset;
    return Operand{base, use.bytes_per_block, use.divisor, use.modulo, use.atomic, use.shared_by, use.shared_divisor};
  };
  ProgramOp op;
  op.memory_operation = node.memory_operation;
  switch (node.kind) {
    case NodeKind::kernel:
      op.kind = ProgramOpKind::kernel;
      break;
    case NodeKind::collective:
      op.kind = ProgramOpKind::collective;
      break;
    case NodeKind::copy:
      op.kind = ProgramOpKind::copy;
      break;
    case NodeKind::host_wait:
      op.kind = ProgramOpKind::host_wait;
      break;
  }
  op.name = node.name;
  op.layer = node.layer;
  op.phase = node.phase;
  op.iteration = node.iteration;
  const KernelNode& kernel = node.kernel;
  op.kernel.shape = kernel.shape;
  for (const TensorUse& use : kernel.reads) op.kernel.reads.push_back(operand(use));
  for (const TensorUse& use : kernel.writes) op.kernel.writes.push_back(operand(use));
  op.kernel.flops = kernel.flops;
  op.kernel.iterations = kernel.iterations;
  op.kernel.stages = kernel.stages;
  op.kernel.write_at_end = kernel.write_at_end;
  op.kernel.barrier = kernel.barrier;
  op.kernel.attention = kernel.attention;
  op.kernel.bulk_loads = kernel.bulk_loads;
  op.kernel.pieces = kernel.pieces;
  op.kernel.piece_order = kernel.piece_order;
  op.kernel.origin = kernel.origin;
  const CollectiveNode& collective = node.collective;
  op.collective.kind = collective.kind;
  op.collective.bytes = collective.bytes;
  op.collective.type = collective.type;
  op.collective.distance = collective.distance;
  if (collective.kind == CollectiveKind::send_receive)
    op.collective.root = collective.first.value_or(0);
  else
    op.collective.first = collective.first;
  if (collective.source) {
    op.collective.send_address = plan.addresses[collective.source->tensor.value] + collective.source->offset;
  }
  if (collective.target) {
    op.collective.receive_address = plan.addresses[collective.target->tensor.value] + collective.target->offset;
  }
  op.copy = node.copy;
  if (op.copy.address == 0) op.copy.address = kFirstAddress;
  return op;
}

}  // namespace weft
