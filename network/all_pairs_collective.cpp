// All pairs with a thread block for each: the all_reduce that RCCL's tables have for 8 GPUs without switches
// (tools/msccl-algorithms, allreduce-allpairs-8n-*). In a channel, a block sends a peer his part, puts its own part as
// that peer has it into scratch memory, adds up a share of its own part once all blocks have theirs, and passes the sum
// on to its peer. One more block copies the own part first.
#include <algorithm>

#include "network/collective_algorithm.h"
#include "network/generated_schedule.h"
#include "network/schedule_generators.h"

namespace weft {

namespace {

class AllPairsSchedule : public GeneratedSchedule {
 public:
  explicit AllPairsSchedule(const ScheduleRequest& request)
      : GeneratedSchedule(request),
        channels_(request.channels / request.ranks),
        grid_(grid_for(request, channels_)),
        slices_(grid_.slices()),
        largest_(grid_.pieces(0, 0, 0, 1).bytes),
        waits_((request.ranks - 1 + kMaxAfter - 1) / kMaxAfter),
        sums_((request.ranks - 1 + ScheduleStep::kMaxSources - 1) / ScheduleStep::kMaxSources) {}

  [[nodiscard]] std::uint32_t blocks(std::uint32_t /*rank*/) const override { return channels_ * ranks(); }
  [[nodiscard]] std::uint32_t channel(std::uint32_t /*rank*/, std::uint32_t block,
                                      std::uint32_t /*group*/) const override {
    return block % channels_;
  }
  [[nodiscard]] std::int64_t scratch_bytes(std::uint32_t /*rank*/) const override {
    return largest_ * (ranks() - 1) * channels_;
  }
  [[nodiscard]] std::uint64_t steps(std::uint32_t /*rank*/, std::uint32_t block,
                                    std::uint32_t /*group*/) const override {
    return grid_.loops() * in_loop(block);
  }

  [[nodiscard]] ScheduleStep step(std::uint32_t rank, std::uint32_t block, std::uint32_t /*group*/,
                                  std::uint64_t index) const override {
    const Place at{rank, block, index / in_loop(block)};
    auto item = static_cast<std::uint32_t>(index % in_loop(block));
    // In the order of the members below.
    const auto is = [&item](std::uint32_t count) {
      if (item < count) return true;
      item -= count;
      return false;
    };
    if (distance(block) == 0) {
      if (is(1)) return copy(at);
    } else {
      if (is(slices_)) return send_part(at, item);
      if (is(slices_)) return keep_part(at, item);
    }
    if (is(waits_)) return wait(at, item, 0);
    if (is(sums_)) return sum(at, item);
    if (is(waits_)) return wait(at, item, waits_ + sums_);
    return is(slices_) ? send_sum(at, item) : receive_sum(at, item);
  }

  [[nodiscard]] std::vector<std::uint32_t> sends_to(std::uint32_t rank, std::uint32_t block,
                                                    std::uint32_t /*group*/) const override {
    if (distance(block) == 0) return {};
    return {after(rank, distance(block))};
  }
  [[nodiscard]] bool is_waited_for(std::uint32_t /*rank*/, std::uint32_t /*block*/,
                                   std::uint32_t /*group*/) const override {
    return true;
  }

 private:
  static constexpr auto kMaxAfter = static_cast<std::uint32_t>(ScheduleStep::kMaxAfter);

  struct Place {
    std::uint32_t rank, block;
    std::uint64_t loop;
  };

  static ChunkGrid grid_for(ScheduleRequest request, std::uint32_t channels) {
    request.channels = channels;
    return ChunkGrid::free_parts(request, request.bytes, request.ranks, ChunkGrid::kLineUnit);
  }

  // From a rank to the peer of the block: 0 has none.
  [[nodiscard]] std::uint32_t distance(std::uint32_t block) const { return block / channels_; }
  [[nodiscard]] std::uint32_t peer(const Place& at) const { return after(at.rank, distance(at.block)); }
  [[nodiscard]] std::uint64_t in_loop(std::uint32_t block) const {
    if (distance(block) == 0) return 1 + waits_ + sums_;
    return 4 * slices_ + 2 * waits_ + sums_;
  }

