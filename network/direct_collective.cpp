// Direct exchanges: every rank sends each other rank its part itself. Each begins with its neighbour, so that at no
// time all send to the same one (the usual pairwise exchange), and goes on in RankOrder.
#include <algorithm>

#include "network/generated_schedule.h"
#include "network/schedule_generators.h"

namespace weft {

namespace {

ChunkGrid grid_for(const ScheduleRequest& request) {
  switch (request.kind) {
    case CollectiveKind::all_reduce:
      return ChunkGrid::free_parts(request, request.bytes, request.ranks, ChunkGrid::kLineUnit);
    case CollectiveKind::send_receive:
    case CollectiveKind::shift:
      return ChunkGrid::free_parts(request, request.bytes, 1, ChunkGrid::kLineUnit);
    case CollectiveKind::all_gather:
      return ChunkGrid::rank_parts(request, request.bytes * request.ranks, request.ranks, request.bytes,
                                   ChunkGrid::kLineUnit);
    default:
      return ChunkGrid::rank_parts(request, request.bytes, request.ranks, part_stride_of(request),
                                   ChunkGrid::kLineUnit);
  }
}

// One group of warps sends and one receives, except where a rank does only one of both. They work in rounds of one
// slice; an all-reduce sums slice s in round s and gathers it in the next.
class DirectSchedule : public GeneratedSchedule {
 public:
  explicit DirectSchedule(const ScheduleRequest& request)
      : GeneratedSchedule(request),
        grid_(grid_for(request)),
        others_(request.ranks - 1),
        order_(request),
        bundles_((others_ + kPeersPerStep - 1) / kPeersPerStep) {}

  [[nodiscard]] std::uint32_t groups(std::uint32_t /*rank*/, std::uint32_t /*block*/) const override {
    return request().kind == CollectiveKind::send_receive ? 1 : 2;
  }

  [[nodiscard]] std::uint64_t steps(std::uint32_t /*rank*/, std::uint32_t /*block*/,
                                    std::uint32_t group) const override {
    return (slices() + (reduces_all() ? 1 : 0)) * steps_per_round(group);
  }

  [[nodiscard]] ScheduleStep step(std::uint32_t rank, std::uint32_t block, std::uint32_t group,
                                  std::uint64_t index) const override {
    const auto item = static_cast<std::uint32_t>(index % steps_per_round(group));
    const ScheduleStep step = step_of({rank, block, index / steps_per_round(group), group == kSends}, item);
    return step.bytes == 0 ? ScheduleStep{} : step;
  }

  [[nodiscard]] std::vector<std::uint32_t> sends_to(std::uint32_t rank, std::uint32_t /*block*/,
                                                    std::uint32_t group) const override {
    std::vector<std::uint32_t> peers;
    if (group == kReceives) return peers;
    if (request().kind == CollectiveKind::shift) {
      const std::uint32_t to = after(rank, request().distance);
      return to == request().first ? peers : std::vector<std::uint32_t>{to};
    }
    if (request().kind == CollectiveKind::send_receive) {
      if (rank == request().root) peers.push_back(after(rank, 1));
      return peers;
    }
    for (std::uint32_t distance = 1; distance <= others_; ++distance) peers.push_back(order_.receiver(rank, distance));
    return peers;
  }
  [[nodiscard]] bool is_waited_for(std::uint32_t /*rank*/, std::uint32_t /*block*/,
                                   std::uint32_t group) const override {
    return reduces_all() && group == kReceives;
  }

 private:
  static constexpr std::uint32_t kPeersPerStep = ScheduleStep::kMaxPeers;
  static constexpr std::uint32_t kSends = 0;
  static constexpr std::uint32_t kReceives = 1;

  struct Place {
    std::uint32_t rank;
    std::uint32_t block;
    std::uint64_t slice;  // counted over all loops
    bool sends;
  };

  [[nodiscard]] bool reduces_all() const { return request().kind == CollectiveKind::all_reduce; }
  [[nodiscard]] std::uint64_t slices() const { return grid_.loops() * grid_.slices(); }

  [[nodiscard]] std::uint32_t steps_per_round(std::uint32_t group) const {
    switch (request().kind) {
      case CollectiveKind::all_reduce:
        return others_ + bundles_;
      case CollectiveKind::reduce_scatter:
        return group == kSends ? others_ : bundles_;
      case CollectiveKind::all_gather:
        return group == kSends ? bundles_ : others_;
      default:
        return 1;
    }
  }

  [[nodiscard]] Piece piece(const Place& place, std::uint32_t part) const {
    if (place.slice >= slices()) return {};
    return grid_.piece(place.slice / grid_.slices(), place.block, part,
                       static_cast<std::uint32_t>(place.slice % grid_.slices()));
  }

