// The NVTX ranges of a process in an export of Nsight Systems.
#pragma once

#include "traces/capture/process_builder.h"
#include "traces/nsys/nsys_scope.h"

namespace weft {

// NCCL's own ranges tell of collectives and communicators, all others mark what nvtx_range.h says. False: none had a
// payload of NCCL's. Call it behind all that else is read: ranges that nothing closed last until then.
bool read_nsys_ranges(const NsysScope& scope, ProcessBuilder& builder);

}  // namespace weft
