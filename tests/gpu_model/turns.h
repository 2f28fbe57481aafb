// Turns of work for tests of WaveSkip.
#pragma once

#include <cstdint>

#include "gpu_model/clock_domain.h"

namespace weft {

inline constexpr std::uint64_t kTurn = 100;  // rounds
inline constexpr double kHbmRate = 4;        // bytes a subcycle
inline constexpr SubCycle kTime = 500;       // of a turn
inline constexpr std::int64_t kCache = 1 << 20;

}  // namespace weft