  [[nodiscard]] Piece slice(const Place& at, std::uint32_t part, std::uint32_t index) const {
    return grid_.piece(at.loop, channel(at.rank, at.block, 0), part, index);
  }
  [[nodiscard]] Piece own_part(const Place& at) const {
    return grid_.pieces(at.loop, channel(at.rank, at.block, 0), at.rank, 1);
  }
  // Where the own part of the peer at `distance` lies, from 1 on.
  [[nodiscard]] std::int64_t scratch(const Place& at, std::uint32_t distance) const {
    return largest_ * (channel(at.rank, at.block, 0) * (ranks() - 1) + distance - 1);
  }

  [[nodiscard]] ScheduleStep copy(const Place& at) const {
    const Piece part = own_part(at);
    ScheduleStep step{.bytes = part.bytes};
    step.read(ScheduleBuffer::input, part.offset).write(ScheduleBuffer::output, part.offset);
    return or_idle(step);
  }
  [[nodiscard]] ScheduleStep send_part(const Place& at, std::uint32_t index) const {
    const Piece piece = slice(at, peer(at), index);
    ScheduleStep step{.bytes = piece.bytes};
    return or_idle(step.read(ScheduleBuffer::input, piece.offset).send(peer(at)));
  }
  [[nodiscard]] ScheduleStep keep_part(const Place& at, std::uint32_t index) const {
    const Piece piece = slice(at, at.rank, index);
    ScheduleStep step{.bytes = piece.bytes};
    step.receive(peer(at)).write(ScheduleBuffer::scratch,
                                 scratch(at, distance(at.block)) + piece.offset - own_part(at).offset);
    return or_idle(step);
  }
  // For some of the other blocks of the channel, since a step waits for few: until each has what it brings to the sum,
  // and has done `further` steps.
  [[nodiscard]] ScheduleStep wait(const Place& at, std::uint32_t index, std::uint32_t further) const {
    ScheduleStep step;
    for (std::uint32_t i = index * kMaxAfter + 1; i <= std::min((index + 1) * kMaxAfter, ranks() - 1); ++i) {
      const std::uint32_t other = (distance(at.block) + i) % ranks() * channels_ + channel(at.rank, at.block, 0);
      const std::uint32_t brought = distance(other) == 0 ? 1 : 2 * slices_;
      step.start_after({other, 0, at.loop * in_loop(other) + brought + further});
    }
    return step;
  }
  // The block's share of what all peers have of the own part.
  [[nodiscard]] ScheduleStep sum(const Place& at, std::uint32_t index) const {
    const Piece part = own_part(at);
    const std::int64_t share =
        (part.bytes + ranks() * ChunkGrid::kLineUnit - 1) / (ranks() * ChunkGrid::kLineUnit) * ChunkGrid::kLineUnit;
    const std::int64_t begin = share * distance(at.block);
    ScheduleStep step{.bytes = std::clamp<std::int64_t>(part.bytes - begin, 0, share)};
    const auto first = static_cast<std::uint32_t>(index * ScheduleStep::kMaxSources);
    step.source_count = std::min(ScheduleStep::kMaxSources, ranks() - 1 - first);
    step.source_stride = largest_;
    step.read(ScheduleBuffer::scratch, scratch(at, first + 1) + begin)
        .add_to(ScheduleBuffer::output, part.offset + begin);
    return or_idle(step);
  }
  [[nodiscard]] ScheduleStep send_sum(const Place& at, std::uint32_t index) const {
    const Piece piece = slice(at, at.rank, index);
    ScheduleStep step{.bytes = piece.bytes};
    return or_idle(step.read(ScheduleBuffer::output, piece.offset).send(peer(at)));
  }
  [[nodiscard]] ScheduleStep receive_sum(const Place& at, std::uint32_t index) const {
    const Piece piece = slice(at, peer(at), index);
    ScheduleStep step{.bytes = piece.bytes};
    return or_idle(step.receive(peer(at)).write(ScheduleBuffer::output, piece.offset));
  }
  static ScheduleStep or_idle(const ScheduleStep& step) { return step.bytes == 0 ? ScheduleStep{} : step; }

  std::uint32_t channels_;
  ChunkGrid grid_;
  std::uint32_t slices_;
  std::int64_t largest_;  // chunk
  std::uint32_t waits_;   // steps that wait for all other blocks of the channel
  std::uint32_t sums_;    // steps that add up all peers' parts
};

}  // namespace

bool has_block_a_peer(CollectiveKind kind, std::uint32_t ranks, std::uint32_t channels) {
  return kind == CollectiveKind::all_reduce && channels >= ranks;
}

std::unique_ptr<CollectiveSchedule> make_all_pairs(const ScheduleRequest& request) {
  return std::make_unique<AllPairsSchedule>(request);
}

}  // namespace weft
