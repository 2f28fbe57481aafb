#include "network/generated_schedule.h"

#include <algorithm>

namespace weft {

namespace {

std::int64_t part_bytes(const ScheduleRequest& request, std::uint32_t rank) {
  const std::int64_t stride = part_stride_of(request);
  return std::clamp<std::int64_t>(request.bytes - rank * stride, 0, stride);
}

}  // namespace

std::int64_t part_stride_of(const ScheduleRequest& request) {
  const bool joins = request.kind == CollectiveKind::all_gather || request.kind == CollectiveKind::gather;
  return joins ? request.bytes : part_bytes_of(request, request.bytes, request.ranks);
}

std::int64_t input_bytes_of(const ScheduleRequest& request, std::uint32_t rank) {
  switch (request.kind) {
    case CollectiveKind::broadcast:
    case CollectiveKind::scatter:
    case CollectiveKind::send_receive:
      return rank == request.root ? request.bytes : 0;
    case CollectiveKind::shift:
      return (rank + request.distance) % request.ranks == request.first ? 0 : request.bytes;
    default:
      return request.bytes;
  }
}

std::int64_t output_bytes_of(const ScheduleRequest& request, std::uint32_t rank) {
  const bool root = rank == request.root;
  switch (request.kind) {
    case CollectiveKind::all_gather:
      return request.bytes * request.ranks;
    case CollectiveKind::gather:
      return root ? request.bytes * request.ranks : 0;
    case CollectiveKind::reduce:
      return root ? request.bytes : 0;
    case CollectiveKind::send_receive:
      return root ? 0 : request.bytes;
    case CollectiveKind::shift:
      return rank == request.first ? 0 : request.bytes;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter:
      return part_bytes(request, rank);
    case CollectiveKind::all_to_all:
      return part_bytes(request, rank) * request.ranks;
    default:
      return request.bytes;
  }
}

std::int64_t GeneratedSchedule::input_bytes(std::uint32_t rank) const { return input_bytes_of(request_, rank); }
std::int64_t GeneratedSchedule::output_bytes(std::uint32_t rank) const { return output_bytes_of(request_, rank); }
std::int64_t GeneratedSchedule::part_stride() const { return part_stride_of(request_); }

}  // namespace weft
