// What a collective is: which values its result has. For schedule_check.
#pragma once

#include <cstdint>
#include <string>

#include "network/collective_schedule.h"

namespace weft {

// The value of an element of a rank's input. Sums wrap around; that two sets of contributions have the same sum is as
// unlikely as a collision of 64-bit hashes.
[[nodiscard]] std::uint64_t element_value(std::uint32_t rank, std::int64_t element);

// One element of a result: from which element of the inputs it comes, and of which ranks.
struct ExpectedElement {
  std::int64_t element = 0;
  std::uint32_t rank = 0;  // whose, unless it is the sum of all
  bool sum = false;
};
// Element `element` of the output of `rank`. The output must have it (output_bytes_of).
[[nodiscard]] ExpectedElement expected_element(const ScheduleRequest& request, std::uint32_t rank,
                                               std::int64_t element);
[[nodiscard]] std::uint64_t value_of(const ScheduleRequest& request, const ExpectedElement& expected);

// "the sum of element 5 of all ranks, got it without rank 3".
[[nodiscard]] std::string explain_wrong_value(const ScheduleRequest& request, const ExpectedElement& expected,
                                              std::uint64_t got);

}  // namespace weft
