// The operator that launched a kernel, with its inputs as a profiler records them (PyTorch's record_shapes), and what
// these tell of the kernel's work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct OperatorInput {
  std::uint32_t element_bytes = 0;  // 0: no tensor, or its type is not known
  std::vector<std::int64_t> sizes;  // outermost dimension first; empty for scalars and what is no tensor
  auto operator<=>(const OperatorInput&) const = default;
};

using OperatorInputs = std::vector<OperatorInput>;  // by position; a list of tensors is one input each

struct OperatorCall {
  std::string name;  // "aten::mm"
  OperatorInputs inputs;
  auto operator<=>(const OperatorCall&) const = default;
};

// Sizes above this are no tensors but mistakes: elements of an input, and inputs of an operator.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
inline constexpr std::size_t kMostInputs = 4096;

// 1 for no sizes.
[[nodiscard]] double elements(const OperatorInput& input);

// A matrix product, convolution or attention.
struct ProductWork {
  double flops = 0;
  double taps = 1;  // positions of a convolution's filter: as often an input element is used for one output channel
  // Of what is written: a matrix, or a batch of them; of convolutions as products of matrices. 0: not one product.
  double rows = 0, columns = 0, batch = 1;
};
// From the inputs of mm, addmm, bmm, baddbmm, linear, convolutions (forward, and backward as the kernel's name says for
// data or weights) and attention. `most_outputs` bounds what the kernel's grid can write: a convolution's stride is not
// among its inputs. Absent for other operators and inputs of unexpected form.
[[nodiscard]] std::optional<ProductWork> product_work(const OperatorCall& call, std::string_view kernel,
                                                      double most_outputs);

// Bytes of the largest input of an operator that streams tensors (norms, reductions, softmax, elementwise, layout
// changes), of all inputs together where it concatenates. Elements of unknown type count as `element_bytes`. Absent for
// products, and when no input has a size.
[[nodiscard]] std::optional<double> streamed_bytes(const OperatorCall& call, std::uint32_t element_bytes);

}  // namespace weft
