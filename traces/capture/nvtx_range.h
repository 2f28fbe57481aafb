// What NVTX ranges mark, by their names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "traces/kineto_events.h"

namespace weft {

// As profilers of PyTorch record it: "layer: NAME" is a module; "iteration 3", "step 3" an iteration; the names of
// torch.autograd.profiler.emit_nvtx ("aten::conv2d, seq = 7, op_id = 9") operators; all others are annotations.
struct NvtxRange {
  KinetoCategory category = KinetoCategory::annotation;
  std::string name;
  std::int64_t sequence = -1;  // autograd's
};

[[nodiscard]] NvtxRange nvtx_range(std::string_view name);

}  // namespace weft
