#include "gpu_model/in_switch_gathers.h"

#include <algorithm>

#include "gpu_model/phase_lines.h"
#include "sim/error.h"

namespace weft {

namespace {

// NCCL src/device/all_gather.h and reduce_scatter.h, from 2.27 on: of the 640 threads of a block 256 copy. (Before, of
// all-gather 4 warps sent and 16 copied, of reduce-scatter 5 reduced on more than 6 GPUs and 15 copied.)
constexpr std::uint32_t kCopyWarps = 8;
constexpr std::uint32_t kSwitchWarps = 12;

enum class Group : std::uint32_t { copy, through_switch };
constexpr std::uint32_t kGroups = 2;

class GatherPrograms final : public BlockPrograms {
 public:
  GatherPrograms(const InSwitchPlace& place, std::uint32_t rank)
      : place_(place),
        schedule_(std::max<std::int64_t>(1, place.bytes) * place.ranks, place.ranks, place.spec.channels),
        rank_(rank),
        gathers_(place.kind == CollectiveKind::all_gather) {
    WEFT_CHECK(place.nodes() == 1 && (gathers_ || place.kind == CollectiveKind::reduce_scatter),
               "a gather or scatter of one node");
  }

  [[nodiscard]] std::uint32_t blocks() const override { return place_.spec.channels; }
  [[nodiscard]] std::uint32_t groups(std::uint32_t /*block*/) const override { return kGroups; }
  [[nodiscard]] std::uint32_t lines_in_flight(std::uint32_t /*block*/, std::uint32_t group) const override {
    return workers(group_of(group)) *
           (group_of(group) == Group::copy ? place_.copy_lines_per_round : place_.lines_per_round);
  }
  [[nodiscard]] std::unique_ptr<PhaseCursor> start(std::uint32_t block, std::uint32_t group) const override {
    return std::make_unique<Cursor>(*this, block, group_of(group));
  }

 private:
  class Cursor final : public PhaseCursor {
   public:
    Cursor(const GatherPrograms& programs, std::uint32_t channel, Group group)
        : programs_(&programs), channel_(channel), group_(group) {}
    bool next(Phase& phase) override {
      if (loop_ == programs_->schedule_.loops()) return false;
      if (group_ == Group::through_switch) {
        phase = programs_->move(channel_, loop_++);
        return true;
      }
      phase = programs_->copy(channel_, loop_, piece_);
      if (++piece_ == programs_->place_.ranks) {
        piece_ = 0;
        ++loop_;
      }
      return true;
    }
    [[nodiscard]] std::unique_ptr<PhaseCursor> clone() const override { return std::make_unique<Cursor>(*this); }

   private:
    const GatherPrograms* programs_;
    std::uint32_t channel_;
    Group group_;
    std::uint32_t loop_ = 0;
    std::uint32_t piece_ = 0;  // of the loop, when it is copied
  };

  // By number: who fills slots is before who reads them.
  [[nodiscard]] Group group_of(std::uint32_t group) const {
    return (group == 0) == gathers_ ? Group::through_switch : Group::copy;
  }
  [[nodiscard]] bool fills(Group group) const { return (group == Group::through_switch) == gathers_; }
  // Without the warp of who fills that fences and posts while the others go on (NCCL src/device/prims_simple.h).
  [[nodiscard]] std::uint32_t workers(Group group) const {
    return (group == Group::copy ? kCopyWarps : kSwitchWarps) - (fills(group) ? 1 : 0);
  }

  // A loop of a channel: where its piece lies in each rank's part.
  struct Piece {
    std::int64_t offset = 0;
    std::int64_t stride = 0;  // from rank to rank in a slot
    std::int64_t bytes = 0;
  };
  [[nodiscard]] Piece piece_of(std::uint32_t channel, std::uint32_t index) const {
    const InSwitchLoop loop = schedule_.loop(channel, index);
    const std::int64_t offset = loop.offset / place_.ranks;
    return {offset, loop.piece, std::clamp<std::int64_t>(place_.bytes - offset, 0, loop.piece)};
  }
  [[nodiscard]] std::int64_t slot(std::uint32_t channel, std::uint32_t index) const {
    const StagingSlots slots = staging_slots(place_, channel, index);
    return gathers_ ? slots.out : slots.in;
  }
  // Of a rank, in the larger one of the user's buffers.
  [[nodiscard]] std::int64_t part(std::uint32_t rank) const { return rank * place_.bytes; }

