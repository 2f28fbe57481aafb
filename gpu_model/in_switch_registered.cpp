#include "gpu_model/in_switch_registered.h"

#include <algorithm>

#include "gpu_model/phase_lines.h"
#include "sim/error.h"

namespace weft {

namespace {

std::int64_t lines_of(std::int64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes; }

// What the warps of a block move at a time: `lines` lines from `first` of the message, or of the rank's part of it.
struct Piece {
  std::int64_t first = 0;
  std::int64_t lines = 0;
};

// How the channels of all ranks share the message: pieces by number, some of which are under way at once.
class Pieces {
 public:
  Pieces(const InSwitchPlace& place, std::uint32_t rank)
      : shared_(place.kind == CollectiveKind::all_reduce && place.spec.form == InSwitchForm::pull),
        ranks_(place.ranks),
        rank_(rank),
        channels_(place.spec.channels),
        lines_(lines_of(place.bytes)),
        wave_lines_(place.spec.waves > 0 ? std::max<std::int64_t>(1, place.spec.wave_bytes / kLineBytes) : 0),
        loops_(std::max<std::int64_t>(1, place.bytes) * (shared_ ? 1 : ranks_), place.ranks, place.spec.channels) {}

  [[nodiscard]] std::uint32_t count() const {
    if (lines_ == 0) return 0;  // a barrier
    if (wave_lines_ == 0) return loops_.loops();
    return static_cast<std::uint32_t>((lines_ + wave_lines_ - 1) / wave_lines_);
  }
  [[nodiscard]] Piece piece(std::uint32_t channel, std::uint32_t index) const {
    if (wave_lines_ > 0) {
      const std::int64_t at = index * wave_lines_;
      const std::int64_t lines = std::min(wave_lines_, lines_ - at);
      const std::int64_t parts = shared_ ? ranks_ * channels_ : channels_;
      const std::int64_t part = shared_ ? rank_ * channels_ + channel : channel;
      const std::int64_t begin = lines * part / parts;
      return {at + begin, lines * (part + 1) / parts - begin};
    }
    const InSwitchLoop loop = loops_.loop(channel, index);
    const std::int64_t first = shared_ ? loop.offset + rank_ * loop.piece : loop.offset / ranks_;
    const std::int64_t end = std::min(first + loop.piece, lines_ * std::int64_t{kLineBytes});
    return {first / kLineBytes, lines_of(std::max<std::int64_t>(0, end - first))};
  }
  // Of a channel, in the pieces before `index`.
  [[nodiscard]] std::int64_t lines_before(std::uint32_t channel, std::uint32_t index) const {
    std::int64_t lines = 0;
    if (index == 0) return 0;
    if (wave_lines_ == 0) {
      for (std::uint32_t i = 0; i < index; ++i) lines += piece(channel, i).lines;
      return lines;
    }
    // All waves but the last are alike.
    return (index - 1) * piece(channel, 0).lines + piece(channel, index - 1).lines;
  }

 private:
  bool shared_;  // by the ranks; else each moves all of it
  std::int64_t ranks_;
  std::int64_t rank_;
  std::int64_t channels_;
  std::int64_t lines_;
  std::int64_t wave_lines_;  // 0: NCCL's loops
  InSwitchSchedule loops_;   // of what is shared, or of as much for each rank
};

class RegisteredPrograms final : public BlockPrograms {
 public:
  RegisteredPrograms(const InSwitchPlace& place, std::uint32_t rank)
      : place_(place), rank_(rank), pieces_(place, rank) {}

  [[nodiscard]] std::uint32_t blocks() const override { return place_.spec.channels; }
  // The warps of a block share its waves.
  [[nodiscard]] std::uint32_t groups(std::uint32_t /*block*/) const override {
    return std::max(1U, std::min({place_.spec.waves, pieces_.count(), place_.registered_warps}));
  }
  [[nodiscard]] std::uint32_t lines_in_flight(std::uint32_t block, std::uint32_t /*group*/) const override {
    return place_.registered_warps / groups(block) * place_.lines_per_round;
  }
  [[nodiscard]] std::unique_ptr<PhaseCursor> start(std::uint32_t block, std::uint32_t group) const override {
    return std::make_unique<Cursor>(*this, block, group);
  }

 private:
  class Cursor final : public PhaseCursor {
   public:
    Cursor(const RegisteredPrograms& programs, std::uint32_t channel, std::uint32_t group)
        : programs_(&programs), channel_(channel), group_(group) {}
    bool next(Phase& phase) override {
      const InSwitchPlace& place = programs_->place_;
      const bool pushes = place.spec.form == InSwitchForm::push && place.kind == CollectiveKind::all_reduce;
      Phase next;
      const bool goes_on =
          pushes ? programs_->push(channel_, group_, step_, next) : programs_->pull(channel_, group_, step_, next);
      if (!goes_on) return false;
      ++step_;
      phase = next;
      return true;
    }
    [[nodiscard]] std::unique_ptr<PhaseCursor> clone() const override { return std::make_unique<Cursor>(*this); }

