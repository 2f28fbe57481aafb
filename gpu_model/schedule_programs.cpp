#include "gpu_model/schedule_programs.h"

#include <algorithm>
#include <tuple>

#include "gpu_model/nic_programs.h"
#include "gpu_model/phase_lines.h"
#include "sim/error.h"

namespace weft {

namespace {

using Connection = ScheduleLayout::Connection;

// The groups of a block share its warps.
std::uint32_t warps_of(const ScheduleLayout& layout, std::uint32_t rank, std::uint32_t block) {
  return std::max(1U, layout.place().protocol.threads / 32 / layout.schedule().groups(rank, block));
}

// Those that move data.
std::uint32_t moving_warps(const WarpGroup& group) {
  const std::uint32_t warps = warps_of(*group.layout, group.rank, group.block);
  const std::uint32_t sync = group.layout->place().protocol.sender_sync_warps;
  const bool apart =
      sync > 0 && warps > 2 * sync && !group.layout->schedule().sends_to(group.rank, group.block, group.group).empty();
  return apart ? warps - sync : warps;
}

// A round's share of what a block moves at most: checking flags and packing words costs instructions.
SubCycle instruction_time(const GpuSpec& gpu, const ProtocolShape& protocol) {
  if (protocol.block_GBps <= 0) return 0;
  const double seconds = protocol.lines_per_round * protocol.data_bytes_per_line / (protocol.block_GBps * 1e9);
  return cycles(seconds * static_cast<double>(gpu.clock.count()));
}

// The phases of one group of warps: its place in the steps and in the FIFOs of its connections.
class StepCursor final : public PhaseCursor {
 public:
  explicit StepCursor(const WarpGroup& group)
      : layout_(group.layout),
        group_(group),
        rank_(group.rank),
        channel_(group.channel()),
        warps_(moving_warps(group)),
        steps_(group.steps()),
        instruction_time_(instruction_time(*layout_->place().gpu, layout_->place().protocol)),
        done_flag_(layout_->steps_done(group.rank, group.block, group.group)) {}

  bool next(Phase& phase) override {
    for (;;) {
      if (next_ < steps_ && done_flag_ == kNoFlag) next_ = group_.skip_idle(next_);
      if (next_ >= steps_) return false;
      const ScheduleStep step = group_.step(next_++);
      if (step.idle() && done_flag_ == kNoFlag) continue;
      phase = Phase{};
      write(step, phase);
      return true;
    }
  }

  [[nodiscard]] std::unique_ptr<PhaseCursor> clone() const override { return std::make_unique<StepCursor>(*this); }

 private:
  struct End {  // of a connection
    const Connection* connection;
    std::uint32_t pieces = 0;
    std::uint32_t lines = 0;
  };

  End& end_of(std::vector<End>& ends, std::uint32_t from, std::uint32_t to) {
    for (End& end : ends) {
      if (end.connection->from == from && end.connection->to == to) return end;
    }
    ends.push_back({&layout_->connection(from, to, channel_)});
    return ends.back();
  }

  [[nodiscard]] const ProtocolShape& protocol() const { return layout_->place().protocol; }
  [[nodiscard]] std::uint16_t gpu(std::uint32_t rank) const { return layout_->gpu(rank); }
  [[nodiscard]] std::int64_t slot(const End& end) const { return layout_->slot(end.connection->fifo, end.pieces); }

  // What a step only keeps is complete, and lies at the same place of the output of whoever sent it.
  [[nodiscard]] bool comes_direct(const ScheduleStep& step) const {
    return step.receive_count == 1 && step.source == ScheduleBuffer::none &&
           step.destination == ScheduleBuffer::output && !step.accumulates &&
           layout_->knows_buffers(step.receives_from.at(0), rank_) && !layout_->by_nic(step.receives_from.at(0), rank_);
  }
  [[nodiscard]] std::int64_t destination(const ScheduleStep& step) const {
    return layout_->address(step.destination, rank_) + step.destination_offset;
  }

