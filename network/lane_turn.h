// Whose turn it is among parallel lanes, at GPUs as at routers: what came by different lanes so goes on by different
// ones.
#pragma once

#include <cstdint>

#include "network/packet.h"

namespace weft {

// Of a line, to be taken modulo the lanes: consecutive lines take turns, and powers of two do not camp on one.
constexpr std::uint32_t lane_turn(LineAddress line) { return line + (line >> 8); }

}  // namespace weft
