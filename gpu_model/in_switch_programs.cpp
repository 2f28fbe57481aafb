#include "gpu_model/in_switch_programs.h"

#include "gpu_model/phase_lines.h"

namespace weft {

namespace {

constexpr std::uint32_t kSlots = 8;  // NCCL_STEPS chunks of a channel in flight
// By slot: ranks that have staged in, heads that have reduced; and loops staged out. A slot is used again only after
// its loop was staged out here, which takes all ranks' signals: so each counter is complete at a multiple of the
// ranks.
constexpr std::uint32_t kFlagsPerChannel = 2 * kSlots + 1;

enum class Group : std::uint32_t { stage_in, reduce, stage_out };
constexpr std::uint32_t kGroups = 3;

class InSwitchPrograms final : public BlockPrograms {
 public:
  InSwitchPrograms(const InSwitchPlace& place, const InSwitchSchedule& schedule, std::uint32_t rank)
      : place_(place), schedule_(schedule), rank_(rank) {}

  [[nodiscard]] std::uint32_t blocks() const override { return place_.spec.channels; }
  [[nodiscard]] std::uint32_t groups(std::uint32_t /*block*/) const override { return place_.registered ? 1 : kGroups; }
  [[nodiscard]] std::uint32_t lines_in_flight(std::uint32_t /*block*/, std::uint32_t group) const override {
    return workers(place_.registered ? Group::reduce : static_cast<Group>(group)) * place_.lines_per_round;
  }
  [[nodiscard]] std::unique_ptr<PhaseCursor> start(std::uint32_t block, std::uint32_t group) const override {
    return std::make_unique<Cursor>(*this, block, static_cast<Group>(group));
  }

 private:
  class Cursor final : public PhaseCursor {
   public:
    Cursor(const InSwitchPrograms& programs, std::uint32_t channel, Group group)
        : programs_(&programs), channel_(channel), group_(group) {}
    bool next(Phase& phase) override {
      if (programs_->place_.registered) return programs_->registered_phase(channel_, loop_++, phase);
      if (loop_ == programs_->schedule_.loops()) return false;
      phase = programs_->phase(channel_, group_, loop_);
      const bool copies = group_ == Group::stage_in || group_ == Group::stage_out;
      if (copies) programs_->keep_only(piece_, loop_, phase);
      if (!copies || ++piece_ == programs_->place_.ranks) {
        piece_ = 0;
        ++loop_;
      }
      return true;
    }

   private:
    const InSwitchPrograms* programs_;
    std::uint32_t channel_;
    Group group_;
    std::uint32_t loop_ = 0;
    std::uint32_t piece_ = 0;  // of the loop, when it is copied
  };

  [[nodiscard]] std::uint32_t warps(Group group) const {
    if (place_.registered) return place_.registered_warps;
    return group == Group::reduce ? place_.spec.reduce_warps : place_.spec.copy_warps;
  }

  // Without the warp that fences and posts while the others go on (NCCL src/device/prims_simple.h: who sends has one).
  [[nodiscard]] std::uint32_t workers(Group group) const {
    const std::uint32_t all = warps(group);
    return place_.registered || group == Group::stage_out || all < 3 ? all : all - 1;
  }

  // Copies go piece by piece, each in whole rounds of all warps (ScatterGatherOp in the same file): what is left of the
  // last one is lost. Only the first piece waits, only the last one posts.
  void keep_only(std::uint32_t piece, std::uint32_t index, Phase& phase) const {
    const auto piece_lines = static_cast<std::uint32_t>(schedule_.loop(0, index).piece / kLineBytes);
    const auto narrow = [&](LineStream& stream) {
      const std::uint32_t before = std::min(stream.lines, piece * piece_lines);
      stream.first += before;
      stream.lines = std::min(stream.lines - before, piece_lines);
    };
    if (phase.load_count > 0) {
      narrow(phase.loads[0]);
      narrow(phase.stores[0]);
    }
    if (phase.load_count > 0 && phase.loads[0].lines == 0) phase.load_count = phase.store_count = 0;
    if (piece > 0) phase.wait_count = 0;
    if (piece + 1 < place_.ranks) phase.post_count = 0;
    set_rounds(phase, place_.lines_per_round, phase.stages);
  }

