#include "gpu_model/nic_programs.h"

#include <algorithm>

#include "gpu_model/phase_lines.h"

namespace weft {

namespace {

// A phase for each piece, in the order in which the warps send them.
class NicCursor final : public PhaseCursor {
 public:
  explicit NicCursor(const WarpGroup& warps)
      : layout_(warps.layout), warps_(warps), channel_(warps.channel()), steps_(warps.steps()) {}

  bool next(Phase& phase) override {
    for (;;) {
      while (send_ < step_.send_count) {
        const std::uint32_t to = step_.sends_to.at(send_++);
        if (!layout_->by_nic(warps_.rank, to)) continue;
        phase = Phase{};
        pass_on(end_of(to), phase);
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
    phase.post({c.sent, Target::local, 0});
    set_rounds(phase, kNicLinesPerRound, kNicLinesInFlight / kNicLinesPerRound);
  }

  const ScheduleLayout* layout_;
  WarpGroup warps_;
  std::uint32_t channel_;
  std::uint64_t steps_;
  std::uint64_t next_ = 0;
  ScheduleStep step_;
  std::uint32_t send_ = 0;  // of the step
  std::vector<End> ends_;
};

}  // namespace

std::vector<std::uint32_t> groups_with_nic(const ScheduleLayout& layout, std::uint32_t rank, std::uint32_t block) {
  std::vector<std::uint32_t> found;
  if (layout.place().gpus_per_node == 0) return found;
  for (std::uint32_t group = 0; group < layout.schedule().groups(rank, block); ++group) {
    if (layout.schedule().steps(rank, block, group) == 0) continue;
    const auto sends_to = layout.schedule().sends_to(rank, block, group);
    if (std::ranges::any_of(sends_to, [&](std::uint32_t to) { return layout.by_nic(rank, to); })) {
      found.push_back(group);
    }
  }
  return found;
}

std::unique_ptr<PhaseCursor> nic_phases(const WarpGroup& warps) { return std::make_unique<NicCursor>(warps); }

}  // namespace weft
