// kernels.csv: one row an operation (docs/formats.md defines the columns).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/run/result.h"

namespace weft {

// Header and one row an operation, ascending by GPU, start, stream. RFC 4180 quoting, lines end with LF, seconds as the
// shortest decimal that reads back to the same double, empty fields where a value is unknown.
[[nodiscard]] std::string kernels_csv(const RunResult& result);

// The operations in the order of those rows.
[[nodiscard]] std::vector<const OperationRecord*> in_order_of_rows(const std::vector<OperationRecord>& operations);

// A field as RFC 4180 writes it: quoted when it holds a comma, a quote or a line break, quotes doubled.
[[nodiscard]] std::string csv_field(std::string_view text);

}  // namespace weft
