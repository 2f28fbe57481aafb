// What the tests' driver and their CUPTI agree on.
#pragma once

#include <cstdint>

inline constexpr std::uintptr_t kCapturingStream = 99;  // captures into a graph
