#include "traces/kernel_class.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <utility>

#include "sim/error.h"
#include "traces/kineto_names.h"

namespace weft {
namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

bool word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::size_t find_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool starts = at == 0 || !word_character(text[at - 1]);
    const bool ends = at + word.size() == text.size() || !word_character(text[at + word.size()]);
    if (starts && ends) return at;
  }
  return std::string_view::npos;
}

std::optional<std::uint32_t> number_at(std::string_view text, std::size_t at) {
  std::uint64_t value = 0;
  std::size_t digits = 0;
  for (; at < text.size() && digits < 9 && std::isdigit(static_cast<unsigned char>(text[at])); ++at, ++digits)
    value = value * 10 + static_cast<std::uint64_t>(text[at] - '0');
  return digits == 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(value));
}

}  // namespace

const char* to_string(KernelClass kernel_class) {
  switch (kernel_class) {
    case KernelClass::gemm:
      return "gemm";
    case KernelClass::convolution:
      return "convolution";
    case KernelClass::batch_norm_forward:
      return "batch_norm_forward";
    case KernelClass::batch_norm_backward:
      return "batch_norm_backward";
    case KernelClass::elementwise:
      return "elementwise";
    case KernelClass::fill:
      return "fill";
    case KernelClass::reduction:
      return "reduction";
    case KernelClass::softmax_forward:
      return "softmax_forward";
    case KernelClass::softmax_backward:
      return "softmax_backward";
    case KernelClass::pooling_forward:
      return "pooling_forward";
    case KernelClass::transpose:
      return "transpose";
    case KernelClass::multi_tensor:
      return "multi_tensor";
    case KernelClass::copy:
      return "copy";
    case KernelClass::unknown:
      return "unknown";
  }
  throw InternalError("unknown kernel class");
}

KernelClass kernel_class(std::string_view name) {
  std::string n = lower(name);
  // A library whose name holds a kernel class, of embedding kernels for the most part.
  if (const std::size_t at = n.find("fbgemm_gpu"); at != std::string::npos) n.erase(at, 10);
  // Helpers of GEMM libraries carry the libraries' names: they go first.
  if (has_any(n, {"splitkreduce", "reducesplitk", "reduce_wgrad", "splitk_reduce"})) return KernelClass::reduction;
  if (has_any(n, {"multi_tensor_apply"})) return KernelClass::multi_tensor;
  if (has_any(n, {"nchwtonhwc", "nhwctonchw", "transpose"}) && !has_any(n, {"gemm"})) return KernelClass::transpose;
  if (has_any(n, {"computeoffsets"})) return KernelClass::unknown;
  if (has_any(n, {"fprop", "dgrad", "wgrad", "implicit_gemm", "implicitgemm", "scudnn", "hcudnn", "igemm_", "conv2d",
                  "bwd_weight", "conv_fwd", "conv_bwd"}))
    return KernelClass::convolution;
  if (has_any(n, {"gemv", "gemmsn", "dot_kernel"})) return KernelClass::unknown;
  if (has_any(n, {"gemm", "cutlass", "nvjet", "cijk_", "flash_fwd", "flash_bwd", "fmha"})) return KernelClass::gemm;
  if (has_any(n, {"softmax"}))
    return has_any(n, {"backward"}) ? KernelClass::softmax_backward : KernelClass::softmax_forward;
  if (has_any(n, {"bn_bw", "batch_norm_backward", "norm_grad", "normback", "gammabetabackward", "bnbwd",
                  "layer_norm_backward"}))
    return KernelClass::batch_norm_backward;
  if (has_any(n, {"bn_fw", "batch_norm_", "layer_norm", "layernorm", "bnfwd", "groupnorm"}))
    return KernelClass::batch_norm_forward;
  if (has_any(n, {"max_pool_forward", "avg_pool2d_out"})) return KernelClass::pooling_forward;
  if (has_any(n, {"catarray", "indexselect", "index_elementwise", "gather", "permute_", "memcpy"}))
    return KernelClass::copy;
  if (has_any(n, {"fillfunctor", "memset", "opfill"})) return KernelClass::fill;
  if (has_any(n, {"elementwise_kernel", "elementwise_with_index"})) return KernelClass::elementwise;
  if (has_any(n, {"reduce_kernel", "reduce"})) return KernelClass::reduction;
  return KernelClass::unknown;
}

