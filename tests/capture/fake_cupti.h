// What the parts of the tests' CUPTI share.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/capture/fake_driver.h"

// The variable FAKE_CUPTI is `what`.
[[nodiscard]] bool asked_to(std::string_view what);

// Records: a call of the runtime of 2 us, and a kernel. Where kernels begin, in CUPTI's time.
void fake_call_runs(std::uint32_t id, std::uint64_t time, std::uint32_t correlation);
void fake_kernel_ran(const char* name, std::uint64_t start, std::uint64_t ns, std::uint32_t stream,
                     std::uint32_t correlation);
inline constexpr std::uint64_t kFakeStart = 1'700'000'000'000'000'000;

// To the subscriber; and what it asked to be told of (fake_streams.cpp).
void fake_calls_back(CUpti_CallbackDomain domain, std::uint32_t call, const CUpti_CallbackData& data);
void fake_tells_of(CUpti_CallbackDomain domain, std::uint32_t call);
[[nodiscard]] const char* fake_call_name(CUpti_CallbackDomain domain, std::uint32_t call);

// On the GPU, where the range profiler may be at work (fake_range_profiler.cpp). A collective that it would replay ends
// the program with 9.
void fake_kernel_runs(const char* name);

// PM sampling (fake_pm_sampling.cpp): a metric of a sample; and that it began or failed, for which the run waits.
[[nodiscard]] double fake_traffic(std::string_view metric, std::size_t sample);
void fake_sampling_settled();
[[nodiscard]] bool fake_sampling_is_on();

// Of the host side of the range profiler, and that of PM sampling.
inline constexpr std::uintptr_t kRangeHost = 1, kSamplingHost = 3;
