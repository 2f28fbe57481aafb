// Builds a Graph in launch order and finds its dependencies: an operation depends on the last writer of what it reads,
// and, where it writes in place, on the last writer and the readers of what it overwrites.
#pragma once

#include <string>
#include <vector>

#include "workloads/graph.h"

namespace weft {

// Where tensors and views start: covers a memory line, and is what CUDA guarantees for an allocation.
inline constexpr std::uint64_t kTensorAlignment = 256;

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) { graph_.name = std::move(name); }

  TensorId add_tensor(std::string name, Bytes bytes, MemoryClass memory_class);
  // A view of `storage`, without a place in it until place_views().
  TensorId add_view(std::string name, Bytes bytes, TensorId storage);
  // Lays the views of `storage` into it, one after another, each aligned to kTensorAlignment, and sizes it. `order`
  // holds each of its views once.
  void place_views(TensorId storage, const std::vector<TensorId>& order);

  // Adds a node. Its dependencies are those given and those of its operands, a kernel's or a collective's.
  OpId add(Node node);

  // Who uses the tensor from now on waits for `op`, too.
  void wait_also(TensorId tensor, OpId op) { accesses_.at(tensor.value).writer.push_back(op); }

  [[nodiscard]] const Tensor& tensor(TensorId id) const { return graph_.tensors.at(id.value); }
  [[nodiscard]] Tensor& tensor(TensorId id) { return graph_.tensors.at(id.value); }
  [[nodiscard]] Node& node(OpId id) { return graph_.nodes.at(id.value); }
  [[nodiscard]] std::size_t size() const { return graph_.nodes.size(); }

  // The finished graph, validated. The builder is empty afterwards.
  [[nodiscard]] Graph finish();

 private:
  struct Access {
    std::vector<OpId> writer;   // none or one, and what is to be waited for with it
    std::vector<OpId> readers;  // since that write
  };
  [[nodiscard]] std::vector<TensorId> overlapping(TensorId id) const;

  Graph graph_;
  std::vector<Access> accesses_;              // by tensor
  std::vector<std::vector<TensorId>> views_;  // by storage
};

}  // namespace weft