  void receive(const ScheduleStep& step, std::uint32_t i, Phase& phase) {
    const std::uint32_t from = step.receives_from.at(i);
    const bool awaited = (step.unawaited >> i & 1U) == 0;
    End& end = end_of(received_, from, rank_);
    const bool remote = end.connection->read;
    const bool direct = comes_direct(step);
    if (step.bytes > 0 && (!direct || remote || step.send_count > 0)) {
      LineStream stream = lines(direct ? destination(step) : slot(end), layout_->wire_bytes(step.bytes),
                                remote ? Target::remote : Target::local, gpu(from));
      if (protocol().inline_flags && awaited) {
        stream.arrival_flag = end.connection->come;
        stream.arrived_before = end.lines;
        end.lines += stream.lines;
      }
      phase.load(stream);
    }
    ++end.pieces;
    // A piece without bytes is a flag under every protocol.
    if (awaited && (!protocol().inline_flags || step.bytes == 0)) phase.wait({end.connection->come, count(end)});
    phase.post({end.connection->taken, Target::remote, gpu(end.connection->carrier)});
  }

  void send(const ScheduleStep& step, std::uint32_t to, Phase& phase) {
    End& end = end_of(sent_, rank_, to);
    if (end.connection->by_nic) {
      send_by_nic(step, end, phase);
      return;
    }
    const std::uint32_t slots = protocol().slots;
    if (end.pieces >= slots) phase.wait({end.connection->taken, end.pieces + 1 - slots});
    const bool remote = !end.connection->read;
    const bool direct = layout_->knows_buffers(rank_, to) && step.destination == ScheduleBuffer::output;
    if (step.bytes > 0 && (!direct || remote)) {
      LineStream stream = lines(direct ? destination(step) : slot(end), layout_->wire_bytes(step.bytes),
                                remote ? Target::remote : Target::local, gpu(to));
      if (protocol().inline_flags) stream.arrival_flag = end.connection->come;
      phase.store(stream);
    }
    ++end.pieces;
    if (protocol().inline_flags && step.bytes > 0) return;
    phase.post({end.connection->come, Target::remote, gpu(to)});
    phase.fenced = true;
  }

  void send_by_nic(const ScheduleStep& step, End& end, Phase& phase) {
    const std::uint32_t slots = protocol().slots;
    const Connection& connection = *end.connection;
    if (end.pieces >= slots) phase.wait({connection.sent, end.pieces + 1 - slots});
    const bool own = connection.carrier == rank_;
    const Target target = own ? Target::local : Target::remote;
    const std::uint16_t carrier = own ? std::uint16_t{0} : gpu(connection.carrier);
    if (step.bytes > 0) {
      const std::int64_t staged = layout_->slot(connection.staging, end.pieces);
      phase.store(lines(staged, layout_->wire_bytes(step.bytes), target, carrier));
    }
    ++end.pieces;
    phase.post_to_proxy({connection.filled, target, carrier});
    phase.proxy_delay = layout_->place().proxy_latency;
    phase.fenced = true;
    if (protocol().inline_flags) phase.fence = 0;
  }

  // What the come flag has counted when the last piece of the end is there.
  [[nodiscard]] std::uint32_t count(End& end) const {
    if (protocol().inline_flags) return ++end.lines;
    return end.pieces;
  }

