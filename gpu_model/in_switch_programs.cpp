#include "gpu_model/in_switch_programs.h"

#include <algorithm>

#include "gpu_model/in_switch_gathers.h"
#include "gpu_model/in_switch_registered.h"
#include "gpu_model/in_switch_tree.h"
#include "gpu_model/nic_programs.h"
#include "gpu_model/phase_lines.h"
#include "sim/error.h"

namespace weft {

namespace {

constexpr std::uint32_t kSlots = kInSwitchSlots;
// By slot: ranks that have staged in, heads that have reduced; and loops staged out. A slot is used again only after
// its loop was staged out here, which takes all ranks' signals: so each counter is complete at a multiple of the
// ranks. Where all ranks are alike, nobody fills the next slot before all have filled this one, so that one counter
// does for all; then each slot is a turn like the one before it (phase_repeats.h), and not eight of them together.
constexpr std::uint32_t kFlagsPerChannel = 2 * kSlots + 1;
enum class Group : std::uint32_t { stage_in, reduce, stage_out, broadcast, nic_up, nic_down };
constexpr std::uint32_t kGroups = 3;         // in one node
constexpr std::uint32_t kGroupsOfNodes = 6;  // over several

std::uint32_t flags_per_channel(std::uint32_t nodes) {
  return kFlagsPerChannel + (nodes > 1 ? InSwitchTree::kFlags : 0);
}

class InSwitchPrograms final : public BlockPrograms {
 public:
  InSwitchPrograms(const InSwitchPlace& place, std::uint32_t rank)
      : place_(place),
        schedule_(std::max<std::int64_t>(1, place.bytes), place.ranks, place.spec.channels, place.nodes()),
        rank_(rank % place.ranks),
        tree_(place_, rank, kFlagsPerChannel) {}

  [[nodiscard]] std::uint32_t blocks() const override { return place_.spec.channels; }
  [[nodiscard]] std::uint32_t groups(std::uint32_t /*block*/) const override {
    return place_.nodes() > 1 ? kGroupsOfNodes : kGroups;
  }
  [[nodiscard]] bool by_nic(std::uint32_t /*block*/, std::uint32_t group) const override {
    return is_nic(static_cast<Group>(group));
  }
  [[nodiscard]] std::uint32_t lines_in_flight(std::uint32_t block, std::uint32_t group) const override {
    if (by_nic(block, group)) return kNicLinesInFlight;
    // Of each source: an iteration loads from all of them before it adds (NCCL src/device/common_kernel.h).
    const bool adds = place_.nodes() > 1 && static_cast<Group>(group) == Group::reduce;
    const std::uint32_t sources = 1 + (adds ? tree_.node_at(block).child_count : 0);
    return workers(static_cast<Group>(group)) * lines_per_round(static_cast<Group>(group)) * sources;
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
      if (loop_ == programs_->schedule_.loops()) return false;
      if (is_nic(group_)) return next_of_nic(phase);
      if (group_ == Group::broadcast && !programs_->tree_.node_at(channel_).parent)
        return false;  // the root's reduce does it
      phase = programs_->phase(channel_, group_, loop_);
      const bool copies = group_ == Group::stage_in || group_ == Group::stage_out;
      if (copies) programs_->keep_only(piece_, loop_, phase);
      if (!copies || ++piece_ == programs_->place_.ranks) {
        piece_ = 0;
        ++loop_;
      }
      return true;
    }
    [[nodiscard]] std::unique_ptr<PhaseCursor> clone() const override { return std::make_unique<Cursor>(*this); }

   private:
    bool next_of_nic(Phase& phase) {
      const TreeNode node = programs_->tree_.node_at(channel_);
      const bool up = group_ == Group::nic_up;
      if (up ? !node.parent : node.child_count == 0) return false;
      const std::int64_t bytes = programs_->own_bytes(programs_->schedule_.loop(channel_, loop_));
      phase = up ? programs_->tree_.nic_up(channel_, loop_, bytes)
                 : programs_->tree_.nic_down(channel_, piece_, loop_, bytes);
      if (!up && ++piece_ < node.child_count) return true;
      piece_ = 0;
      ++loop_;
      return true;
    }

    const InSwitchPrograms* programs_;
    std::uint32_t channel_;
    Group group_;
    std::uint32_t loop_ = 0;
    std::uint32_t piece_ = 0;  // of the loop, when it is copied; or the child that it is sent to
  };

  static bool is_nic(Group group) { return group == Group::nic_up || group == Group::nic_down; }

  [[nodiscard]] std::uint32_t warps(Group group) const {
    if (group == Group::stage_in || group == Group::stage_out) return place_.spec.copy_warps;
    // NCCL src/device/all_reduce.h: where the sums go on over the network, 3 of the 5 warps reduce and 2 broadcast.
    const std::uint32_t broadcast = place_.nodes() > 1 ? std::max(1U, place_.spec.reduce_warps * 2 / 5) : 0;
    return group == Group::broadcast ? broadcast : std::max(1U, place_.spec.reduce_warps - broadcast);
  }