// PyTorch's and cuDNN's streaming loops load vectors, a few at a time through unrolling; those that concatenate
// (Shape.cu) take one element, or one vector, and store it before the next.
LoadLoop load_loop(std::string_view name) {
  if (name.find("CatArrayBatchedCopy") == std::string_view::npos) return {};
  const bool vectors = has_any(name, {"_vectorized", "_aligned"});
  return {.bytes = vectors ? 16.0 : element_bytes(name), .rounds_in_flight = 1};
}

std::uint32_t element_bytes(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::uint32_t>, 14> kTypes{{
      {"c10::BFloat16", 2},
      {"c10::Half", 2},
      {"__half", 2},
      {"__nv_bfloat16", 2},
      {"half", 2},
      {"double", 8},
      {"long", 8},
      {"float", 4},
      {"int", 4},
      {"unsigned char", 1},
      {"bool", 1},
      {"char", 1},
      {"OpaqueType<2", 2},
      {"OpaqueType<8", 8},
  }};
  std::size_t earliest = std::string_view::npos;
  std::uint32_t bytes = 4;
  for (const auto& [type, size] : kTypes) {
    const std::size_t at = type.ends_with('2') || type.ends_with('8') ? name.find(type) : find_word(name, type);
    if (at < earliest) {
      earliest = at;
      bytes = size;
    }
  }
  // MIOpen and Composable Kernel spell types within words.
  if (earliest == std::string_view::npos && has_any(name, {"_half", "bf16", "fp16", "BFloat16"})) return 2;
  return bytes;
}

std::optional<std::uint32_t> template_integer(std::string_view name, std::size_t n) {
  for (std::size_t i = 1; i < name.size(); ++i) {
    const bool starts = (name[i - 1] == '<' || (name[i - 1] == ' ' && i >= 2 && name[i - 2] == ',')) &&
                        std::isdigit(static_cast<unsigned char>(name[i])) != 0;
    if (!starts) continue;
    if (n == 0) return number_at(name, i);
    --n;
  }
  return std::nullopt;
}

ElementwiseShape elementwise_shape(std::string_view name, const LaunchShape& shape) {
  ElementwiseShape out;
  // aten/src/ATen/native/cuda/CUDALoops.cuh: vectorized and unrolled kernels handle thread_work_size() elements a
  // thread, 4, or 8 where the vectors are of 8; the legacy elementwise_kernel<nt, vt> vt a thread.
  std::uint32_t per_thread = 4;
  if (has_any(name, {"vectorized_elementwise_kernel<"})) {
    per_thread = std::max<std::uint32_t>(4, template_integer(name, 0).value_or(4));
  } else if (has_any(name, {"::elementwise_kernel<", "index_elementwise_kernel<"})) {
    per_thread = template_integer(name, 1).value_or(4);
  }
  out.elements_per_block = std::clamp<std::uint32_t>(per_thread, 1, 16) * shape.threads_per_block();

  // The array of pointers counts outputs and inputs; without it the functor's kind tells.
  std::optional<std::uint32_t> pointers;
  for (const std::string_view array : {"Array<char*, ", "array<char*, "}) {
    if (const std::size_t at = name.find(array); at != std::string_view::npos)
      pointers = number_at(name, at + array.size());
  }
  if (!pointers) {
    if (has_any(name, {"FillFunctor", "arange"})) {
      pointers = 1;
    } else if (has_any(name, {"UnaryFunctor", "direct_copy", "OnSelf"})) {
      pointers = 2;
    } else if (has_any(name, {"BinaryFunctor", "CUDAFunctor_add", "AddFunctor", "MulFunctor", "DivFunctor", "_backward",
                              "masked_fill", "where"})) {
      pointers = 3;
    } else {
      pointers = 2;
    }
  }
  out.reads = std::clamp<std::uint32_t>(*pointers, 1, 8) - 1;
  return out;
}

}  // namespace weft