  void write(const ScheduleStep& step, Phase& phase) {
    const SchedulePlace& place = layout_->place();
    phase.fenced = false;
    phase.fence = place.fence;
    std::uint32_t terms = step.receive_count;
    const bool has_source = step.bytes > 0 && step.source != ScheduleBuffer::none;
    const bool has_destination = step.bytes > 0 && step.destination != ScheduleBuffer::none;
    const std::int64_t source = has_source ? layout_->address(step.source, rank_) + step.source_offset : 0;
    const std::int64_t kept_at = has_destination ? destination(step) : 0;
    // In place, what is only kept lies there already.
    const bool kept = has_source && has_destination && source == kept_at && terms == 0 && !step.accumulates;
    if (has_source && !(kept && step.send_count == 0)) {
      for (std::uint32_t i = 0; i < step.source_count; ++i) {
        phase.load(lines(source + i * step.source_stride, step.bytes));
      }
      terms += step.source_count;
    }
    if (step.accumulates && has_destination) {
      phase.load(lines(kept_at, step.bytes));
      ++terms;
    }
    // A thread asks for its own data first, then polls for what is to come (NCCL src/device/prims_ll.h).
    for (std::uint32_t i = 0; i < step.receive_count; ++i) receive(step, i, phase);
    const bool came = comes_direct(step) && !protocol().receiver_reads;
    if (has_destination && !kept && !came) phase.store(lines(kept_at, step.bytes));
    for (std::uint32_t i = 0; i < step.send_count; ++i) send(step, step.sends_to.at(i), phase);
    for (std::uint32_t i = 0; i < step.after_count; ++i) {
      const ScheduleStep::After& after = step.after.at(i);
      phase.wait({layout_->steps_done(rank_, after.block, after.group), static_cast<std::uint32_t>(after.steps)});
    }
    if (done_flag_ != kNoFlag) {
      const FlagPost done{done_flag_, Target::local, 0};
      step.hops_beyond > 0 ? phase.post_late(done) : phase.post(done);
      // Within a block it is enough that L2 has the stores. A group that is alone in its block is waited for by other
      // blocks, which need a fence before they read the output; scratch memory is read past caches (RCCL
      // src/device/msccl_kernel_impl.h: a release, or a relaxed store).
      const bool alone = layout_->schedule().groups(rank_, group_.block) == 1;
      if (!phase.fenced && !(alone && step.destination == ScheduleBuffer::output)) phase.fence = 0;
      phase.fenced = phase.fenced || has_destination;
    }
    set_rounds(phase, protocol().lines_per_round, warps_);
    phase.compute = adding_time(place.adds_per_cycle, protocol().lines_per_round, terms);
    // Only what comes or goes has flags to check and words to pack.
    if (step.receive_count + step.send_count > 0 && instruction_time_ > phase.compute) {
      phase.beside[static_cast<std::size_t>(Slot::fp32)] = phase.compute;
      phase.compute = instruction_time_;
      phase.busiest = Slot::flags;
    }
    if (step.hops_beyond > 0) {
      // The way to the parent, which nobody waits for, and those beyond it: the NIC has a piece when all of it is
      // written.
      const SubCycle sent = layout_->wire_bytes(step.bytes) / kLineBytes * place.nic_line;
      const SubCycle hop = place.node_latency + place.proxy_latency + sent;
      phase.post_delay = hop + step.hops_beyond * (hop + phase.rounds * phase.compute);
    }
  }

  const ScheduleLayout* layout_;
  WarpGroup group_;
  std::uint32_t rank_, channel_;
  std::uint32_t warps_;  // how many
  std::uint64_t steps_;
  std::uint64_t next_ = 0;
  SubCycle instruction_time_;  // of a round
  std::uint32_t done_flag_;
  std::vector<End> received_, sent_;
};

class SchedulePrograms final : public BlockPrograms {
 public:
  SchedulePrograms(std::shared_ptr<const ScheduleLayout> layout, std::uint32_t rank)
      : layout_(std::move(layout)), rank_(rank) {}

  [[nodiscard]] std::uint32_t blocks() const override { return layout_->schedule().blocks(rank_); }
  // Behind those of warps, one for each of these, of the rank or its node, whose pieces its NIC takes to other nodes.
  [[nodiscard]] std::uint32_t groups(std::uint32_t block) const override {
    return warps(block) + static_cast<std::uint32_t>(carried_groups(*layout_, rank_, block).size());
  }
  [[nodiscard]] std::uint32_t lines_in_flight(std::uint32_t block, std::uint32_t group) const override {
    if (by_nic(block, group)) return kNicLinesInFlight;
    return warps_of(*layout_, rank_, block) * layout_->place().protocol.lines_per_round * 2;  // of two sources
  }
  [[nodiscard]] bool by_nic(std::uint32_t block, std::uint32_t group) const override { return group >= warps(block); }
  [[nodiscard]] std::unique_ptr<PhaseCursor> start(std::uint32_t block, std::uint32_t group) const override {
    if (by_nic(block, group)) {
      return nic_phases(carried_groups(*layout_, rank_, block).at(group - warps(block)), rank_);
    }
    return std::make_unique<StepCursor>(WarpGroup{layout_.get(), rank_, block, group});
  }

 private:
  [[nodiscard]] std::uint32_t warps(std::uint32_t block) const { return layout_->schedule().groups(rank_, block); }

  std::shared_ptr<const ScheduleLayout> layout_;
  std::uint32_t rank_;
};

}  // namespace

std::shared_ptr<const BlockPrograms> schedule_programs(std::shared_ptr<const ScheduleLayout> layout,
                                                       std::uint32_t rank) {
  return std::make_shared<SchedulePrograms>(std::move(layout), rank);
}

}  // namespace weft
