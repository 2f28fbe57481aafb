// What all generators share: the request and the sizes of the buffers that follow from the collective.
#pragma once

#include <utility>

#include "network/chunk_grid.h"
#include "network/collective_schedule.h"

namespace weft {

// The order in which a rank goes through all ranks, itself the first: the places of its own node, then those of the
// next one (NCCL src/init.cc, p2pSchedule, 2.19; there in leaps). In the same round each rank receives from one that
// sends to it.
class RankOrder {
 public:
  explicit RankOrder(const ScheduleRequest& request)
      : per_node_(per_node_of(request)), nodes_(request.ranks / per_node_) {}

  [[nodiscard]] std::uint32_t per_node() const { return per_node_; }
  [[nodiscard]] std::uint32_t receiver(std::uint32_t rank, std::uint32_t round) const {
    const std::uint32_t place = (rank % per_node_ + round % per_node_) % per_node_;
    return (rank / per_node_ + round / per_node_) % nodes_ * per_node_ + place;
  }
  [[nodiscard]] std::uint32_t sender(std::uint32_t rank, std::uint32_t round) const {
    const std::uint32_t place = (rank % per_node_ + per_node_ - round % per_node_) % per_node_;
    return (rank / per_node_ + nodes_ - round / per_node_) % nodes_ * per_node_ + place;
  }
  [[nodiscard]] std::uint32_t round(std::uint32_t from, std::uint32_t to) const {
    const std::uint32_t node = (nodes_ + to / per_node_ - from / per_node_) % nodes_;
    return node * per_node_ + (per_node_ + to % per_node_ - from % per_node_) % per_node_;
  }

 private:
  static std::uint32_t per_node_of(const ScheduleRequest& request) {
    const bool even = request.ranks_per_node > 0 && request.ranks % request.ranks_per_node == 0;
    return even ? request.ranks_per_node : request.ranks;
  }

  std::uint32_t per_node_, nodes_;
};

class GeneratedSchedule : public CollectiveSchedule {
 public:
  explicit GeneratedSchedule(ScheduleRequest request) : request_(std::move(request)) {}

  [[nodiscard]] std::uint32_t ranks() const override { return request_.ranks; }
  [[nodiscard]] std::int64_t input_bytes(std::uint32_t rank) const override;
  [[nodiscard]] std::int64_t output_bytes(std::uint32_t rank) const override;
  [[nodiscard]] std::uint32_t blocks(std::uint32_t /*rank*/) const override { return request_.channels; }
  [[nodiscard]] std::uint32_t groups(std::uint32_t /*rank*/, std::uint32_t /*block*/) const override { return 1; }
  [[nodiscard]] bool is_waited_for(std::uint32_t /*rank*/, std::uint32_t /*block*/,
                                   std::uint32_t /*group*/) const override {
    return false;
  }

 protected:
  [[nodiscard]] const ScheduleRequest& request() const { return request_; }
  // The part of rank `rank` where the collective gives each rank one.
  [[nodiscard]] std::int64_t part_stride() const;
  // The rank `distance` places after `rank`; distance at most `ranks`.
  [[nodiscard]] std::uint32_t after(std::uint32_t rank, std::uint32_t distance) const {
    return (rank + distance) % request_.ranks;
  }
  [[nodiscard]] std::uint32_t before(std::uint32_t rank, std::uint32_t distance) const {
    return (rank + request_.ranks - distance) % request_.ranks;
  }

 private:
  ScheduleRequest request_;
};

// Bytes of the buffers of one rank, as the collective defines them. A part is divided up to whole elements: where the
// ranks do not divide the message, the last parts are shorter or empty.
[[nodiscard]] std::int64_t input_bytes_of(const ScheduleRequest& request, std::uint32_t rank);
[[nodiscard]] std::int64_t output_bytes_of(const ScheduleRequest& request, std::uint32_t rank);

// Parts of the message by rank: of an all_gather's output, a reduce_scatter's input and so on.
[[nodiscard]] std::int64_t part_stride_of(const ScheduleRequest& request);

}  // namespace weft