  // Without the warp that fences and posts while the others go on (NCCL src/device/prims_simple.h: who sends has one).
  [[nodiscard]] std::uint32_t workers(Group group) const {
    const std::uint32_t all = warps(group);
    return group == Group::stage_out || all < 3 ? all : all - 1;
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
    set_rounds(phase, place_.copy_lines_per_round, phase.stages);
  }

  [[nodiscard]] std::int64_t own_bytes(const InSwitchLoop& loop) const {
    return std::max<std::int64_t>(0, std::min(loop.piece, loop.bytes - rank_ * loop.piece));
  }

  [[nodiscard]] std::uint32_t lines_per_round(Group group) const {
    const bool copies = group == Group::stage_in || group == Group::stage_out;
    return copies ? place_.copy_lines_per_round : place_.lines_per_round;
  }

  [[nodiscard]] Phase phase(std::uint32_t channel, Group group, std::uint32_t index) const {
    const std::uint32_t flags = in_switch_channel_flags(place_, channel);
    const std::uint32_t staged_out = flags + 2 * kSlots;
    const std::uint32_t counters = place_.alike_ranks ? 1 : kSlots;
    const std::uint32_t slot = index % counters;
    const std::uint32_t all = place_.ranks * (index / counters + 1);
    const auto [in, out] = staging_slots(place_, channel, index);
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
        phase.post({flags + slot, Target::multicast, place_.multicast_group});
        break;
      case Group::reduce:
      case Group::broadcast: {
        const std::int64_t own = rank_ * loop.piece;
        const std::int64_t bytes = own_bytes(loop);
        bool complete = true;
        if (group == Group::broadcast) {
          tree_.broadcast(channel, index, bytes, phase);
        } else {
          phase.wait({flags + slot, all});
          phase.delay = place_.poll;
          if (bytes > 0) phase.load(lines(in + own, bytes, Target::multicast, place_.multicast_group));
          if (place_.nodes() > 1) complete = tree_.reduce(channel, index, bytes, phase);
        }
        if (complete) {
          if (bytes > 0) phase.store(lines(out + own, bytes, Target::multicast, place_.multicast_group));
          phase.post({flags + kSlots + slot, Target::multicast, place_.multicast_group});
        }
        break;
      }
      case Group::nic_up:
      case Group::nic_down:
        throw InternalError("phases of a NIC are not of warps");
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
    set_rounds(phase, lines_per_round(group), workers(group));
    return phase;
  }

  InSwitchPlace place_;
  InSwitchSchedule schedule_;
  std::uint32_t rank_;  // in the node
  InSwitchTree tree_;
};

}  // namespace

std::uint32_t in_switch_part(std::uint32_t members, std::uint32_t fan_in) {
  for (std::uint32_t part = std::min(members, fan_in); part >= 2; --part) {
    if (members % part == 0) return part;
  }
  return 0;
}

std::uint32_t in_switch_flags(const InSwitchPlace& place) {
  return place.spec.channels * flags_per_channel(place.nodes());
}

std::int64_t in_switch_buffer_bytes(const InSwitchSpec& spec, std::uint32_t ranks, std::uint32_t nodes) {
  const std::uint32_t fifos = nodes > 1 ? InSwitchTree::kFifos : 0;
  return std::int64_t{spec.channels} * (2 * ranks + fifos) * kSlots * InSwitchSchedule::kLargestChunk;
}

StagingSlots staging_slots(const InSwitchPlace& place, std::uint32_t channel, std::uint32_t index) {
  const std::int64_t slot_bytes = place.ranks * InSwitchSchedule::kLargestChunk;
  const std::int64_t in = place.buffer + (channel * 2 * kSlots + index % kSlots) * slot_bytes;
  return {in, in + kSlots * slot_bytes};
}

std::uint32_t in_switch_channel_flags(const InSwitchPlace& place, std::uint32_t channel) {
  return place.first_flag + channel * flags_per_channel(place.nodes());
}

std::uint32_t in_switch_threads(const InSwitchPlace& place) {
  if (!place.registered && place.kind != CollectiveKind::all_reduce) return staged_gather_threads();
  return 32 * (place.spec.reduce_warps + 2 * place.spec.copy_warps);
}

std::shared_ptr<const BlockPrograms> in_switch_programs(const InSwitchPlace& place, std::uint32_t rank) {
  if (place.registered) return registered_in_switch_programs(place, rank);
  if (place.kind != CollectiveKind::all_reduce) return staged_gather_programs(place, rank);
  return std::make_shared<InSwitchPrograms>(place, rank);
}

}  // namespace weft