   private:
    const RegisteredPrograms* programs_;
    std::uint32_t channel_;
    std::uint32_t group_;
    std::uint32_t step_ = 0;
  };

  [[nodiscard]] std::uint32_t pieces_of(std::uint32_t group) const {
    const std::uint32_t stride = groups(0);
    return (pieces_.count() + stride - 1 - group) / stride;
  }

  // A barrier, the pieces, a barrier. The two flags of a channel count the ranks' groups of warps.
  bool pull(std::uint32_t channel, std::uint32_t group, std::uint32_t step, Phase& phase) const {
    const std::uint32_t begun = place_.first_flag + channel * 2;
    const std::uint32_t done = begun + 1;
    const std::uint32_t last = pieces_of(group);
    if (step > last + 1) return false;
    phase.fence = place_.fence;
    if (step == 0) {
      if (last > 0) phase.post({begun, Target::multicast, place_.multicast_group});
    } else if (step <= last) {
      if (step == 1) phase.wait({begun, place_.ranks * groups(channel)});
      move(pieces_.piece(channel, group + (step - 1) * groups(channel)), phase);
    } else {
      phase.wait({done, place_.ranks * groups(channel)});
    }
    if (step == last) phase.post({done, Target::multicast, place_.multicast_group});
    return true;
  }

  // What the rank does with a piece of its part.
  void move(const Piece& piece, Phase& phase) const {
    if (piece.lines == 0) return;
    const bool root = rank_ == place_.root;
    const std::int64_t part = rank_ * place_.bytes;
    const std::int64_t own = place_.in_place() ? part : 0;
    switch (place_.kind) {
      case CollectiveKind::all_reduce:
        pass(piece, Target::multicast, 0, Target::multicast, 0, phase);
        return;
      case CollectiveKind::reduce_scatter:
        pass(piece, Target::multicast, part, Target::local, own, phase);
        return;
      case CollectiveKind::all_gather:
        pass(piece, Target::local, own, Target::multicast, part, phase);
        return;
      case CollectiveKind::broadcast:
        if (root) pass(piece, Target::local, 0, Target::multicast, 0, phase);
        return;
      case CollectiveKind::reduce:
        if (root) pass(piece, Target::multicast, 0, Target::local, 0, phase);
        return;
      default:
        throw InternalError("a collective that switches do not do");
    }
  }
  void pass(const Piece& piece, Target from, std::int64_t send_offset, Target to, std::int64_t receive_offset,
            Phase& phase) const {
    const std::int64_t at = piece.first * kLineBytes;
    const std::int64_t bytes = piece.lines * kLineBytes;
    phase.load(lines(place_.send_address + send_offset + at, bytes, from, place_.multicast_group));
    phase.store(lines(place_.receive_address + receive_offset + at, bytes, to, place_.multicast_group));
    set_rounds(phase, place_.lines_per_round, place_.registered_warps / groups(0));
  }

  // A channel's flag counts the sums that have come.
  bool push(std::uint32_t channel, std::uint32_t group, std::uint32_t step, Phase& phase) const {
    const std::uint32_t come = place_.first_flag + channel * 2;
    const std::uint32_t last = pieces_of(group);
    if (step > last) return false;
    if (step == last) {
      phase.wait({come, static_cast<std::uint32_t>(pieces_.lines_before(channel, pieces_.count()))});
      return true;
    }
    const std::uint32_t index = group + step * groups(channel);
    if (place_.spec.waves > 0 && index >= place_.spec.waves) {
      phase.wait({come, static_cast<std::uint32_t>(pieces_.lines_before(channel, index + 1 - place_.spec.waves))});
    }
    const Piece piece = pieces_.piece(channel, index);
    if (piece.lines == 0) return true;
    const std::int64_t at = piece.first * kLineBytes;
    const std::int64_t bytes = piece.lines * kLineBytes;
    phase.load(lines(place_.send_address + at, bytes));
    LineStream sums = lines(place_.receive_address + at, bytes, Target::multicast, place_.multicast_group);
    sums.adds = true;
    sums.arrival_flag = come;
    phase.store(sums);
    set_rounds(phase, place_.lines_per_round, place_.registered_warps / groups(0));
    return true;
  }

  InSwitchPlace place_;
  std::uint32_t rank_;
  Pieces pieces_;
};

}  // namespace

std::shared_ptr<const BlockPrograms> registered_in_switch_programs(const InSwitchPlace& place, std::uint32_t rank) {
  return std::make_shared<RegisteredPrograms>(place, rank);
}

}  // namespace weft
