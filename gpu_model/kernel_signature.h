// Which kernels of a program are the same one again.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program.h"

namespace weft {

// Whether kernels ask for the same, at the same addresses.
[[nodiscard]] bool same_demand(const KernelDemand& a, const KernelDemand& b);

// Everything about a kernel that its time alone depends on, but for addresses. Not that time itself: a kernel that
// comes again has the same signature, though it took a little longer.
using KernelSignature = std::vector<std::uint64_t>;
[[nodiscard]] KernelSignature kernel_signature(const ProgramOp& op);
// Its name and launch alone.
[[nodiscard]] KernelSignature launch_signature(const ProgramOp& op);

}  // namespace weft
