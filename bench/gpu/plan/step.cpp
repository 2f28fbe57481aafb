#include "bench/gpu/plan/step.h"

#include <algorithm>

namespace weft::gpu_probe {
namespace {

using Sizes = std::vector<std::int64_t>;

const char* torch_type(Element element) {
  switch (element) {
    case Element::bf16:
      return "c10::BFloat16";
    case Element::fp16:
      return "c10::Half";
    case Element::fp32:
    case Element::tf32:
      break;
  }
  return "float";
}

double as_double(std::int64_t value) { return static_cast<double>(value); }

double data_elements(const Convolution& c) { return as_double(c.samples * c.channels * c.height * c.width); }
double output_elements(const Convolution& c) {
  return as_double(c.samples * c.filters * c.out_height() * c.out_width());
}
double weight_elements(const Convolution& c) {
  return as_double(c.filters * c.channels * c.filter_side * c.filter_side);
}

Operator product_operator(const Product& p, const char* type) {
  if (p.batch == 1) return {"aten::mm", {{p.m, p.k}, {p.k, p.n}}, type};
  return {"aten::bmm", {{p.batch, p.m, p.k}, {p.batch, p.k, p.n}}, type};
}

Operator convolution_operator(StepKind kind, const Convolution& c, const char* type) {
  const Sizes data{c.samples, c.channels, c.height, c.width};
  const Sizes weight{c.filters, c.channels, c.filter_side, c.filter_side};
  if (kind == StepKind::conv_forward) return {"aten::cudnn_convolution", {data, weight}, type};
  const Sizes gradient{c.samples, c.filters, c.out_height(), c.out_width()};
  return {"aten::convolution_backward", {gradient, data, weight}, type};
}

Operator matrix_operator(StepKind kind, const Matrix& m, const char* type) {
  const Sizes all{m.rows, m.columns};
  const Sizes flat{m.elements()};
  switch (kind) {
    case StepKind::add:
      return {"aten::add", {all, all}, type};
    case StepKind::gelu:
      return {"aten::gelu", {all}, type};
    case StepKind::gelu_backward:
      return {"aten::gelu_backward", {all, all}, type};
    case StepKind::dropout_backward:
      return {"aten::native_dropout_backward", {all, all}, type};
    case StepKind::row_sum:
      return {"aten::sum", {all}, type};
    case StepKind::layer_norm:
      return {"aten::native_layer_norm", {all, {}, {m.columns}, {m.columns}}, type};
    case StepKind::layer_norm_backward:
      return {
          "aten::native_layer_norm_backward", {all, all, {}, {m.rows, 1}, {m.rows, 1}, {m.columns}, {m.columns}}, type};
    case StepKind::softmax:
      return {"aten::_softmax", {all}, type};
    case StepKind::softmax_backward:
      return {"aten::_softmax_backward_data", {all, all}, type};
    default:
      return {"aten::_fused_adam_", {flat, flat, flat, flat}, type};
  }
}

// Tensors of the matrix' size that are read or written.
double tensors(StepKind kind) {
  switch (kind) {
    case StepKind::row_sum:
      return 1;
    case StepKind::gelu:
    case StepKind::layer_norm:
    case StepKind::softmax:
      return 2;
    case StepKind::layer_norm_backward:
      return 5;  // both gradients and the input twice: the gradient of the data and those of scale and shift
    case StepKind::adam:
      return 7;  // gradient read; parameter and both moments read and written
    default:
      return 3;
  }
}

}  // namespace

std::int64_t bytes_of(Element element) { return element == Element::bf16 || element == Element::fp16 ? 2 : 4; }

Operator operator_of(const Step& step) {
  const char* type = torch_type(step.element);
  if (const auto* p = std::get_if<Product>(&step.shape)) return product_operator(*p, type);
  if (const auto* c = std::get_if<Convolution>(&step.shape)) return convolution_operator(step.kind, *c, type);
  if (const auto* h = std::get_if<Heads>(&step.shape)) {
    const Sizes sizes{h->batch, h->length, h->heads, h->width};
    return {"aten::_flash_attention_forward", {sizes, sizes, sizes}, type};
  }
  if (const auto* t = std::get_if<TimedBlocks>(&step.shape)) return {"weft::timed_blocks", {{t->blocks}}, type};
  return matrix_operator(step.kind, std::get<Matrix>(step.shape), type);
}

double traffic_bytes(const Step& step) {
  const double size = as_double(bytes_of(step.element));
  if (const auto* p = std::get_if<Product>(&step.shape))
    return size * as_double(p->batch) * as_double(p->m * p->k + p->k * p->n + p->m * p->n);
  if (const auto* c = std::get_if<Convolution>(&step.shape))
    return size * (data_elements(*c) + output_elements(*c) + weight_elements(*c));
  if (const auto* h = std::get_if<Heads>(&step.shape))
    return 4 * size * as_double(h->batch * h->heads * h->length * h->width);
  if (const auto* m = std::get_if<Matrix>(&step.shape)) return size * tensors(step.kind) * as_double(m->elements());
  return 0;
}

double flops(const Step& step) {
  if (const auto* p = std::get_if<Product>(&step.shape))
    return 2.0 * as_double(p->batch * p->m * p->n) * as_double(p->k);
  if (const auto* c = std::get_if<Convolution>(&step.shape))
    return 2 * output_elements(*c) * weight_elements(*c) / as_double(c->filters);
  if (const auto* h = std::get_if<Heads>(&step.shape))
    return 4.0 * as_double(h->batch * h->heads * h->length) * as_double(h->length * h->width);
  return 0;
}

double estimated_us(const Step& step) {
  if (const auto* t = std::get_if<TimedBlocks>(&step.shape))
    return as_double(((t->blocks + 131) / 132) * t->cycles) / 1800;
  // Below the data sheet's rates, as libraries reach them; the attention is a simple kernel of our own.
  double flops_per_us = step.element == Element::fp32 ? 40e6 : step.element == Element::tf32 ? 250e6 : 500e6;
  if (step.kind == StepKind::attention) flops_per_us = 60e6;
  constexpr double kBytesPerUs = 2.7e6;
  return 2 + std::max(flops(step) / flops_per_us, traffic_bytes(step) / kBytesPerUs);
}

Library library_of(const Step& step) {
  if (step.kind == StepKind::product) return Library::cublas;
  return std::holds_alternative<Convolution>(step.shape) ? Library::cudnn : Library::none;
}

}  // namespace weft::gpu_probe
