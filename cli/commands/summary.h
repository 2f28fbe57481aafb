// What a run and a comparison say on the terminal.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/run/result.h"

namespace weft {

// Verdict, then iteration, backward alone and beside communication with its causes, communication, HBM. Several lines,
// a newline at the end. `color` adds ANSI escapes; the caller respects NO_COLOR and terminals.
[[nodiscard]] std::string run_summary(const RunResult& result, bool color);

// A table with one column a run (one row a run from five on) of (label, result.json document), and a sentence that
// says what differs between the first and the best other, and why. Throws InputError on a document of another schema.
[[nodiscard]] std::string comparison_table(const std::vector<std::pair<std::string, Json>>& results, bool color);

}  // namespace weft
