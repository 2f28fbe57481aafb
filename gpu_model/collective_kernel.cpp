#include "gpu_model/collective_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "network/ring_schedule.h"
#include "sim/error.h"

namespace weft {

namespace {

constexpr std::uint32_t kInSwitchSlots = 8;  // NCCL_STEPS chunks of a channel in flight
constexpr std::int64_t kLargestInSwitchChunk = 128 << 10;
constexpr std::int64_t kInSwitchFrom = 2 << 20;  // what NCCL's tuner does on 8 H100: ring up to 1 MiB
constexpr double kAddsPerLine = static_cast<double>(kLineBytes) / sizeof(float);

LineStream lines(std::int64_t address, std::int64_t bytes, Target target = Target::local, std::uint32_t gpu = 0) {
  LineStream stream;
  stream.first = static_cast<LineAddress>(address / kLineBytes);
  stream.lines = static_cast<std::uint32_t>((address + bytes - 1) / kLineBytes - address / kLineBytes + 1);
  stream.target = target;
  stream.gpu = static_cast<std::uint16_t>(gpu);
  return stream;
}

// Where the channels' buffers lie, the same on every GPU.
struct Buffers {
  std::int64_t base;
  std::int64_t ring_bytes;  // of a channel
  [[nodiscard]] std::int64_t ring(std::uint32_t channel) const { return base + channel * ring_bytes; }
};

Buffers buffers(const CollectiveContext& context) {
  return {context.gpu->hbm.bytes - communication_buffer_bytes(*context.library, context.gpus),
          context.library->ring.buffer_bytes};
}

// A warp's unrolled iteration: what it loads of each source before it stores (NCCL src/device/common_kernel.h,
// reduceCopy).
std::uint32_t lines_per_round(const CollectiveContext& context) {
  return std::max(1U, context.library->bytes_in_flight_per_warp / kLineBytes);
}

// Moves the lines of a phase in rounds of one warp's iteration, `warps` of them in flight.
void set_rounds(Phase& phase, const CollectiveContext& context, std::uint32_t warps, bool adds) {
  std::uint32_t most = 1;
  for (std::size_t i = 0; i < phase.load_count; ++i) most = std::max(most, phase.loads[i].lines);
  const std::uint32_t round = lines_per_round(context);
  phase.rounds = (most + round - 1) / round;
  phase.stages = warps;
  phase.pipe = Pipe::fp32;
  if (!adds) return;
  const auto fp32 = static_cast<std::size_t>(Pipe::fp32);
  const double adds_per_cycle = context.gpu->compute_unit.flops_per_cycle[fp32] / 2;  // an FMA counts as two
  phase.compute = cycles(round * kAddsPerLine / adds_per_cycle);
}

class RingPlanner {
 public:
  RingPlanner(const CollectiveContext& context, const CollectiveDemand& demand, std::uint32_t first_flag)
      : context_(context), demand_(demand), spec_(context.library->ring), first_flag_(first_flag) {}

  CollectivePlan plan() {
    const auto ranks = static_cast<std::uint32_t>(demand_.group.size());
    // all_gather's demand is the input of one rank, the schedule's the whole message.
    const std::int64_t bytes = demand_.bytes.count() * (demand_.kind == CollectiveKind::all_gather ? ranks : 1);
    CollectivePlan plan{"ring", "Simple", ring_channels(spec_, bytes, ranks), 0, {}};
    plan.flags = plan.channels * kFlagsPerChannel;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      ScriptedKernel kernel;
      kernel.threads_per_block = spec_.threads + 32;
      for (std::uint32_t channel = 0; channel < plan.channels; ++channel) {
        const auto slices = ring_schedule(demand_.kind, spec_, bytes, rank, ranks, channel, plan.channels);
        kernel.blocks.push_back({script(slices, rank, channel)});
      }
      plan.ranks.push_back(std::move(kernel));
    }
    return plan;
  }

 private:
  static constexpr std::uint32_t kFlagsPerChannel = 2;  // slices that have come; slices the next rank has taken

  [[nodiscard]] std::uint32_t arrived_flag(std::uint32_t channel) const { return first_flag_ + channel * 2; }
  [[nodiscard]] std::uint32_t taken_flag(std::uint32_t channel) const { return first_flag_ + channel * 2 + 1; }

