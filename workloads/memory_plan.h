// What a program holds in GPU memory at its worst moment.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "sim/program.h"

namespace weft {

struct MemoryPeak {
  Bytes total;
  std::array<Bytes, kMemoryClassCount> by_class{};     // by MemoryClass, at that moment
  OpId at;                                             // the operation at whose start it is reached first
  std::vector<std::pair<std::string, Bytes>> largest;  // the ten largest holders then, by size, then name
};

// From the program's memory events; all zero when it has none. Throws InternalError when more is freed than was
// allocated.
[[nodiscard]] MemoryPeak peak_memory(const Program& program);

}  // namespace weft
