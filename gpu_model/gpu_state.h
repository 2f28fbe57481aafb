// What a GPU keeps while it runs: events, warps, blocks, kernels.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "gpu_model/clock_domain.h"
#include "gpu_model/kernel_program.h"
#include "gpu_model/occupancy.h"
#include "gpu_model/phase.h"
#include "gpu_model/unit.h"
#include "network/packet.h"
#include "sim/ids.h"

namespace weft {

enum class EventKind : std::uint8_t {
  load_at_l2,
  load_for_l1_at_l2,
  store_at_l2,
  atomic_at_l2,        // nothing comes back
  fetch_atomic_at_l2,  // the old value does
  load_at_sram,
  store_at_sram,
  flag_at_l2,
  response,         // of a load, at the unit
  l1_fill,          // the same, and L1 keeps it
  computed,         // a round is through
  slot_free,        // of a unit, for which a round waits
  resume,           // an agent goes on: started, a flag came, stores drained
  egress,           // a request of an agent at the link ports
  egress_reply,     // a reply to another GPU there
  ingress,          // a packet that came by a link, at the GPU's edge
  chunk_sum_at_l2,  // a sum of routers that came by a link
  message_timeout,  // of chunks to routers
  flush_acknowledge,
  host_step,
  store_credit,  // stores of a unit at its limit are done
  op_arrives,
  op_starts,
  kernel_launched,  // by an agent: number `line` of the script of op `agent`
  op_ends,
  timed_ends,  // kernels that only take their time
};
// A memory instruction of a warp touches up to kGroup consecutive lines (512 B: 16 B a thread): they are one event
// on their way to L2 and one on the way back, while L2 and HBM see each line.
inline constexpr std::uint32_t kGroup = 4;
struct GpuEvent {
  EventKind kind = EventKind::resume;
  std::uint8_t lines = 1;
  std::uint16_t gpu = 0;    // or the link bundle
  std::uint32_t line = 0;   // the first one, or a flag; of an ingress with `lines` only for announce()
  std::uint32_t agent = 0;  // or the op, or the place in packets_
  std::uint8_t first_sectors = 15;
  std::uint8_t last_sectors = 15;
  PacketKind packet = PacketKind::read;  // of egress
  std::uint8_t extra = 0;                // copies() of a load, a part of arrival() of an egress

  // Of a load: LineStream::copies.
  void set_copies(std::uint8_t copies) { extra = copies; }
  [[nodiscard]] std::uint32_t copies() const { return extra; }

  // Of an egress of writes: the flag that each line counts where it arrives, plus one, or 0. In the place of the
  // sectors, which only lines of the own L2 have.
  void set_arrival(std::uint32_t flag) {
    first_sectors = static_cast<std::uint8_t>(flag);
    last_sectors = static_cast<std::uint8_t>(flag >> 8);
    extra = static_cast<std::uint8_t>(flag >> 16);
  }
  [[nodiscard]] std::uint32_t arrival() const {
    return first_sectors | std::uint32_t{last_sectors} << 8 | std::uint32_t{extra} << 16;
  }
};
inline constexpr std::uint32_t kMaxFlags = (1U << 24) - 2;  // an event tells apart

// The warps of a resident block that follow one script. What each memory transaction touches comes first, in two
// cache lines of the host.
struct alignas(64) Agent {
  std::uint32_t unit = 0;
  std::uint32_t kernel = 0;  // in running_
  std::uint32_t loads_out = 0;
  std::uint32_t stores_out = 0;
  std::uint32_t lines_in_flight = 0;
  std::uint32_t returned = 0;  // lines of this phase
  std::uint32_t needed = 0;    // returned lines at which the next round is complete
  std::uint32_t rounds = 0;    // of this phase
  std::uint32_t stages = 0;
  std::uint32_t complete = 0;  // rounds whose loads are there
  std::uint32_t computed = 0;  // rounds that are through
  // Cursors: the round, stream and line to load and to store next.
  std::uint32_t load_round = 0, load_line = 0, load_end = 0;
  std::uint8_t load_stream = 0, store_stream = 0;
  bool queued = false;    // among the waiters of its unit
  bool at_fence = false;  // all issued; waits for its stores, or for the fence itself
  bool finished = false;
  bool waits = false;  // for a flag, before its first round
  bool bulk = false;   // its loads take no places of the unit
  std::uint8_t load_count = 0, store_count = 0;
  // The second line.
  LineStream load;  // at the cursor
  LineStream store;
  std::uint32_t store_round = 0, store_line = 0, store_end = 0;
  std::uint32_t next_waiter = 0;
  // The rest.
  SubCycle last_acknowledge = 0;
  SubCycle begins = 0;             // the phase, at the earliest
  SubCycle entered = 0;            // it, with what was left out: whether it then waited or not
  std::uint64_t block_number = 0;  // in the grid
  std::uint32_t block = 0;         // in blocks_
  std::uint32_t phase_index = 0;
  std::uint32_t next_flag_waiter = 0;
  std::uint32_t awaited = 0;            // what the flag must count to
  bool waits_for_flag = false;          // is in the list of a flag
  bool round_waits = false;             // for its slots
  std::uint8_t partitions = 0;          // sub-partitions that hold its warps, as a mask
  std::uint32_t age = 0;                // among all agents placed
  std::uint32_t started = 0;            // rounds that have their slots
  SubCycle pipe_until = 0;              // the last of them is through
  SubCycle pipe_time = 0;               // in which it had a round in a pipe, or waiting for one
  std::unique_ptr<PhaseCursor> cursor;  // null: the phases come from the kernel's program
  Phase phase;
};
struct Block {
  std::uint32_t unit = 0;
  std::uint32_t kernel = 0;
  std::uint32_t agents_left = 0;
  std::uint32_t agents = 0;
  SubCycle start = 0;
  SubCycle pipe_time = 0;  // summed over agents
  // As in the ledger: of this block and of those whose place it took over.
  SubCycle stall = 0;
  double held_by_pipe = 0;
  double slow_clock = 0;
};
struct RunningKernel {
  OpId op;
  const ScriptedKernel* script = nullptr;
  std::optional<KernelProgram> program;
  const PushedOutput* pushed = nullptr;  // it ends when the sums have come, too
  BlockNeeds needs;
  std::int32_t priority = 0;
  bool communication = false;
  bool on_units = true;  // its blocks take places on compute units
  bool timed = false;
  Executor executor = Executor::compute_units;
  // By number: those that are launched, and the pieces behind them that blocks of a persistent kernel take up.
  std::uint64_t blocks = 0;
  std::uint64_t launched = 0;
  std::uint32_t cluster_blocks = 1;
  std::uint64_t next_block = 0;  // to be placed
  std::uint64_t taken_up = 0;    // pieces behind the launched ones
  std::uint64_t claimed = 0;     // of them, behind the two that each block has by number
  std::uint64_t blocks_done = 0;
  std::uint64_t stores_out = 0;
  SubCycle start = 0;
  SubCycle last_acknowledge = 0;
  SubCycle last_block_end = 0;
  SubCycle left_out_before = 0;  // of the GPU's time, until it started
  std::uint64_t flushes = 0;     // its end waits until so many lines to and from other GPUs are done
  std::uint32_t sequence = 0;    // number of the launch: tells kernels apart in L1

