#include "traces/trace_words.h"

#include "sim/error.h"

namespace weft {

const char* to_string(TraceOpKind kind) {
  switch (kind) {
    case TraceOpKind::kernel:
      return "kernel";
    case TraceOpKind::copy:
      return "copy";
    case TraceOpKind::memset:
      return "memset";
    case TraceOpKind::collective:
      return "collective";
    case TraceOpKind::host_wait:
      return "host_wait";
  }
  throw InternalError("unknown kind of trace operation");
}

}  // namespace weft
