#include "workloads/graph_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"

namespace weft {

TensorId GraphBuilder::add_tensor(std::string name, Bytes bytes, MemoryClass memory_class) {
  const TensorId id{static_cast<std::uint32_t>(graph_.tensors.size())};
  graph_.tensors.push_back({std::move(name), bytes, memory_class});
  accesses_.emplace_back();
  views_.emplace_back();
  return id;
}

TensorId GraphBuilder::add_view(std::string name, Bytes bytes, TensorId storage) {
  const TensorId id = add_tensor(std::move(name), bytes, tensor(storage).memory_class);
  tensor(id).view_of = storage;
  views_[storage.value].push_back(id);
  return id;
}

void GraphBuilder::place_views(TensorId storage, const std::vector<TensorId>& order) {
  WEFT_CHECK(order.size() == views_[storage.value].size(), tensor(storage).name);
  std::uint64_t offset = 0;
  for (const TensorId view : order) {
    WEFT_CHECK(tensor(view).view_of == storage, tensor(view).name);
    tensor(view).view_offset = offset;
    const auto bytes = static_cast<std::uint64_t>(tensor(view).bytes.count());
    offset += (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  }
  tensor(storage).bytes = Bytes(static_cast<std::int64_t>(offset));
}

std::vector<TensorId> GraphBuilder::overlapping(TensorId id) const {
  std::vector<TensorId> all{id};
  if (tensor(id).view_of) all.push_back(*tensor(id).view_of);
  all.insert(all.end(), views_[id.value].begin(), views_[id.value].end());
  return all;
}

namespace {
struct Operands {
  std::vector<TensorId> reads, writes;
};

Operands operands_of(const Node& node) {
  Operands all;
  for (const TensorUse& use : node.kernel.reads) all.reads.push_back(use.tensor);
  for (const TensorUse& use : node.kernel.writes) all.writes.push_back(use.tensor);
  if (node.collective.source) all.reads.push_back(node.collective.source->tensor);
  if (node.collective.target) all.writes.push_back(node.collective.target->tensor);
  return all;
}
}  // namespace

OpId GraphBuilder::add(Node node) {
  const OpId id{static_cast<std::uint32_t>(graph_.nodes.size())};
  std::vector<OpId>& dependencies = node.dependencies;
  const auto depend = [&](const std::vector<OpId>& ops) {
    dependencies.insert(dependencies.end(), ops.begin(), ops.end());
  };
  const Operands operands = operands_of(node);
  for (const TensorId read : operands.reads) {
    for (const TensorId tensor : overlapping(read)) depend(accesses_[tensor.value].writer);
  }
  for (const TensorId written : operands.writes) {
    for (const TensorId tensor : overlapping(written)) {
      depend(accesses_[tensor.value].writer);
      depend(accesses_[tensor.value].readers);
    }
  }
  std::sort(dependencies.begin(), dependencies.end());
  dependencies.erase(std::unique(dependencies.begin(), dependencies.end()), dependencies.end());

  for (const TensorId read : operands.reads) accesses_[read.value].readers.push_back(id);
  for (const TensorId written : operands.writes) accesses_[written.value] = {{id}, {}};
  graph_.nodes.push_back(std::move(node));
  return id;
}

Graph GraphBuilder::finish() {
  try {
    validate(graph_, "");
  } catch (const InputError& error) {
    throw InternalError(fmt::format("graph '{}' as built: {}", graph_.name, error.what()));
  }
  accesses_.clear();
  views_.clear();
  return std::move(graph_);
}

}  // namespace weft