  [[nodiscard]] ScheduleStep step_of(const Place& place, std::uint32_t item) const {
    switch (request().kind) {
      case CollectiveKind::all_reduce:
        return all_reduce(place, item);
      case CollectiveKind::reduce_scatter:
        return place.sends ? send_part(place, item) : sum_parts(place, item);
      case CollectiveKind::all_gather:
        return place.sends ? send_own(place, item) : receive_part(place, item);
      case CollectiveKind::shift:
        return shift(place);
      default:
        return send_receive(place);
    }
  }

  [[nodiscard]] ScheduleStep all_reduce(const Place& place, std::uint32_t item) const {
    const std::uint32_t first_half = place.sends ? others_ : bundles_;
    if (item < first_half) return place.sends ? send_part(place, item) : sum_parts(place, item);
    if (place.slice == 0) return {};
    const Place before_this{place.rank, place.block, place.slice - 1, place.sends};
    if (!place.sends) return receive_part(before_this, item - first_half);
    ScheduleStep step = send_own(before_this, item - first_half);
    const std::uint64_t summed = before_this.slice * steps_per_round(kReceives) + bundles_;
    return step.bytes == 0 ? step : step.start_after({place.block, kReceives, summed});
  }

  [[nodiscard]] ScheduleStep send_part(const Place& place, std::uint32_t item) const {
    const std::uint32_t to = order_.receiver(place.rank, distance(place, item));
    const Piece at = piece(place, to);
    ScheduleStep step{.bytes = at.bytes};
    return step.read(ScheduleBuffer::input, at.offset).send(to);
  }

  // The own part of all others, some at a time.
  [[nodiscard]] ScheduleStep sum_parts(const Place& place, std::uint32_t bundle) const {
    const Piece at = piece(place, place.rank);
    const std::int64_t sum = reduces_all() ? at.offset : at.offset_in_part;
    ScheduleStep step{.bytes = at.bytes};
    for_bundle(bundle, [&](std::uint32_t item) { step.receive(order_.sender(place.rank, distance(place, item))); });
    if (bundle > 0) return step.add_to(ScheduleBuffer::output, sum);
    return step.read(ScheduleBuffer::input, at.offset).write(ScheduleBuffer::output, sum);
  }

  // The own part to all others, some at a time.
  [[nodiscard]] ScheduleStep send_own(const Place& place, std::uint32_t bundle) const {
    const Piece at = piece(place, place.rank);
    ScheduleStep step{.bytes = at.bytes};
    for_bundle(bundle, [&](std::uint32_t item) { step.send(order_.receiver(place.rank, distance(place, item))); });
    if (reduces_all()) return step.read(ScheduleBuffer::output, at.offset);
    step.read(ScheduleBuffer::input, at.offset_in_part);
    return bundle == 0 ? step.write(ScheduleBuffer::output, at.offset) : step;
  }

  [[nodiscard]] ScheduleStep receive_part(const Place& place, std::uint32_t item) const {
    const std::uint32_t from = order_.sender(place.rank, distance(place, item));
    const Piece at = piece(place, from);
    ScheduleStep step{.bytes = at.bytes};
    return step.receive(from).write(ScheduleBuffer::output, at.offset);
  }

  [[nodiscard]] ScheduleStep send_receive(const Place& place) const {
    const Piece at = piece(place, 0);
    ScheduleStep step{.bytes = at.bytes};
    if (place.rank == request().root) return step.read(ScheduleBuffer::input, at.offset).send(after(place.rank, 1));
    return step.receive(request().root).write(ScheduleBuffer::output, at.offset);
  }

  // As ncclSend to the next rank and ncclRecv from the one before in one ncclGroup; or to one further on.
  [[nodiscard]] ScheduleStep shift(const Place& place) const {
    const Piece at = piece(place, 0);
    ScheduleStep step{.bytes = at.bytes};
    const std::uint32_t distance = request().distance;
    if (place.sends) {
      const std::uint32_t to = after(place.rank, distance);
      return to == request().first ? ScheduleStep{} : step.read(ScheduleBuffer::input, at.offset).send(to);
    }
    if (place.rank == request().first) return {};
    return step.receive(before(place.rank, distance)).write(ScheduleBuffer::output, at.offset);
  }

  // Of the other ranks, one after another: each block begins with another one, so that all links are busy at once.
  [[nodiscard]] std::uint32_t distance(const Place& place, std::uint32_t item) const {
    return (item + place.block) % others_ + 1;
  }

  // The others that a bundle covers, as items of distance().
  template <class Visit>
  void for_bundle(std::uint32_t bundle, Visit&& visit) const {
    const std::uint32_t end = std::min(others_, (bundle + 1) * kPeersPerStep);
    for (std::uint32_t item = bundle * kPeersPerStep; item < end; ++item) visit(item);
  }

  ChunkGrid grid_;
  std::uint32_t others_;
  RankOrder order_;
  std::uint32_t bundles_;  // steps that serve kPeersPerStep of them at a time
};

}  // namespace

std::unique_ptr<CollectiveSchedule> make_direct(const ScheduleRequest& request) {
  return std::make_unique<DirectSchedule>(request);
}

}  // namespace weft
