// What is made of sends and receives to several peers: all_to_all, gather, scatter. A message to a peer is cut into
// parts, one for each of a few channels; a thread block does the sends and receives that meet on its channel at the
// same time, its warps divided among them, eight of each at a time. As NCCL places them (src/include/channel.h,
// ncclP2pChannelBaseForRound; src/device/sendrecv.h): the peers of a round begin on channels far apart, those
// of another node, eight at a time, on the same one. Rounds are RankOrder's.
#include <algorithm>
#include <bit>
#include <vector>

#include "network/generated_schedule.h"
#include "network/schedule_generators.h"

namespace weft {

namespace {

constexpr std::uint32_t kAtOnce = 8;  // NCCL_MAX_DEV_WORK_P2P_PER_BATCH

std::uint32_t reversed_bits(std::uint32_t value, int bits) {
  std::uint32_t result = 0;
  for (int bit = 0; bit < bits; ++bit) result |= (value >> bit & 1U) << (bits - 1 - bit);
  return result;
}

// A piece of work of a channel: its part of what goes to, or comes from, the peer so many rounds on.
struct Meeting {
  std::uint32_t round;
  std::uint32_t part;
};

// By channel that is used, in the order of the rounds.
std::vector<std::vector<Meeting>> meetings_of(const ScheduleRequest& request, std::uint32_t per_node,
                                              std::uint32_t parts) {
  const std::uint32_t channels = std::bit_floor(request.channels);
  const int bits = std::countr_zero(channels);
  std::vector<std::vector<Meeting>> all(channels);
  for (std::uint32_t round = 0; round < request.ranks; ++round) {
    const std::uint32_t first = per_node == request.ranks ? round
                                                          : round / per_node * ((per_node + kAtOnce - 1) / kAtOnce) +
                                                                round % per_node / kAtOnce;
    const std::uint32_t base = reversed_bits(first % channels, bits);
    for (std::uint32_t part = 0; part < parts; ++part) all[(base + part) % channels].push_back({round, part});
  }
  std::erase_if(all, [](const std::vector<Meeting>& channel) { return channel.empty(); });
  return all;
}

// Of the groups of warps of a block, even ones send and odd ones receive; who does only one of both has one a meeting.
class ExchangeSchedule : public GeneratedSchedule {
 public:
  explicit ExchangeSchedule(const ScheduleRequest& request)
      : GeneratedSchedule(request),
        order_(request),
        parts_(std::clamp(request.channels_to_peer, 1U, std::bit_floor(request.channels))),
        grid_(grid_for(request, parts_)),
        meetings_(meetings_of(request, order_.per_node(), parts_)) {}

  [[nodiscard]] std::uint32_t blocks(std::uint32_t /*rank*/) const override {
    return static_cast<std::uint32_t>(meetings_.size());
  }
  [[nodiscard]] std::uint32_t groups(std::uint32_t rank, std::uint32_t block) const override {
    return ways() * std::clamp(meetings(rank, block), 1U, kAtOnce);
  }
  [[nodiscard]] std::uint64_t steps(std::uint32_t rank, std::uint32_t block, std::uint32_t group) const override {
    const std::uint32_t of_group = group / ways();
    const std::uint32_t all = meetings(rank, block);
    return of_group < all ? slices() * ((all - of_group - 1) / kAtOnce + 1) : 0;
  }
  [[nodiscard]] ScheduleStep step(std::uint32_t rank, std::uint32_t block, std::uint32_t group,
                                  std::uint64_t index) const override {
    const Meeting at = meeting(rank, block, group, index / slices());
    const ScheduleStep step =
        sends(rank, group) ? send(rank, at, index % slices()) : receive(rank, at, index % slices());
    return step.bytes == 0 ? ScheduleStep{} : step;
  }
  [[nodiscard]] std::vector<std::uint32_t> sends_to(std::uint32_t rank, std::uint32_t block,
                                                    std::uint32_t group) const override {
    std::vector<std::uint32_t> peers;
    if (!sends(rank, group)) return peers;
    for (std::uint64_t i = 0; i * slices() < steps(rank, block, group); ++i) {
      const Meeting at = meeting(rank, block, group, i);
      if (at.round > 0) peers.push_back(order_.receiver(rank, at.round));
    }
    return peers;
  }

 private:
  static ChunkGrid grid_for(ScheduleRequest request, std::uint32_t parts) {
    request.channels = parts;
    if (request.kind == CollectiveKind::gather) {
      return ChunkGrid::rank_parts(request, request.bytes * request.ranks, request.ranks, request.bytes,
                                   ChunkGrid::kLineUnit);
    }
    return ChunkGrid::rank_parts(request, request.bytes, request.ranks, part_stride_of(request), ChunkGrid::kLineUnit);
  }

