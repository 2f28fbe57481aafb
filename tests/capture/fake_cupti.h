// What the two halves of the tests' CUPTI share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// The variable FAKE_CUPTI is `what`.
[[nodiscard]] bool asked_to(std::string_view what);

// On the GPU, where the range profiler may be at work (fake_range_profiler.cpp). A collective that it would replay ends
// the program with 9.
void fake_kernel_runs(const char* name);

// PM sampling (fake_pm_sampling.cpp): a metric of a sample; and that it began or failed, for which the run waits.
[[nodiscard]] double fake_traffic(std::string_view metric, std::size_t sample);
void fake_sampling_settled();
[[nodiscard]] bool fake_sampling_is_on();

// Of the host side of the range profiler, and that of PM sampling.
inline constexpr std::uintptr_t kRangeHost = 1, kSamplingHost = 3;

inline constexpr std::uintptr_t kCapturingStream = 99;  // fake_driver.cpp
