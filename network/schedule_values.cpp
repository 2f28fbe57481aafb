#include "network/schedule_values.h"

#include <fmt/format.h>

#include "network/generated_schedule.h"
#include "sim/error.h"

namespace weft {

std::uint64_t element_value(std::uint32_t rank, std::int64_t element) {
  // splitmix64's finaliser (Steele et al., OOPSLA 2014), of both numbers.
  std::uint64_t z = (static_cast<std::uint64_t>(element) << 16U) + rank + 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

ExpectedElement expected_element(const ScheduleRequest& request, std::uint32_t rank, std::int64_t element) {
  const std::int64_t part = part_stride_of(request) / request.element_bytes;
  switch (request.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
      return {element, 0, true};
    case CollectiveKind::reduce_scatter:
      return {rank * part + element, 0, true};
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
      return {element % part, static_cast<std::uint32_t>(element / part), false};
    case CollectiveKind::broadcast:
    case CollectiveKind::send_receive:
      return {element, request.root, false};
    case CollectiveKind::shift:
      return {element, (rank + request.ranks - request.distance) % request.ranks, false};
    case CollectiveKind::scatter:
      return {rank * part + element, request.root, false};
    case CollectiveKind::all_to_all: {
      const std::int64_t own = output_bytes_of(request, rank) / request.ranks / request.element_bytes;
      return {rank * part + element % own, static_cast<std::uint32_t>(element / own), false};
    }
    case CollectiveKind::barrier:
      break;
  }
  throw InternalError("a barrier has no result");
}

std::uint64_t value_of(const ScheduleRequest& request, const ExpectedElement& expected) {
  if (!expected.sum) return element_value(expected.rank, expected.element);
  std::uint64_t sum = 0;
  for (std::uint32_t r = 0; r < request.ranks; ++r) sum += element_value(r, expected.element);
  return sum;
}

std::string explain_wrong_value(const ScheduleRequest& request, const ExpectedElement& expected, std::uint64_t got) {
  if (!expected.sum) {
    return fmt::format("expected element {} of rank {}, got another value", expected.element, expected.rank);
  }
  const std::uint64_t difference = got - value_of(request, expected);
  std::string what = "another value";
  for (std::uint32_t r = 0; r < request.ranks; ++r) {
    const std::uint64_t value = element_value(r, expected.element);
    if (difference == value) what = fmt::format("rank {}'s contribution twice", r);
    if (difference == 0 - value) what = fmt::format("no contribution of rank {}", r);
    if (got == value) what = fmt::format("rank {}'s element alone", r);
  }
  return fmt::format("expected the sum of element {} of all ranks, got {}", expected.element, what);
}

}  // namespace weft
