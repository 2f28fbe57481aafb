// Numbers in the tensors of generated graphs, one graph a rank: shows that what a scheme moves and computes is what it
// claims. For small shapes; FP32, and only graphs whose kernels say what they compute (Node::compute).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "workloads/address_plan.h"
#include "workloads/graph.h"

namespace weft {

// A number of matrices of the same shape in one tensor, in elements. The columns of a row lie one after another.
struct Stack {
  TensorId tensor;
  std::int64_t count = 1;
  std::int64_t rows = 0, columns = 0;
  std::int64_t offset = 0;      // of the first one
  std::int64_t stride = 0;      // from one to the next; 0: all are the same
  std::int64_t row_stride = 0;  // from a row to the next
  std::int64_t repeat = 1;      // each stands for so many, one after another

  [[nodiscard]] std::int64_t elements() const { return count * rows * columns; }
  [[nodiscard]] std::int64_t first_of(std::int64_t index) const { return offset + index / repeat % count * stride; }
};

// One matrix that fills its tensor.
[[nodiscard]] inline Stack plain(TensorId tensor, std::int64_t rows, std::int64_t columns) {
  return {tensor, 1, rows, columns, 0, 0, columns};
}

// One rank's memory. A tensor has its place from the address plan, so one that is freed too early is overwritten.
class TensorValues {
 public:
  explicit TensorValues(const Graph& graph);

  // The numbers of a tensor. While a node computes: InternalError unless the tensor is one of its operands.
  [[nodiscard]] float* data(TensorId tensor);
  [[nodiscard]] std::int64_t elements(TensorId tensor) const;  // of four bytes
  void compute(const Node& node);

 private:
  const Graph* graph_;
  AddressPlan plan_;
  std::vector<float> memory_;
  const Node* computing_ = nullptr;
};

struct RankValues {
  std::vector<Graph> graphs;  // by GPU; collectives name their groups by these numbers
  std::vector<TensorValues> values;
};

// Carries all graphs out, node by node; collectives when all of their group have come. `fill` gives a tensor that is
// there before it is written its numbers: called once for each such tensor and at the start for parameters. `finished`
// is called behind each node. Throws InternalError when ranks wait for each other for ever, or a kernel does not say
// what it computes.
using FillTensor = std::function<void(std::uint32_t rank, const Tensor&, float* values, std::int64_t elements)>;
using SeeNode = std::function<void(std::uint32_t rank, const Node&, TensorValues&)>;
void carry_out(RankValues& ranks, const FillTensor& fill, const SeeNode& finished);

}  // namespace weft
