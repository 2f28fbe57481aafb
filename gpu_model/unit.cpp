#include "gpu_model/unit.h"

#include <algorithm>

namespace weft {

bool L1Tags::access(LineAddress line, std::uint32_t kernel) {
  if (sets_ == 0) return false;
  if (entries_.empty()) entries_.resize(std::size_t{sets_} * kWays);
  Entry* const set = &entries_[std::size_t{line % sets_} * kWays];
  std::uint32_t found = 0;
  while (found < kWays - 1 && (set[found].line != line || set[found].kernel != kernel)) ++found;
  const bool hit = set[found].line == line && set[found].kernel == kernel;
  std::copy_backward(set, set + found, set + found + 1);
  set[0] = {line, kernel};
  return hit;
}

}  // namespace weft
