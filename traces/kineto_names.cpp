#include "traces/kineto_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

namespace weft {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// c10/core/ScalarType.h (names), C++ spellings from Kineto's "Input type", and NCCL's ncclDataType_t spellings.
constexpr std::array<std::pair<std::string_view, DataType>, 39> kTypeWords{{
    {"float", DataType::fp32},
    {"f32", DataType::fp32},
    {"half", DataType::fp16},
    {"c10::half", DataType::fp16},
    {"f16", DataType::fp16},
    {"bfloat16", DataType::bf16},
    {"c10::bfloat16", DataType::bf16},
    {"bf16", DataType::bf16},
    {"__nv_bfloat16", DataType::bf16},
    {"double", DataType::fp64},
    {"f64", DataType::fp64},
    {"float8_e4m3fn", DataType::fp8},
    {"float8_e5m2", DataType::fp8},
    {"float8_e4m3fnuz", DataType::fp8},  // of MI300
    {"float8_e5m2fnuz", DataType::fp8},
    {"c10::float8_e4m3fn", DataType::fp8},
    {"c10::float8_e5m2", DataType::fp8},
    {"c10::float8_e4m3fnuz", DataType::fp8},
    {"c10::float8_e5m2fnuz", DataType::fp8},
    {"f8e4m3", DataType::fp8},
    {"f8e5m2", DataType::fp8},
    {"long", DataType::int64},
    {"long int", DataType::int64},
    {"i64", DataType::int64},
    {"u64", DataType::int64},
    {"int64_t", DataType::int64},
    {"int", DataType::int32},
    {"i32", DataType::int32},
    {"u32", DataType::int32},
    {"int32_t", DataType::int32},
    {"byte", DataType::int8},
    {"char", DataType::int8},
    {"bool", DataType::int8},
    {"i8", DataType::int8},
    {"u8", DataType::int8},
    {"int8_t", DataType::int8},
    {"uint8_t", DataType::int8},
    {"unsigned char", DataType::int8},
    {"signed char", DataType::int8},
}};

}  // namespace

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool is_autograd_node(std::string_view op) {
  if (op.starts_with(kAutogradNode) || op.starts_with("torch::autograd::")) return true;
  return !op.empty() && std::isupper(static_cast<unsigned char>(op.front())) != 0 && has(op, "Backward") &&
         !has(op, "Forward");
}

bool is_autograd_thread(std::string_view name) { return has(name, "pt_autograd_"); }

std::optional<KinetoCategory> kineto_category(std::string_view cat, std::string_view name) {
  const std::string c = lower(cat);
  if (c == "kernel") return KinetoCategory::kernel;
  if (c == "gpu_memcpy" || c == "memcpy") return KinetoCategory::copy;
  if (c == "gpu_memset" || c == "memset") return KinetoCategory::memset;
  // Of CUDA, HIP and what else has a profiler: "cuda_runtime", "cuda_driver", "xpu_runtime".
  if (c == "runtime" || c == "hip" || c.ends_with("_runtime") || c.ends_with("_driver")) return KinetoCategory::runtime;
  if (c == "cuda_sync") return KinetoCategory::synchronization;
  // Until PyTorch 1.10 what a program marks was an operator among others.
  if (c == "operator" &&
      (name.starts_with("ProfilerStep#") || name.starts_with("Optimizer.") || name.starts_with("nccl:")))
    return KinetoCategory::annotation;
  if (c == "cpu_op" || c == "operator") return KinetoCategory::cpu_operator;
  if (c == "user_annotation") return KinetoCategory::annotation;
  if (c == "python_function" && name.starts_with("nn.Module: ")) return KinetoCategory::module;
  return std::nullopt;
}

bool is_collective_kernel(std::string_view name) {
  return name.starts_with("nccl") || name.starts_with("rccl") || name.starts_with("msccl") || has(name, "ncclKernel") ||
         has(name, "ncclDevKernel");
}

bool is_symmetric_memory(std::string_view op) { return op.starts_with("symm_mem::"); }

bool is_symmetric_memory_kernel(std::string_view name) {
  return has(name, "all_reduce") || has(name, "all_gather") || has(name, "reduce_scatter");
}

std::optional<CollectiveKind> collective_kind(std::string_view name) {
  std::string n = lower(name);
  std::erase(n, '_');
  if (has(n, "barrier")) return CollectiveKind::barrier;
  if (has(n, "allreduce")) return CollectiveKind::all_reduce;
  if (has(n, "reducescatter")) return CollectiveKind::reduce_scatter;
  if (has(n, "allgather")) return CollectiveKind::all_gather;
  if (has(n, "alltoall") || has(n, "sendrecv")) return CollectiveKind::all_to_all;
  if (has(n, "broadcast")) return CollectiveKind::broadcast;
  if (has(n, "reduce")) return CollectiveKind::reduce;
  if (has(n, "send") || has(n, "recv") || has(n, "gather") || has(n, "scatter")) return CollectiveKind::all_to_all;
  return std::nullopt;
}

