// Whether ranks whose clocks have nothing to do with each other are of one run.
#pragma once

#include <string>

#include "traces/trace.h"

namespace weft {

// What speaks against it, in words behind "got"; empty where nothing does. Clocks of `trace` are aligned
// (align_clocks): ranks of one run then have collectives that end together, `together` apart in the median, and two of
// them at least, since one fits whatever ran. Those of another run, even of the same program, have not: its steps
// lasted for other times.
[[nodiscard]] std::string against_one_run(const Trace& trace, Time together);

}  // namespace weft