  WarpScript script(const std::vector<RingSlice>& slices, std::uint32_t rank, std::uint32_t channel) {
    const auto ranks = static_cast<std::uint32_t>(demand_.group.size());
    const std::uint32_t next = demand_.group[(rank + 1) % ranks].value;
    const std::uint32_t before = demand_.group[(rank + ranks - 1) % ranks].value;
    const std::uint32_t slots = spec_.buffer_steps / spec_.slice_steps;
    const std::int64_t slot_bytes = spec_.buffer_bytes / slots;
    const std::int64_t fifo = buffers(context_).ring(channel);
    WarpScript script;
    std::uint32_t received = 0;
    std::uint32_t sent = 0;
    for (const RingSlice& slice : slices) {
      Phase phase;
      if (slice.receives) {
        phase.wait({arrived_flag(channel), received + 1});
        // The FIFO lies with the sender when the receiver reads, with the receiver when the sender writes.
        const std::int64_t slot = fifo + received % slots * slot_bytes;
        phase.load(spec_.receiver_reads ? lines(slot, slice.bytes, Target::remote, before) : lines(slot, slice.bytes));
        ++received;
      }
      if (slice.uses_input) {
        phase.load(lines(static_cast<std::int64_t>(demand_.send_address) + slice.offset, slice.bytes));
      }
      if (slice.keeps) {
        phase.store(lines(static_cast<std::int64_t>(demand_.receive_address) + slice.offset, slice.bytes));
      }
      if (slice.sends) {
        if (sent >= slots) phase.wait({taken_flag(channel), sent + 1 - slots});
        const std::int64_t slot = fifo + sent % slots * slot_bytes;
        phase.store(spec_.receiver_reads ? lines(slot, slice.bytes) : lines(slot, slice.bytes, Target::remote, next));
        ++sent;
        phase.post({arrived_flag(channel), Target::remote, static_cast<std::uint16_t>(next)});
      }
      if (slice.receives) phase.post({taken_flag(channel), Target::remote, static_cast<std::uint16_t>(before)});
      set_rounds(phase, context_, spec_.threads / 32, slice.receives && slice.uses_input);
      script.phases.push_back(phase);
    }
    if (script.phases.empty()) script.phases.emplace_back();
    script.lines_in_flight = spec_.threads / 32 * lines_per_round(context_) * 2;
    return script;
  }

  const CollectiveContext& context_;
  const CollectiveDemand& demand_;
  const RingSpec& spec_;
  std::uint32_t first_flag_;
};

// NVLS with staging: three groups of warps in each block form a pipeline over the loops. Stage-in copies the rank's
// data into a buffer the switch knows and signals all; reduce loads its own piece through the switch, summed, and
// stores it to all through the switch; stage-out copies the sums to the user's buffer and gives the slot free.
class InSwitchPlanner {
 public:
  InSwitchPlanner(const CollectiveContext& context, const CollectiveDemand& demand, std::uint32_t first_flag)
      : context_(context), demand_(demand), spec_(context.library->in_switch), first_flag_(first_flag) {}

  CollectivePlan plan() {
    CollectivePlan plan{"in_switch", "Simple", spec_.channels, 0, {}};
    plan.flags = plan.channels * kFlagsPerChannel;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
      ScriptedKernel kernel;
      kernel.threads_per_block = 32 * (spec_.reduce_warps + 2 * spec_.copy_warps);
      for (std::uint32_t channel = 0; channel < plan.channels; ++channel) {
        kernel.blocks.push_back(block(rank, channel));
      }
      plan.ranks.push_back(std::move(kernel));
    }
    return plan;
  }