std::optional<DataType> collective_type(std::string_view word) {
  const std::string w = lower(word);
  for (const auto& [name, type] : kTypeWords)
    if (w == name) return type;
  return std::nullopt;
}

std::optional<DataType> type_in_kernel_name(std::string_view kernel) {
  // "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(...)"
  constexpr std::string_view kTemplate = "_kernel<";
  if (const std::size_t at = kernel.find(kTemplate); at != std::string_view::npos) {
    const std::string_view first = kernel.substr(at + kTemplate.size());
    return collective_type(first.substr(0, first.find_first_of(",>")));
  }
  // ncclKernel_AllReduce_RING_LL_Sum_float(...), ncclDevKernel_AllReduce_Sum_f16_RING_LL(...),
  // ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(...).
  kernel = kernel.substr(0, kernel.find('('));
  std::size_t sum = kernel.rfind("_Sum_");
  if (sum == std::string_view::npos) sum = kernel.rfind("_sum_");
  if (sum == std::string_view::npos) return std::nullopt;
  std::string_view rest = kernel.substr(sum + 5);
  if (const auto type = collective_type(rest)) return type;
  return collective_type(rest.substr(0, rest.find('_')));
}

std::optional<std::vector<std::int64_t>> rank_list(std::string_view text) {
  if (!text.starts_with('[') || !text.ends_with(']') || has(text, "...")) return std::nullopt;
  std::vector<std::int64_t> ranks;
  const char* at = text.data() + 1;
  const char* end = text.data() + text.size() - 1;
  while (at != end) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    std::int64_t rank = 0;
    const auto [next, error] = std::from_chars(at, end, rank);
    if (error != std::errc()) return std::nullopt;
    ranks.push_back(rank);
    at = next;
  }
  return ranks;
}

std::optional<std::vector<std::int64_t>> spaced_ranks(std::int64_t first, std::int64_t stride, std::int64_t size) {
  constexpr std::int64_t kMost = 1 << 16;  // a choice: no published job has more ranks in a group
  if (size < 1 || size > kMost || first < 0 || first >= kMaxWorld || stride < 1 || stride >= kMaxWorld / size)
    return std::nullopt;
  std::vector<std::int64_t> ranks;
  for (std::int64_t i = 0; i < size; ++i) ranks.push_back(first + i * stride);
  return ranks;
}

std::string copy_direction(std::string_view name, std::string_view kind) {
  for (const std::string_view direction : {"DtoD", "HtoD", "DtoH", "PtoP", "HtoH"})
    if (kind == direction || has(name, direction)) return std::string(direction);
  return {};
}

std::optional<TrainingPhase> named_phase(std::string_view name) {
  const std::string n = lower(name);
  std::optional<TrainingPhase> found;
  for (const auto& [word, phase] : {std::pair{"optimizer", TrainingPhase::optimizer},
                                    {"backward", TrainingPhase::backward},
                                    {"forward", TrainingPhase::forward}}) {
    if (!has(n, word)) continue;
    if (found) return std::nullopt;  // "forward_backward": of several
    found = phase;
  }
  return found;
}

HostCall host_call(std::string_view name) {
  // hipExtModuleLaunchKernel and hipHccModuleLaunchKernel take the grid in work items, all other calls in blocks (HIP
  // runtime API reference, hip_ext.h).
  if (name == "hipExtModuleLaunchKernel" || name == "hipHccModuleLaunchKernel") return HostCall::launch_in_threads;
  if (has(name, "Launch")) return HostCall::launch_in_blocks;
  if (has(name, "StreamWaitEvent")) return HostCall::stream_wait_event;
  if (has(name, "EventRecord")) return HostCall::event_record;
  if (has(name, "DeviceSynchronize") || has(name, "CtxSynchronize")) return HostCall::device_synchronize;
  if (has(name, "StreamSynchronize")) return HostCall::stream_synchronize;
  if (has(name, "EventSynchronize")) return HostCall::event_synchronize;
  if (name == "cudaMemcpy" || name == "hipMemcpy" || name == "hipMemcpyWithStream" ||
      name.starts_with("cuMemcpyHtoD_v") || name.starts_with("cuMemcpyDtoH_v"))
    return HostCall::blocking_copy;
  return HostCall::other;
}

}  // namespace weft
