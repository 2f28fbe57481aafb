// What the names in Kineto traces mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program.h"
#include "traces/kineto_events.h"

namespace weft {

// How autograd names the operators of its nodes, before the node's own name.
inline constexpr std::string_view kAutogradNode = "autograd::engine::evaluate_function: ";
// Of it, or a node by its own name ("AddmmBackward0", "torch::autograd::AccumulateGrad"), as old profiles have them
// only.
[[nodiscard]] bool is_autograd_node(std::string_view op);

// PyTorch calls the threads of its autograd engine "pt_autograd_0" and so on; Kineto writes "thread 12
// (pt_autograd_0)".
[[nodiscard]] bool is_autograd_thread(std::string_view name);

// nullopt: an event weft does not use.
[[nodiscard]] std::optional<KinetoCategory> kineto_category(std::string_view cat, std::string_view name);

// A kernel of NCCL, RCCL or MSCCL.
[[nodiscard]] bool is_collective_kernel(std::string_view name);

// An operator of PyTorch's symmetric memory, "symm_mem::multimem_all_reduce_", and those of its kernels that do what it
// is for: fused ones have products, too, whose kernels may be called "splitKreduce".
[[nodiscard]] bool is_symmetric_memory(std::string_view op);
[[nodiscard]] bool is_symmetric_memory_kernel(std::string_view name);

// From "Collective name", "nccl:all_reduce", "c10d::allreduce_" or a kernel's name. Point-to-point kernels (SendRecv,
// send, recv, gather, scatter) count as all_to_all, which NCCL builds from them. nullopt: the name does not tell, as
// "ncclDevKernel_Generic".
[[nodiscard]] std::optional<CollectiveKind> collective_kind(std::string_view name);

// From "dtype" ("Float", "BFloat16"), "Input type" ("c10::Half", "long int") or names of kernels: NCCL's ("f16",
// "float"), and of symmetric memory ("multimem_all_reduce_kernel<c10::BFloat16, 16>").
[[nodiscard]] std::optional<DataType> collective_type(std::string_view word);
[[nodiscard]] std::optional<DataType> type_in_kernel_name(std::string_view kernel);

// "[0, 1]" -> {0, 1}; nullopt when abridged ("...") or not a list.
[[nodiscard]] std::optional<std::vector<std::int64_t>> rank_list(std::string_view text);

// `size` of them from `first` on; nullopt when there are none such, or more than a profile can mean.
[[nodiscard]] std::optional<std::vector<std::int64_t>> spaced_ranks(std::int64_t first, std::int64_t stride,
                                                                    std::int64_t size);

// "Memcpy DtoD (Device -> Device)" -> "DtoD"; empty when unknown.
[[nodiscard]] std::string copy_direction(std::string_view name, std::string_view kind);

// Which kind of work a host call does for weft, by the names of the CUDA runtime, the CUDA driver and HIP.
enum class HostCall {
  launch_in_blocks,
  launch_in_threads,
  stream_wait_event,
  event_record,
  device_synchronize,
  stream_synchronize,
  event_synchronize,
  blocking_copy,
  other
};
[[nodiscard]] HostCall host_call(std::string_view name);

// Which phase an annotation's name tells: "forward", "loss.backward", "Optimizer.step#AdamW.step".
[[nodiscard]] std::optional<TrainingPhase> named_phase(std::string_view name);

[[nodiscard]] std::string lower(std::string_view text);

}  // namespace weft