  [[nodiscard]] bool has_to_place() const { return next_block < launched; }
  [[nodiscard]] bool waits_for_units() const { return on_units && has_to_place(); }
  // Begun ones: where nobody takes up pieces, the number of the next one as well.
  [[nodiscard]] std::uint64_t begun() const { return next_block + taken_up; }
  // So many are begun and through at once.
  void leave_out(std::uint64_t count) {
    next_block += count;
    blocks_done += count;
  }
};
// Of a collective some blocks of which have no place on a unit.
struct UnplacedBlocks {
  OpId op;
  std::uint64_t blocks = 0, of = 0;
};
// One that takes its time and nothing else, with what is left out in its times.
struct TimedKernel {
  static constexpr SubCycle kNotKnown = -1;  // yet
  OpId op;
  std::uint32_t slot = 0;
  SubCycle start = 0;
  SubCycle end = kNotKnown;
};
// How fast a block goes through its rounds.
struct RoundRate {
  std::uint32_t kernel = 0;   // number of its launch
  std::uint64_t block = 0;    // in its grid
  std::uint32_t company = 0;  // of its unit, at that time
  SubCycle since = 0;
  std::uint32_t computed = 0;  // rounds, at that time
  double rounds = 0;           // in a turn
  double carried = 0;          // parts of rounds that have not been left out yet

  [[nodiscard]] bool is_of(std::uint32_t launch, std::uint64_t number, std::uint32_t beside) const {
    return kernel == launch && block == number && company == beside;
  }
};
inline constexpr std::uint32_t kNoAcknowledgement = ~std::uint32_t{0};
// Writes of other GPUs that are done but not yet acknowledged: acknowledgements are collected for a while.
struct Acknowledgement {
  Packet packet;
  std::uint32_t collector = 0;
  std::uint32_t next = kNoAcknowledgement;  // of those whose collectors have the same hash, or that are free
  std::uint16_t bundle = 0;
  bool timer_runs = false;
};
inline constexpr std::size_t kAcknowledgementHashes = 64;
struct Acknowledgements {
  std::vector<Acknowledgement> all;  // that are being collected, and free places
  std::array<std::uint32_t, kAcknowledgementHashes> first;
  std::uint32_t free = kNoAcknowledgement;
};
// HBM traffic over time.
struct BinnedHbm {
  HbmOverTime over_time;          // but for the bin that is open
  HbmBytes before;                // it began
  std::int64_t bin = 0, end = 0;  // that is open; tick
};
// In which compute units get blocks.
struct UnitOrder {
  std::vector<std::uint32_t> units;           // equals
  std::uint32_t next_unit = 0, next_gpc = 0;  // places in it
  std::vector<std::uint32_t> gpc_units;       // first unit of each GPC, and the end
  std::vector<std::uint32_t> gpc_of;          // by compute unit
  std::vector<std::uint32_t> of_cluster;      // being placed
};
// Where what comes from L2 passes into the GPCs.
struct GpcPorts {
  SubCycle line_time = 0;      // 0: they have none
  std::vector<SubCycle> free;  // by GPC

  // What lines wait for that are asked for now. They count then: those that come late, from HBM, hold nobody up.
  SubCycle wait(std::uint32_t gpc, std::uint32_t lines, SubCycle now) {
    const SubCycle held = std::max<SubCycle>(free[gpc] - now, 0);
    free[gpc] = now + held + line_time * lines;
    return held;
  }
};
struct Flag {
  std::uint32_t count = 0;
  std::uint32_t waiter = WaitQueue::kNone;  // the first of a list through the agents
};

}  // namespace weft