  // A barrier, the loops, a barrier. The first flags of the channel count the ranks.
  bool registered_phase(std::uint32_t channel, std::uint32_t index, Phase& phase) const {
    const std::uint32_t begun = place_.first_flag + channel * kFlagsPerChannel;
    const std::uint32_t done = begun + 1;
    const std::uint32_t loops = schedule_.loops();
    if (index > loops + 1) return false;
    phase.fence = place_.fence;
    if (index == 0) {
      phase.post({begun, Target::multicast, 0});
    } else if (index <= loops) {
      if (index == 1) phase.wait({begun, place_.ranks});
      const InSwitchLoop loop = schedule_.loop(channel, index - 1);
      const std::int64_t own = rank_ * loop.piece;
      if (const std::int64_t bytes = std::min(loop.piece, loop.bytes - own); bytes > 0) {
        phase.load(lines(place_.send_address + loop.offset + own, bytes, Target::multicast));
        phase.store(lines(place_.receive_address + loop.offset + own, bytes, Target::multicast));
        set_rounds(phase, place_.lines_per_round, place_.registered_warps);
      }
      if (index == loops) phase.post({done, Target::multicast, 0});
    } else {
      phase.wait({done, place_.ranks});
    }
    return true;
  }

  [[nodiscard]] Phase phase(std::uint32_t channel, Group group, std::uint32_t index) const {
    const std::uint32_t flags = place_.first_flag + channel * kFlagsPerChannel;
    const std::uint32_t staged_out = flags + 2 * kSlots;
    const std::uint32_t slot = index % kSlots;
    const std::uint32_t all = place_.ranks * (index / kSlots + 1);
    const std::int64_t slot_bytes = place_.ranks * InSwitchSchedule::kLargestChunk;
    const std::int64_t in = place_.buffer + (channel * 2 * kSlots + slot) * slot_bytes;
    const std::int64_t out = in + kSlots * slot_bytes;
    const InSwitchLoop loop = schedule_.loop(channel, index);
    Phase phase;
    phase.fence = place_.fence;
    switch (group) {
      case Group::stage_in:
        if (index >= kSlots) phase.wait({staged_out, index + 1 - kSlots});
        if (loop.bytes > 0) {
          phase.load(lines(place_.send_address + loop.offset, loop.bytes));
          phase.store(lines(in, loop.bytes));
        }
        phase.post({flags + slot, Target::multicast, 0});
        break;
      case Group::reduce: {
        phase.wait({flags + slot, all});
        phase.delay = place_.poll;
        const std::int64_t own = rank_ * loop.piece;
        if (const std::int64_t bytes = std::min(loop.piece, loop.bytes - own); bytes > 0) {
          phase.load(lines(in + own, bytes, Target::multicast));
          phase.store(lines(out + own, bytes, Target::multicast));
        }
        phase.post({flags + kSlots + slot, Target::multicast, 0});
        break;
      }
      case Group::stage_out:
        phase.wait({flags + kSlots + slot, all});
        if (loop.bytes > 0) {
          phase.load(lines(out, loop.bytes));
          phase.store(lines(place_.receive_address + loop.offset, loop.bytes));
        }
        phase.post({staged_out, Target::local, 0});
        phase.fenced = false;  // the slot was read; who waits for it is in the same block
        break;
    }
    set_rounds(phase, place_.lines_per_round, workers(group));
    return phase;
  }

  InSwitchPlace place_;
  InSwitchSchedule schedule_;
  std::uint32_t rank_;
};

}  // namespace

std::uint32_t in_switch_flags(const InSwitchSpec& spec) { return spec.channels * kFlagsPerChannel; }

std::int64_t in_switch_buffer_bytes(const InSwitchSpec& spec, std::uint32_t ranks) {
  return spec.channels * std::int64_t{2} * kSlots * ranks * InSwitchSchedule::kLargestChunk;
}

std::uint32_t in_switch_threads(const InSwitchSpec& spec) { return 32 * (spec.reduce_warps + 2 * spec.copy_warps); }

std::shared_ptr<const BlockPrograms> in_switch_programs(const InSwitchPlace& place, const InSwitchSchedule& schedule,
                                                        std::uint32_t rank) {
  return std::make_shared<InSwitchPrograms>(place, schedule, rank);
}

}  // namespace weft
