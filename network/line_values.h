// The numbers in a line, where values travel (functional mode).
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include "network/packet.h"
#include "sim/number_format.h"

namespace weft {

using LineValues = std::array<std::byte, kLineBytes>;

inline std::uint32_t elements_per_line(NumberFormat format) { return kLineBytes / bytes_of(format); }

inline double element_of(const LineValues& line, NumberFormat format, std::uint32_t index) {
  std::uint64_t bits = 0;  // hosts are little-endian, as GPUs are
  std::memcpy(&bits, &line[std::size_t{index} * bytes_of(format)], bytes_of(format));
  return decode(format, bits);
}

inline void set_element(LineValues& line, NumberFormat format, std::uint32_t index, std::uint64_t bits) {
  std::memcpy(&line[std::size_t{index} * bytes_of(format)], &bits, bytes_of(format));
}

}  // namespace weft