  // Counters by slot: ranks that have filled it, and that have read it. Each is complete at a multiple of the ranks, as
  // nobody goes on before all have come; of alike ranks two do for all slots (in_switch_programs.cpp).
  [[nodiscard]] std::uint32_t counters() const { return place_.alike_ranks ? 1 : kInSwitchSlots; }
  [[nodiscard]] std::uint32_t filled_counter(std::uint32_t channel, std::uint32_t index) const {
    return in_switch_channel_flags(place_, channel) + index % counters();
  }
  void wait(Group group, std::uint32_t channel, std::uint32_t index, Phase& phase) const {
    const std::uint32_t filled = filled_counter(channel, index);
    const std::uint32_t turn = index / counters();
    const std::uint32_t slots = kInSwitchSlots / counters();  // of a counter
    if (!fills(group)) {
      phase.wait({filled, place_.ranks * (turn + 1)});
    } else if (index >= kInSwitchSlots) {
      phase.wait({filled + kInSwitchSlots, place_.ranks * (turn + 1 - slots)});
    }
  }
  void post(Group group, std::uint32_t channel, std::uint32_t index, Phase& phase) const {
    const std::uint32_t filled = filled_counter(channel, index);
    phase.post({filled + (fills(group) ? 0 : kInSwitchSlots), Target::multicast, place_.multicast_group});
    phase.fence = place_.fence;
    phase.fenced = fills(group);  // else the slot was read, whatever becomes of what was stored
  }

  // The rank's own piece, through the switch.
  [[nodiscard]] Phase move(std::uint32_t channel, std::uint32_t index) const {
    const Piece piece = piece_of(channel, index);
    const std::int64_t staged = slot(channel, index) + rank_ * piece.stride;
    const std::int64_t own = place_.in_place() ? part(rank_) : 0;
    Phase phase;
    wait(Group::through_switch, channel, index, phase);
    if (!gathers_) phase.delay = place_.poll;
    if (piece.bytes > 0) {
      const auto all = [&](std::int64_t address) {
        return lines(address, piece.bytes, Target::multicast, place_.multicast_group);
      };
      if (gathers_) {
        phase.load(lines(place_.send_address + own + piece.offset, piece.bytes));
        phase.store(all(staged));
      } else {
        phase.load(all(staged));
        phase.store(lines(place_.receive_address + own + piece.offset, piece.bytes));
      }
    }
    post(Group::through_switch, channel, index, phase);
    set_rounds(phase, place_.lines_per_round, workers(Group::through_switch));
    return phase;
  }

  // Piece `p` of a loop, that of rank p: each in whole rounds of all warps (NCCL src/device/prims_simple.h,
  // ScatterGatherOp). Only the first one waits, only the last one posts.
  [[nodiscard]] Phase copy(std::uint32_t channel, std::uint32_t index, std::uint32_t p) const {
    const Piece piece = piece_of(channel, index);
    Phase phase;
    if (p == 0) wait(Group::copy, channel, index, phase);
    if (piece.bytes > 0) {
      const LineStream staged = lines(slot(channel, index) + p * piece.stride, piece.bytes);
      const std::int64_t user = part(p) + piece.offset;
      phase.load(gathers_ ? staged : lines(place_.send_address + user, piece.bytes));
      phase.store(gathers_ ? lines(place_.receive_address + user, piece.bytes) : staged);
    }
    if (p + 1 == place_.ranks) post(Group::copy, channel, index, phase);
    set_rounds(phase, place_.copy_lines_per_round, workers(Group::copy));
    return phase;
  }

  InSwitchPlace place_;
  InSwitchSchedule schedule_;
  std::uint32_t rank_;
  bool gathers_;
};

}  // namespace

std::uint32_t staged_gather_threads() { return 32 * (kCopyWarps + kSwitchWarps); }

std::shared_ptr<const BlockPrograms> staged_gather_programs(const InSwitchPlace& place, std::uint32_t rank) {
  return std::make_shared<GatherPrograms>(place, rank);
}

}  // namespace weft
