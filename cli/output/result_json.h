// result.json, schema weft-result/1 (docs/formats.md defines every key).
#pragma once

#include <string>

#include "cli/run/result.h"

namespace weft {

// The document of one run: keys in the order of the format, null where a key does not apply. Times, throughput and the
// causes of a run that did not finish (status other than "ok") are null. All that may differ between two runs of one
// configuration stands in `engine`. Throws InternalError on a number that is not finite.
[[nodiscard]] Json result_to_json(const RunResult& result);

// A document as text: indented by two, numbers shortest that read back to the same double, a newline at the end.
[[nodiscard]] std::string json_text(const Json& document);

// Seconds an operation took, and how many times as long as alone; no value where the time alone is unknown or 0.
[[nodiscard]] double duration_s(const OperationRecord& operation);
[[nodiscard]] std::optional<double> slowdown(const OperationRecord& operation);

}  // namespace weft