  [[nodiscard]] bool is(CollectiveKind kind) const { return request().kind == kind; }
  [[nodiscard]] std::uint32_t ways() const { return is(CollectiveKind::all_to_all) ? 2 : 1; }
  [[nodiscard]] bool sends(std::uint32_t rank, std::uint32_t group) const {
    if (is(CollectiveKind::all_to_all)) return group % 2 == 0;
    return is(CollectiveKind::scatter) == (rank == request().root);
  }
  [[nodiscard]] bool meets_all(std::uint32_t rank) const {
    return is(CollectiveKind::all_to_all) || rank == request().root;
  }
  [[nodiscard]] std::uint64_t slices() const { return std::max<std::uint64_t>(1, grid_.loops() * grid_.slices()); }

  // Of a rank that only meets the root: the round in which it does.
  [[nodiscard]] std::uint32_t round_with_root(std::uint32_t rank) const {
    return is(CollectiveKind::gather) ? order_.round(rank, request().root) : order_.round(request().root, rank);
  }
  [[nodiscard]] std::uint32_t meetings(std::uint32_t rank, std::uint32_t block) const {
    const std::vector<Meeting>& all = meetings_[block];
    if (meets_all(rank)) return static_cast<std::uint32_t>(all.size());
    const std::uint32_t round = round_with_root(rank);
    return static_cast<std::uint32_t>(std::ranges::count(all, round, &Meeting::round));
  }
  [[nodiscard]] Meeting meeting(std::uint32_t rank, std::uint32_t block, std::uint32_t group,
                                std::uint64_t index) const {
    const std::vector<Meeting>& all = meetings_[block];
    if (!meets_all(rank)) return *std::ranges::find(all, round_with_root(rank), &Meeting::round);
    return all[group / ways() + index * kAtOnce];
  }

  [[nodiscard]] Piece piece(std::uint64_t slice, const Meeting& at, std::uint32_t part_of) const {
    return grid_.piece(slice / grid_.slices(), at.part, part_of, static_cast<std::uint32_t>(slice % grid_.slices()));
  }

  // Where what comes from a rank, or goes to it, lies.
  [[nodiscard]] std::int64_t arrives_at(std::uint32_t rank, std::uint32_t from, const Piece& own) const {
    if (is(CollectiveKind::all_to_all)) return from * (output_bytes(rank) / ranks()) + own.offset_in_part;
    return is(CollectiveKind::scatter) ? own.offset_in_part : own.offset;
  }
  [[nodiscard]] std::int64_t stands_at(const Piece& piece) const {
    return is(CollectiveKind::gather) ? piece.offset_in_part : piece.offset;
  }
  // Of the message, whose part it is.
  [[nodiscard]] std::uint32_t part_of(std::uint32_t from, std::uint32_t to) const {
    return is(CollectiveKind::gather) ? from : to;
  }

  [[nodiscard]] ScheduleStep send(std::uint32_t rank, const Meeting& at, std::uint64_t slice) const {
    const std::uint32_t to = order_.receiver(rank, at.round);
    const Piece moved = piece(slice, at, part_of(rank, to));
    ScheduleStep step{.bytes = moved.bytes};
    step.read(ScheduleBuffer::input, stands_at(moved));
    return at.round > 0 ? step.send(to) : step.write(ScheduleBuffer::output, arrives_at(rank, rank, moved));
  }
  [[nodiscard]] ScheduleStep receive(std::uint32_t rank, const Meeting& at, std::uint64_t slice) const {
    const std::uint32_t from = order_.sender(rank, at.round);
    const Piece moved = piece(slice, at, part_of(from, rank));
    ScheduleStep step{.bytes = moved.bytes};
    if (at.round == 0) {  // of an all_to_all the sending warps copy what stays
      if (is(CollectiveKind::all_to_all)) return {};
      step.read(ScheduleBuffer::input, stands_at(moved));
    } else {
      step.receive(from);
    }
    return step.write(ScheduleBuffer::output, arrives_at(rank, from, moved));
  }

  RankOrder order_;
  std::uint32_t parts_;
  ChunkGrid grid_;  // its channels are parts
  std::vector<std::vector<Meeting>> meetings_;
};

}  // namespace

std::unique_ptr<CollectiveSchedule> make_exchange(const ScheduleRequest& request) {
  return std::make_unique<ExchangeSchedule>(request);
}

}  // namespace weft
