// What the two halves of the tests' CUPTI share.
#pragma once

#include <cstdint>
#include <string_view>

// The variable FAKE_CUPTI is `what`.
[[nodiscard]] bool asked_to(std::string_view what);

// On the GPU, where the range profiler may be at work (fake_range_profiler.cpp). A collective that it would replay ends
// the program with 9.
void fake_kernel_runs(const char* name);

inline constexpr std::uintptr_t kCapturingStream = 99;  // fake_driver.cpp
