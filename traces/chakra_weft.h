// weft's traces as Chakra execution traces, and back to the same trace.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "traces/chakra_file.h"
#include "traces/trace.h"

namespace weft {

// Communicators that are not the whole world, by the number that nodes name in "pg_name", from 1 on.
using ChakraGroups = std::vector<std::vector<std::uint32_t>>;
[[nodiscard]] ChakraGroups groups_of(const Trace& trace);

// One rank. Each operation is a node of the host for the time until it was issued, and one on the GPU; the wait of a
// host is a second node of the host. What ASTRA-sim cannot simulate, collectives without a size and kinds it does not
// have, is a computation of the recorded time; `replayed` counts these. Whole microseconds carry their remainders on.
[[nodiscard]] ChakraFile chakra_of_rank(const Trace& trace, std::size_t rank_index, const ChakraGroups& groups,
                                        std::size_t& replayed);

[[nodiscard]] bool written_by_weft(const ChakraFile& file);
// Fills in `trace` what concerns all ranks. Throws InputError for attributes that are not as chakra_of_rank writes
// them.
[[nodiscard]] TraceRank rank_of_weft(const ChakraFile& file, Trace& trace);

// PREFIX.0.et, PREFIX.1.et, ... by the trace's ranks, and PREFIX.groups.json, for ASTRA-sim's communicator group
// configuration, where there are groups. Returns the files written. Throws InputError when one cannot be.
std::vector<std::filesystem::path> export_chakra(const Trace& trace, const std::filesystem::path& prefix,
                                                 std::vector<std::string>& notes);

}  // namespace weft
