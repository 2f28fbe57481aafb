// A kernel's demand from its name, launch shape and time alone: what weft assumes where a trace has no counters. The
// structure (blocks, tiles, reuse between blocks, epilogue) is meant to be right; bytes are meant to be rather low, so
// that the memory time lies below the measured time and calibration can fit the rest. docs/formats.md explains each
// class.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/embedding_lookup.h"
#include "traces/kernel_class.h"
#include "traces/kernel_counters.h"
#include "traces/operator_call.h"
#include "workloads/graph.h"

namespace weft {

// The kernel's duration without communication beside it, and the compute units of the GPU it was measured on. Of one
// that never ran alone the shortest beside it, where that is asked for (replay_graph.h).
struct MeasuredAlone {
  Time duration;
  std::uint32_t compute_units = 0;
};

// What a trace tells of a launch, each where it does.
struct KernelFacts {
  std::optional<Bytes> bytes{};  // of a copy or memset
  std::optional<MeasuredAlone> alone{};
  const OperatorCall* call = nullptr;          // that launched the kernel, with the sizes of its inputs
  const KernelCounters* counters = nullptr;    // as measured_demand.h
  std::span<const EmbeddingLookup> lookups{};  // of all operators of the trace, for kernels that update what they read
};

struct KernelGuess {
  KernelClass kernel_class = KernelClass::unknown;
  KernelNode node;             // TensorUse::tensor is an index into `tensors`
  std::vector<Bytes> tensors;  // sizes of the tensors that the kernel reads and writes
};

// Where the operator's inputs tell the work, the origin is `shapes`; where counters do, the structure is for that.
[[nodiscard]] KernelGuess guess_kernel_demand(const std::string& kernel_name, const LaunchShape& shape,
                                              const KernelFacts& known = {});

}  // namespace weft
