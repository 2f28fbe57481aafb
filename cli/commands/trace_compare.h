// A run that replayed a trace against the trace itself: kernels at equal launch positions, alone and beside
// communication.
#pragma once

#include <string>
#include <vector>

#include "cli/output/kernels_csv_reader.h"
#include "sim/json_reader.h"
#include "traces/trace.h"

namespace weft {

// Compares the recorded rank that is `rank` of trace.ranks with GPU `gpu` of the run whose kernels.csv is `rows`.
// Kernels are joined by their order on their stream in an iteration. A kernel counts as beside communication with at
// least 90 % of its time under collectives of its GPU, as alone with none; of several iterations medians are taken.
// Shape in docs/formats.md, "Trace". Throws InputError naming `source` when the run did not replay this trace.
[[nodiscard]] Json compare_with_trace(const Trace& trace, std::size_t rank, const std::vector<OperationRecord>& rows,
                                      std::uint32_t gpu, const std::string& source);

// The same for people.
[[nodiscard]] std::string trace_comparison_text(const Json& comparison);

}  // namespace weft
