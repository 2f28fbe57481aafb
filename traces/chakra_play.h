// Plays a Chakra trace through, for the order of issue and the times that it does not record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/chakra_file.h"

namespace weft {

struct ChakraTimes {
  std::vector<std::uint32_t> order;   // nodes by the time at which they can begin; dependencies come before
  std::vector<std::uint64_t> issued;  // us, by node: the last of its host nodes has ended
  std::vector<std::uint64_t> start;   // us, by node: it runs
  std::vector<std::vector<std::uint32_t>> dependencies;  // by node, those that are there
};

// True of a node that takes no time of the GPU.
[[nodiscard]] bool on_host(const ChakraNode& node);
// Of a node on the GPU: as recorded ("stream", else "tid"), else 0 for computation and 1 for communication.
[[nodiscard]] std::uint32_t stream_of(const ChakraNode& node);

// Throws InputError when dependencies form a cycle.
[[nodiscard]] ChakraTimes play(const ChakraFile& file, std::vector<std::string>& notes);

}  // namespace weft
