#include "gpu_model/unit.h"

#include <algorithm>

namespace weft {

L1Tags::Access L1Tags::access(LineAddress line, std::uint32_t kernel, std::uint32_t sectors) {
  if (sets_ == 0) return Access::miss;
  if (entries_.empty()) entries_.resize(std::size_t{sets_} * kWays);
  Entry* const set = set_of(line);
  std::uint32_t found = 0;
  while (found < kWays - 1 && (set[found].line != line || set[found].kernel != kernel)) ++found;
  Entry entry = set[found];
  if (entry.line != line || entry.kernel != kernel) entry = {line, kernel, 0, 0};
  const std::uint32_t missing = sectors & ~std::uint32_t{entry.valid};
  const Access access = missing == 0                                      ? Access::hit
                        : (missing & ~std::uint32_t{entry.reserved}) == 0 ? Access::on_its_way
                                                                          : Access::miss;
  entry.reserved = static_cast<std::uint8_t>(entry.reserved | missing);
  std::copy_backward(set, set + found, set + found + 1);
  set[0] = entry;
  return access;
}

void L1Tags::fill(LineAddress line, std::uint32_t kernel) {
  if (sets_ == 0) return;
  Entry* const set = set_of(line);
  for (std::uint32_t w = 0; w < kWays; ++w) {
    if (set[w].line != line || set[w].kernel != kernel) continue;
    set[w].valid = static_cast<std::uint8_t>(set[w].valid | set[w].reserved);
    set[w].reserved = 0;
    return;
  }
}

}  // namespace weft
