// The capture of this process. Whoever comes first opens it: the driver, which loads the library for CUDA's sake
// (CUDA_INJECTION64_PATH), NCCL (NCCL_PROFILER_PLUGIN), or a call of NCCL that the preloaded library stands before.
#pragma once

#include "traces/capture/inject/writer.h"

namespace weft::capture {

// nullptr: there is nothing to capture for (kDirectoryVariable is not set), the file cannot be written, the process is
// ending, or it is a fork of the one that is captured. Cheap after the first call.
[[nodiscard]] Writer* session();

// The file is closed before the end of what is loaded now, when the process ends in order. `function`, if any, runs
// before.
void at_session_end(void (*function)());

// A line on stderr, "weft capture: ...", and into the file, for `weft capture` to repeat.
void tell_user(const char* message);
// The same, of the thread that writes the file, and after the session's end.
void tell_user(const char* message, RecordFile& file);

}  // namespace weft::capture
