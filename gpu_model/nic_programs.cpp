#include "gpu_model/nic_programs.h"

#include <algorithm>

#include "gpu_model/phase_lines.h"

namespace weft {

namespace {

// A phase for each piece, in the order in which the warps send them.
class NicCursor final : public PhaseCursor {
 public:
  NicCursor(const WarpGroup& warps, std::uint32_t carrier)
      : layout_(warps.layout), warps_(warps), carrier_(carrier), channel_(warps.channel()), steps_(warps.steps()) {}

  bool next(Phase& phase) override {
    for (;;) {
      while (send_ < step_.send_count) {
        const std::uint32_t to = step_.sends_to.at(send_++);
        if (!layout_->by_nic(warps_.rank, to)) continue;
        End& end = end_of(to);
        if (end.connection->carrier != carrier_) continue;
        phase = Phase{};
        pass_on(end, phase);
        return true;
      }
      if (next_ < steps_) next_ = warps_.skip_idle(next_);
      if (next_ >= steps_) return false;
      step_ = warps_.step(next_++);
      send_ = 0;
    }
  }

  [[nodiscard]] std::unique_ptr<PhaseCursor> clone() const override { return std::make_unique<NicCursor>(*this); }

 private:
  struct End {
    const ScheduleLayout::Connection* connection;
    std::uint32_t pieces = 0;
  };

  End& end_of(std::uint32_t to) {
    for (End& end : ends_) {
      if (end.connection->to == to) return end;
    }
    ends_.push_back({&layout_->connection(warps_.rank, to, channel_)});
    return ends_.back();
  }

  void pass_on(End& end, Phase& phase) const {
    const ScheduleLayout::Connection& c = *end.connection;
    const std::uint32_t slots = layout_->place().protocol.slots;
    phase.wait({c.filled, end.pieces + 1});
    if (end.pieces >= slots) phase.wait({c.taken, end.pieces + 1 - slots});
    const bool flagged = layout_->place().protocol.inline_flags && step_.bytes > 0;
    if (step_.bytes > 0) {
      const std::int64_t bytes = layout_->wire_bytes(step_.bytes);
      phase.load(lines(layout_->slot(c.staging, end.pieces), bytes));
      LineStream sent = lines(layout_->slot(c.fifo, end.pieces), bytes, Target::remote, layout_->gpu(c.to));
      if (flagged) sent.arrival_flag = c.come;
      phase.store(sent);
    }
    ++end.pieces;
    // RDMA writes of a queue pair are done in their order, so the flag follows the data unfenced. Here paths may differ
    // by some nanoseconds, which matters to values only.
    phase.fenced = layout_->place().values_travel;
    if (!flagged) phase.post({c.come, Target::remote, layout_->gpu(c.to)});
    const bool own = c.from == carrier_;
    phase.post({c.sent, own ? Target::local : Target::remote, own ? std::uint16_t{0} : layout_->gpu(c.from)});
    set_rounds(phase, kNicLinesPerRound, kNicLinesInFlight / kNicLinesPerRound);
  }

  const ScheduleLayout* layout_;
  WarpGroup warps_;
  std::uint32_t carrier_, channel_;
  std::uint64_t steps_;
  std::uint64_t next_ = 0;
  ScheduleStep step_;
  std::uint32_t send_ = 0;  // of the step
  std::vector<End> ends_;
};

}  // namespace

std::vector<WarpGroup> carried_groups(const ScheduleLayout& layout, std::uint32_t rank, std::uint32_t block) {
  std::vector<WarpGroup> found;
  if (layout.place().gpus_per_node == 0) return found;
  const CollectiveSchedule& schedule = layout.schedule();
  const bool for_others = layout.place().gpus_per_nic > 0;
  for (const std::uint32_t from : for_others ? layout.node_from(rank) : std::vector{rank}) {
    if (block >= schedule.blocks(from)) continue;
    for (std::uint32_t group = 0; group < schedule.groups(from, block); ++group) {
      if (schedule.steps(from, block, group) == 0) continue;
      const std::uint32_t channel = schedule.channel(from, block, group);
      const auto sends_to = schedule.sends_to(from, block, group);
      if (std::ranges::any_of(sends_to, [&](std::uint32_t to) {
            return layout.by_nic(from, to) && layout.connection(from, to, channel).carrier == rank;
          })) {
        found.push_back({&layout, from, block, group});
      }
    }
  }
  return found;
}

std::unique_ptr<PhaseCursor> nic_phases(const WarpGroup& warps, std::uint32_t carrier) {
  return std::make_unique<NicCursor>(warps, carrier);
}

}  // namespace weft
