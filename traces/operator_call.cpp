#include "traces/operator_call.h"

#include <algorithm>
#include <initializer_list>

#include "traces/kineto_names.h"

namespace weft {
namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

const std::vector<std::int64_t>* sizes_of(const OperatorCall& call, std::size_t input, std::size_t least) {
  if (input >= call.inputs.size() || call.inputs[input].sizes.size() < least) return nullptr;
  return &call.inputs[input].sizes;
}

// A times B, both matrices or batches of them: 2 m k n.
std::optional<ProductWork> matrices(const OperatorCall& call, std::size_t a, bool b_transposed) {
  const auto* left = sizes_of(call, a, 2);
  const auto* right = sizes_of(call, a + 1, 2);
  if (left == nullptr || right == nullptr) return std::nullopt;
  const std::int64_t columns = b_transposed ? (*right)[right->size() - 2] : right->back();
  const std::int64_t depth = b_transposed ? right->back() : (*right)[right->size() - 2];
  if (depth != left->back()) return std::nullopt;
  const double of_one = static_cast<double>(columns) * static_cast<double>(depth);
  const double batch = right->size() > 2 ? elements(call.inputs[a + 1]) / of_one : 1;
  return ProductWork{2 * elements(call.inputs[a]) * static_cast<double>(columns), 1,
                     elements(call.inputs[a]) / static_cast<double>(depth) / batch, static_cast<double>(columns),
                     batch};
}

double positions(const std::vector<std::int64_t>& weight) {
  double taps = 1;
  for (std::size_t i = 2; i < weight.size(); ++i) taps *= static_cast<double>(weight[i]);
  return taps;
}

// Weights are [out channels, in channels of a group, filter...], data [samples, channels, positions...]. Every output
// element takes a multiplication and an addition for each weight of its channel.
std::optional<ProductWork> convolution(const OperatorCall& call, double most_outputs) {
  const auto* input = sizes_of(call, 0, 3);
  const auto* weight = sizes_of(call, 1, 3);
  if (input == nullptr || weight == nullptr || (*weight)[0] <= 0) return std::nullopt;
  const double channels = static_cast<double>((*weight)[0]);
  const double unstrided = elements(call.inputs[0]) / static_cast<double>((*input)[1]) * channels;
  const double outputs = std::min(unstrided, most_outputs);
  return ProductWork{2 * outputs * elements(call.inputs[1]) / channels, positions(*weight), outputs / channels,
                     channels};
}

// Of the data, [samples and positions, in channels], or of the weights, [out channels, in channels and taps].
std::optional<ProductWork> convolution_backward(const OperatorCall& call, std::string_view kernel) {
  const auto* gradient = sizes_of(call, 0, 3);
  const auto* data = sizes_of(call, 1, 3);
  const auto* weight = sizes_of(call, 2, 3);
  if (gradient == nullptr || weight == nullptr || (*weight)[0] <= 0) return std::nullopt;
  const auto filters = static_cast<double>((*weight)[0]);
  ProductWork work{2 * elements(call.inputs[0]) * elements(call.inputs[2]) / filters, positions(*weight)};
  if (has_any(kernel, {"wgrad"})) {
    work.rows = filters;
    work.columns = elements(call.inputs[2]) / filters;
  } else if (has_any(kernel, {"dgrad"}) && data != nullptr) {
    work.columns = static_cast<double>((*data)[1]);
    work.rows = elements(call.inputs[1]) / work.columns;
  }
  return work;
}

// Q K^T and its product with V: 4 Sq Sk D a head; five products instead of two backwards.
std::optional<ProductWork> attention(const OperatorCall& call, std::string_view op) {
  const bool backward = has_any(op, {"backward"});
  const std::size_t query = backward ? 1 : 0;
  const auto* keys = sizes_of(call, query + 1, 4);
  if (keys == nullptr || sizes_of(call, query, 4) == nullptr) return std::nullopt;
  // The wrappers take [batch, heads, sequence, width], the libraries' own operators [batch, sequence, heads, width].
  const std::int64_t length = has_any(op, {"scaled_dot_product"}) ? (*keys)[2] : (*keys)[1];
  return ProductWork{(backward ? 10 : 4) * elements(call.inputs[query]) * static_cast<double>(length)};
}

bool is_product(std::string_view op) {
  return has_any(op, {"mm", "linear", "matmul", "conv", "attention", "einsum"}) && !has_any(op, {"comm"});
}

}  // namespace

double elements(const OperatorInput& input) {
  double product = 1;
  for (const std::int64_t size : input.sizes) product *= static_cast<double>(size);
  return product;
}

std::optional<ProductWork> product_work(const OperatorCall& call, std::string_view kernel, double most_outputs) {
  // Winograd's algorithm multiplies less, by how much depends on its tile.
  if (has_any(lower(kernel), {"winograd"})) return std::nullopt;
  const std::string op = lower(call.name);
  std::optional<ProductWork> work;
  if (op == "aten::mm" || op == "aten::bmm" || op == "aten::_scaled_mm") {
    work = matrices(call, 0, false);
  } else if (op == "aten::addmm" || op == "aten::baddbmm" || op == "aten::_addmm_activation") {
    work = matrices(call, 1, false);
  } else if (op == "aten::linear") {
    work = matrices(call, 0, true);
  } else if (has_any(op, {"convolution_backward"})) {
    work = convolution_backward(call, lower(kernel));
  } else if (has_any(op, {"conv"}) && !has_any(op, {"backward"})) {
    work = convolution(call, most_outputs);
  } else if (has_any(op, {"attention"})) {
    work = attention(call, op);
  }
  if (work && !(work->flops > 0)) return std::nullopt;
  return work;
}

std::optional<double> streamed_bytes(const OperatorCall& call, std::uint32_t element_bytes) {
  const std::string op = lower(call.name);
  if (is_product(op)) return std::nullopt;
  const bool all = op.ends_with("::cat") || op.ends_with("::stack");
  double bytes = 0;
  for (const OperatorInput& input : call.inputs) {
    const double size = input.element_bytes != 0 ? input.element_bytes : element_bytes;
    const double own = input.sizes.empty() ? 0 : elements(input) * size;
    bytes = all ? bytes + own : std::max(bytes, own);
  }
  return bytes > 0 ? std::optional(bytes) : std::nullopt;
}

}  // namespace weft
