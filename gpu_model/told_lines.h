// What the L2 was told in one go of streams that are left out: lines that several blocks stream together are told once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "gpu_model/l2_cache.h"

namespace weft {

// What of the work that is left out the L2 is told: all, only what it then still holds, or nothing.
enum class Told { all, last, nothing };

class ToldLines {
 public:
  // Of lines [from, to) of a stream that begins at `first`, those that it was not told yet; it will be now.
  void shorten(LineAddress first, std::uint32_t partition, bool stored, std::uint32_t& from, std::uint32_t& to) {
    Part& told = parts_[first << 3U | (stored ? LineAddress{partition & 3U} << 1U | 1U : 0U)];
    if (from > told.to || to < told.from || told.from == told.to) {  // elsewhere in it
      told = {from, to};
    } else if (from >= told.from) {
      from = std::min(to, told.to);
      told.to = std::max(told.to, to);
    } else if (to <= told.to) {
      to = told.from;
      told.from = from;
    } else {
      told = {from, to};
    }
  }

 private:
  struct Part {
    std::uint32_t from = 0, to = 0;
  };
  std::unordered_map<LineAddress, Part> parts_;
};

}  // namespace weft
