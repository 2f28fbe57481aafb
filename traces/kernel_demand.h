// A kernel's demand from its name, launch shape and time alone: what weft assumes where a trace has no counters. The
// structure (blocks, tiles, reuse between blocks, epilogue) is meant to be right; bytes are meant to be rather low, so
// that the memory time lies below the measured time and calibration can fit the rest. docs/formats.md explains each
// class.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/kernel_class.h"
#include "traces/kernel_counters.h"
#include "traces/operator_call.h"
#include "workloads/graph.h"

namespace weft {

// The kernel's duration without communication beside it, and the compute units of the GPU it was measured on. Never an
// overlapped time.
struct MeasuredAlone {
  Time duration;
  std::uint32_t compute_units = 0;
};

struct KernelGuess {
  KernelClass kernel_class = KernelClass::unknown;
  KernelNode node;             // TensorUse::tensor is an index into `tensors`
  std::vector<Bytes> tensors;  // sizes of the tensors that the kernel reads and writes
};

// `bytes` of a copy or memset, where recorded. `call`: the operator that launched the kernel, where the sizes of its
// inputs were recorded; where they tell the work, the origin is `shapes`. `counters`: as measured_demand.h, where the
// structure is for what they tell.
[[nodiscard]] KernelGuess guess_kernel_demand(const std::string& kernel_name, const LaunchShape& shape,
                                              std::optional<Bytes> bytes = std::nullopt,
                                              std::optional<MeasuredAlone> alone = std::nullopt,
                                              const OperatorCall* call = nullptr,
                                              const KernelCounters* counters = nullptr);

}  // namespace weft
