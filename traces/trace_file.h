// weft's own trace format, "weft-trace/1": JSON, gzip or not (docs/formats.md). Holds all of a Trace; a round trip is
// exact, and the same trace gives the same bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "traces/trace.h"

namespace weft {

// Gzip when the name ends in ".gz"; written beside and renamed. The trace must be valid (see validate). Throws
// InputError when the file cannot be written.
void write_trace(const Trace& trace, const std::filesystem::path& file);

// Treats the file as untrusted: throws MissingInput when it is not there, and InputError naming file, place, expected
// and got when it is no gzip, no JSON, another schema, has missing, unknown or uneven columns, indices outside their
// tables, or fails validate().
[[nodiscard]] Trace read_trace(const std::filesystem::path& file);

// Its "world_size", without reading on; none where read_trace() would refuse the file, or has not come to it yet.
[[nodiscard]] std::optional<std::uint32_t> recorded_world_size(const std::filesystem::path& file);

}  // namespace weft