 private:
  // By slot: ranks that have staged in, heads that have reduced; and loops staged out. A slot is used again only after
  // its loop was staged out here, which takes all ranks' signals: so each counter is complete at a multiple of the
  // ranks.
  static constexpr std::uint32_t kFlagsPerChannel = 2 * kInSwitchSlots + 1;

  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(demand_.group.size()); }

  std::vector<WarpScript> block(std::uint32_t rank, std::uint32_t channel) {
    const std::uint32_t flags = first_flag_ + channel * kFlagsPerChannel;
    const std::uint32_t staged_out = flags + 2 * kInSwitchSlots;
    const std::int64_t slot_bytes = ranks() * kLargestInSwitchChunk;
    const std::int64_t in_base = buffers(context_).base + channel * 2 * kInSwitchSlots * slot_bytes;
    const std::int64_t out_base = in_base + kInSwitchSlots * slot_bytes;
    WarpScript stage_in;
    WarpScript reduce;
    WarpScript stage_out;
    const auto loops = in_switch_schedule(demand_.bytes.count(), ranks(), channel, spec_.channels);
    for (std::uint32_t l = 0; l < loops.size(); ++l) {
      const InSwitchLoop& loop = loops[l];
      const std::uint32_t slot = l % kInSwitchSlots;
      const std::uint32_t all = ranks() * (l / kInSwitchSlots + 1);
      const std::int64_t in = in_base + slot * slot_bytes;
      const std::int64_t out = out_base + slot * slot_bytes;

      Phase copy_in;
      if (l >= kInSwitchSlots) copy_in.wait({staged_out, l + 1 - kInSwitchSlots});
      if (loop.bytes > 0) {
        copy_in.load(lines(static_cast<std::int64_t>(demand_.send_address) + loop.offset, loop.bytes));
        copy_in.store(lines(in, loop.bytes));
      }
      copy_in.post({flags + slot, Target::multicast, 0});
      set_rounds(copy_in, context_, spec_.copy_warps, false);
      stage_in.phases.push_back(copy_in);

      Phase sum;
      sum.wait({flags + slot, all});
      const std::int64_t own = rank * loop.piece;
      if (const std::int64_t bytes = std::min(loop.piece, loop.bytes - own); bytes > 0) {
        sum.load(lines(in + own, bytes, Target::multicast));
        sum.store(lines(out + own, bytes, Target::multicast));
      }
      sum.post({flags + kInSwitchSlots + slot, Target::multicast, 0});
      set_rounds(sum, context_, spec_.reduce_warps, false);
      reduce.phases.push_back(sum);

      Phase copy_out;
      copy_out.wait({flags + kInSwitchSlots + slot, all});
      if (loop.bytes > 0) {
        copy_out.load(lines(out, loop.bytes));
        copy_out.store(lines(static_cast<std::int64_t>(demand_.receive_address) + loop.offset, loop.bytes));
      }
      copy_out.post({staged_out, Target::local, 0});
      set_rounds(copy_out, context_, spec_.copy_warps, false);
      stage_out.phases.push_back(copy_out);
    }
    stage_in.lines_in_flight = stage_out.lines_in_flight = spec_.copy_warps * lines_per_round(context_);
    reduce.lines_in_flight = spec_.reduce_warps * lines_per_round(context_);
    return {stage_in, reduce, stage_out};
  }

  const CollectiveContext& context_;
  const CollectiveDemand& demand_;
  const InSwitchSpec& spec_;
  std::uint32_t first_flag_;
};

bool wants_in_switch(const CollectiveContext& context, const CollectiveDemand& demand, AllReduceAlgorithm algorithm) {
  const bool possible =
      context.switch_reduces && demand.kind == CollectiveKind::all_reduce && demand.group.size() == context.gpus;
  if (algorithm == AllReduceAlgorithm::in_switch && demand.kind == CollectiveKind::all_reduce) {
    if (!possible) {
      throw InputError(
          fmt::format("in_switch: expected a reducing switch and a group of all {} GPUs, got {} and a group "
                      "of {}",
                      context.gpus, context.switch_reduces ? "one" : "none", demand.group.size()));
    }
    return true;
  }
  return possible && algorithm == AllReduceAlgorithm::automatic && demand.bytes.count() >= kInSwitchFrom;
}

}  // namespace

std::int64_t communication_buffer_bytes(const CollectiveSpec& library, std::uint32_t gpus) {
  const std::int64_t ring = library.ring.channels * library.ring.buffer_bytes;
  const std::int64_t in_switch =
      library.in_switch.channels * std::int64_t{2} * kInSwitchSlots * gpus * kLargestInSwitchChunk;
  return std::max(ring, in_switch);
}

CollectivePlan plan_collective(const CollectiveContext& context, const CollectiveDemand& demand,
                               AllReduceAlgorithm algorithm, std::uint32_t first_flag) {
  if (demand.group.size() < 2) throw InputError("a collective: expected a group of at least 2 GPUs");
  if (!ring_supports(demand.kind)) {
    throw InputError(
        fmt::format("{}: expected all_reduce, all_gather, reduce_scatter or broadcast", to_string(demand.kind)));
  }
  CollectivePlan plan = wants_in_switch(context, demand, algorithm)
                            ? InSwitchPlanner(context, demand, first_flag).plan()
                            : RingPlanner(context, demand, first_flag).plan();
  const ClockDomain clock(context.gpu->clock);
  for (ScriptedKernel& kernel : plan.ranks) {
    kernel.registers_per_thread = context.library->registers_per_thread;
    kernel.shared_memory_bytes = context.library->shared_memory_bytes;
    kernel.start_latency = clock.to_subcycles(context.library->base_latency);
  }
  return plan;
}

}  // namespace weft
