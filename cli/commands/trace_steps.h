// The iterations of a run that replayed a trace against the recorded ones: their times and the communication in them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/result.h"
#include "sim/json_reader.h"
#include "traces/trace.h"

namespace weft {

// Which rank of the trace GPU `gpu` of the run replayed, as an index: its own where the trace has several, unless the
// run chose one for all (`chosen`). Throws InputError naming `source` when the trace has no such rank.
[[nodiscard]] std::size_t replayed_rank(const Trace& trace, std::optional<std::uint32_t> chosen, std::uint32_t gpu,
                                        const std::string& source);

// `rows`: kernels.csv of the run; `simulated_s`: its iterations, of result.json, as which the recorded ones count
// (docs/formats.md, iteration). Communication is exposed where no other operation of its GPU runs beside it. Shape in
// docs/formats.md, "weft trace compare".
[[nodiscard]] Json compare_steps(const Trace& trace, std::optional<std::uint32_t> chosen,
                                 const std::vector<OperationRecord>& rows, const std::vector<double>& simulated_s,
                                 const std::string& source);

// The same for people.
[[nodiscard]] std::string steps_text(const Json& steps);

}  // namespace weft
