// The words by which files name the values of enumerations.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sim/program.h"
#include "traces/trace.h"

namespace weft {

inline constexpr std::array kTraceOpKinds{TraceOpKind::kernel, TraceOpKind::copy, TraceOpKind::memset,
                                          TraceOpKind::collective, TraceOpKind::host_wait};
inline constexpr std::array kTrainingPhases{TrainingPhase::forward, TrainingPhase::backward, TrainingPhase::optimizer,
                                            TrainingPhase::other};
inline constexpr std::array kCollectiveKinds{
    CollectiveKind::all_reduce, CollectiveKind::all_gather,   CollectiveKind::reduce_scatter, CollectiveKind::broadcast,
    CollectiveKind::reduce,     CollectiveKind::all_to_all,   CollectiveKind::barrier,        CollectiveKind::gather,
    CollectiveKind::scatter,    CollectiveKind::send_receive, CollectiveKind::shift};
inline constexpr std::array kDataTypes{DataType::fp32, DataType::tf32,  DataType::fp16,  DataType::bf16, DataType::fp64,
                                       DataType::fp8,  DataType::int64, DataType::int32, DataType::int8};

[[nodiscard]] const char* to_string(TraceOpKind kind);

// The value of `values` whose to_string is `word`.
template <class Enum, std::size_t n>
[[nodiscard]] std::optional<Enum> from_word(const std::array<Enum, n>& values, std::string_view word) {
  for (const Enum value : values)
    if (word == to_string(value)) return value;
  return std::nullopt;
}

}  // namespace weft
