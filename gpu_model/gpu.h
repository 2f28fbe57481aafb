// One GPU: a host thread and streams, a work distributor, compute units, L1, crossbar, L2, HBM and the ports of its
// links, at the grain of 128 B memory transactions. All of it is one chip of the engine and one event queue.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "gpu_model/frontend.h"
#include "gpu_model/gpu_spec.h"
#include "gpu_model/gpu_values.h"
#include "gpu_model/kernel_program.h"
#include "gpu_model/l2_cache.h"
#include "gpu_model/link_ports.h"
#include "gpu_model/phase.h"
#include "gpu_model/unit.h"
#include "sim/engine.h"
#include "sim/timing_wheel.h"

namespace weft {

// What a GPU runs. Everything outlives the GPU.
struct GpuWork {
  const Program* program = nullptr;
  // By op: the part of a collective or copy; null for kernels.
  std::vector<const ScriptedKernel*> scripts;
  std::uint32_t flags = 0;  // counters that collectives meet at
  HostSpec host;
  PrivateParts private_parts;
  GpuValues* values = nullptr;  // where values travel; only collectives have them
};

// What communication held a kernel up with, booked while it ran: subcycles.
struct KernelLedger {
  // Over all lines: from the unit to L2 and back, and what of it was for communication's requests.
  double latency = 0;
  double held_by_port = 0;  // the unit's, shared with a collective's block
  double held_by_cache = 0;
  double held_by_hbm = 0;
  // Of the last block to end, those before it in its place, and the stores after it: the chain that the kernel took.
  double stall = 0;          // for memory: nothing of the block in a pipe
  double held_by_pipe = 0;   // for rounds of communication there
  double held_by_links = 0;  // at the kernel's end, for communication's stores to other GPUs
  bool displaced = false;    // a block of a collective kept one from a unit
};

struct GpuStatistics {
  std::int64_t memory_transactions = 0;          // lines that reached L2, of local units and of links
  std::int64_t communication_fetched_bytes = 0;  // from HBM, for collectives
  std::int64_t delivered_bytes = 0;              // payload that came by links
  double unit_seconds_compute = 0;  // units that hold at least one block of a kernel, and none of a collective
  double unit_seconds_communication = 0;
  // HBM bytes at the ends of the kStatisticsPeriods in which there were any, cumulative, and how many periods passed.
  struct HbmSample {
    std::int64_t period = 0;
    std::int64_t bytes = 0;
  };
  std::vector<HbmSample> hbm_samples;
  std::int64_t hbm_periods = 0;
};

class Gpu final : public Chip {
 public:
  Gpu(GpuId id, const GpuSpec& spec, const GpuWork& work, LinkPorts ports);

  void advance(Time until) override;
  [[nodiscard]] Time next_activity() const override;
  // No collective runs or is about to: the next one first has to be started.
  [[nodiscard]] Time silent_until(Time now) const override;

  // Whether all operations have ended; if not when every chip sleeps, the run is stuck.
  [[nodiscard]] bool done() const { return frontend_.done(); }
  [[nodiscard]] const std::vector<OpTimes>& times() const { return frontend_.all_times(); }
  [[nodiscard]] const KernelLedger& ledger(OpId op) const { return ledgers_[op.value]; }
  [[nodiscard]] const GpuStatistics& statistics() const { return statistics_; }
  [[nodiscard]] const L2Cache& l2() const { return l2_; }
  // Before the first advance(): starts with what another L2 of the same kind holds.
  void set_l2(const L2Cache& l2) { l2_ = l2; }
  [[nodiscard]] const LinkPorts& ports() const { return ports_; }
  [[nodiscard]] const ClockDomain& clock() const { return clock_; }

 private:
  enum class EventKind : std::uint8_t {
    load_at_l2,
    load_for_l1_at_l2,
    store_at_l2,
    atomic_at_l2,        // nothing comes back
    fetch_atomic_at_l2,  // the old value does
    load_at_sram,
    store_at_sram,
    flag_at_l2,
    response,      // of a load, at the unit
    l1_fill,       // the same, and L1 keeps it
    computed,      // a round is through
    slot_free,     // of a unit, for which a round waits
    resume,        // an agent goes on: started, a flag came, stores drained
    egress,        // a request of an agent at the link ports
    egress_reply,  // a reply to another GPU there
    ingress,       // a packet that came by a link, at the GPU's edge
    flush_acknowledge,
    host_step,
    store_credit,  // stores of a unit at its limit are done
    op_arrives,
    op_starts,
    kernel_launched,  // by an agent: number `line` of the script of op `agent`
    op_ends,
  };
  // A memory instruction of a warp touches up to kGroup consecutive lines (512 B: 16 B a thread): they are one event
  // on their way to L2 and one on the way back, while L2 and HBM see each line.
  static constexpr std::uint32_t kGroup = 4;
  struct Event {
    EventKind kind = EventKind::resume;
    std::uint8_t lines = 1;
    std::uint16_t gpu = 0;    // or the link bundle
    std::uint32_t line = 0;   // the first one, or a flag
    std::uint32_t agent = 0;  // or the op, or the place in packets_
    std::uint8_t first_sectors = 15;
    std::uint8_t last_sectors = 15;
    PacketKind packet = PacketKind::read;  // of egress
    std::uint8_t arrival_high = 0;

    // Of an egress of writes: the flag that each line counts where it arrives, plus one, or 0. In the place of the
    // sectors, which only lines of the own L2 have.
    void set_arrival(std::uint32_t flag) {
      first_sectors = static_cast<std::uint8_t>(flag);
      last_sectors = static_cast<std::uint8_t>(flag >> 8);
      arrival_high = static_cast<std::uint8_t>(flag >> 16);
    }
    [[nodiscard]] std::uint32_t arrival() const {
      return first_sectors | std::uint32_t{last_sectors} << 8 | std::uint32_t{arrival_high} << 16;
    }
  };
  static constexpr std::uint32_t kMaxFlags = (1U << 24) - 2;  // an event tells apart

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
    std::uint8_t load_count = 0, store_count = 0;
    // The second line.
    LineStream load;  // at the cursor
    LineStream store;
    std::uint32_t store_round = 0, store_line = 0, store_end = 0;
    std::uint32_t next_waiter = 0;
    // The rest.
    SubCycle last_acknowledge = 0;
    SubCycle begins = 0;             // the phase, at the earliest
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
  };
  struct Running {
    OpId op;
    const ScriptedKernel* script = nullptr;
    std::optional<KernelProgram> program;
    BlockNeeds needs;
    std::int32_t priority = 0;
    bool communication = false;
    bool on_units = true;  // its blocks take places on compute units
    Executor executor = Executor::compute_units;
    std::uint64_t blocks = 0;
    std::uint32_t cluster_blocks = 1;
    std::uint64_t next_block = 0;
    std::uint64_t blocks_done = 0;
    std::uint64_t stores_out = 0;
    SubCycle start = 0;
    SubCycle last_acknowledge = 0;
    SubCycle last_block_end = 0;
    std::uint64_t flushes = 0;   // its end waits until so many stores to other GPUs are acknowledged
    std::uint32_t sequence = 0;  // number of the launch: tells kernels apart in L1
  };
  // Writes of other GPUs that are done but not yet acknowledged: acknowledgements are collected for a while.
  struct Acknowledgement {
    Packet packet;
    std::uint32_t collector = 0;
    std::uint32_t next = kNoAcknowledgement;  // of those whose collectors have the same hash, or that are free
    std::uint16_t bundle = 0;
    bool timer_runs = false;
  };
  static constexpr std::uint32_t kNoAcknowledgement = ~std::uint32_t{0};
  static constexpr std::size_t kAcknowledgementHashes = 64;
  struct Flag {
    std::uint32_t count = 0;
    std::uint32_t waiter = WaitQueue::kNone;  // the first of a list through the agents
  };

  // gpu.cpp: time and events
  void handle(const Event& event);
  void announce(const Event& event) const;
  void add_engines(const GpuEngines& engines);
  void push(SubCycle when, const Event& event);
  [[nodiscard]] SubCycle now() const { return cycles(wheel_.now()); }
  void sample(Time until);

  // gpu_control.cpp: host, streams, work distributor
  void make_ready(OpId op);
  void host_step();
  void start_op(OpId op);
  void start_kernel(OpId op, const ScriptedKernel* script);
  [[nodiscard]] std::uint32_t engine_unit(Executor executor, std::uint64_t block) const;
  void end_op(std::uint32_t kernel);
  void dispatch(std::uint32_t kernel);
  void dispatch_on(std::uint32_t unit, const Block& left);
  bool place_block(std::uint32_t kernel, std::uint32_t unit, const Block* left = nullptr);
  void end_block(std::uint32_t block);
  void end_kernel_if_drained(std::uint32_t kernel);
  void remote_stores_done(std::uint32_t count, SubCycle when);
  void account_unit(std::uint32_t unit);

  // gpu_clusters.cpp: clusters of blocks
  bool place_cluster(std::uint32_t kernel, std::uint32_t gpc);
  void dispatch_clusters(std::uint32_t kernel);

  // gpu_agents.cpp: warps and their phases
  void enter_phase(std::uint32_t index);
  bool flags_counted(std::uint32_t index);
  bool has_counted(std::uint32_t flag, std::uint32_t value, std::uint32_t index);
  bool round_arrived(std::uint32_t index);
  void run_agent(std::uint32_t index);
  bool finish_phase(std::uint32_t index);
  void finish_agent(std::uint32_t index);
  void post(std::uint32_t index, const FlagPost& post);
  void end_fence(std::uint32_t index);

  // gpu_rounds.cpp: what they compute
  void rounds_complete(std::uint32_t index);
  void round_ready(std::uint32_t index, SubCycle since);
  void start_rounds(std::uint32_t unit);
  void on_computed(const Event& event);
  void on_slot_free(std::uint32_t unit);

  // gpu_issue.cpp: what they load and store
  static void next_load_stream(Agent& agent);
  static void next_store_stream(Agent& agent);
  bool issue_stores(std::uint32_t index);
  bool issue_loads(std::uint32_t index);
  void load_lines(std::uint32_t index, std::uint32_t count);
  void issue(std::uint32_t index, const LineStream& stream, std::uint32_t line, std::uint32_t count, bool is_load);
  SubCycle translated(Unit& unit, LineAddress line, SubCycle when);
  void wait_at(WaitQueue& queue, std::uint32_t index);
  void wake(WaitQueue& queue, const std::uint32_t& outstanding, std::uint32_t limit);
  void on_response(const Event& event);
  void on_l1_fill(const Event& event);
  void stores_done(std::uint32_t agent, std::uint32_t count, SubCycle when);

  // gpu_memory.cpp: L2 and links
  void on_load_at_l2(const Event& event);
  void on_store_at_l2(const Event& event);
  void on_atomic_at_l2(const Event& event, bool value_returns);
  void respond(const Event& event, const L2Cache::Access& access, EventKind kind);
  [[nodiscard]] bool in_sram(LineAddress line) const { return line >= sram_first_line_; }
  SubCycle access_sram(std::uint32_t lines);
  SubCycle write_came(const Packet& packet, SubCycle& started);
  void count_flag(std::uint32_t flag);
  void on_egress(const Event& event);
  void on_ingress(const Packet& packet, std::uint16_t bundle);
  void send_reply(const Packet& request, PacketKind kind, std::uint16_t bundle, SubCycle when);
  void acknowledge(const Packet& write, std::uint16_t bundle, SubCycle when);
  std::uint32_t acknowledgement_of(std::uint32_t collector);
  void flush_acknowledge(std::uint32_t place, SubCycle when);
  void forget_acknowledgement(std::uint32_t place);
  void submit(const Packet& packet, std::uint16_t bundle);
  void give_credit(const Packet& packet, std::uint16_t bundle, SubCycle when);
  static L2Cache::Lines lines_of(const Event& event, const Unit& unit, bool communication);
  void count_communication(const L2Cache::Access& access, std::uint32_t lines, bool communication);
  void book(OpId op, const L2Cache::Access& access, std::uint32_t lines, SubCycle back);
  std::uint32_t keep(const Packet& packet);

  GpuId id_;
  GpuSpec spec_;
  ClockDomain clock_;
  GpuWork work_;
  Frontend frontend_;
  L2Cache l2_;
  LinkPorts ports_;
  TimingWheel<Event> wheel_;

  SubCycle request_latency_;   // unit or link port to L2 slice
  SubCycle response_latency_;  // L2 slice to unit or link port
  SubCycle poll_wait_;         // from a change in L2 to the poll that sees it, on average
  SubCycle l1_latency_;
  SubCycle l1_line_time_;
  SubCycle barrier_latency_;
  SubCycle device_latency_;
  SubCycle graph_node_;              // device_latency_, unless kernels are launched as graphs
  std::uint32_t private_units_ = 0;  // the first of them; 0: none

  // Compute units, then the copy engine of the host link, copy engines between GPUs, the endpoint engine, private
  // compute units of communication.
  std::vector<Unit> units_;
  std::vector<Agent> agents_;
  std::vector<std::uint32_t> free_agents_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> free_blocks_;
  std::vector<Running> running_;
  std::vector<std::uint32_t> free_running_;
  std::vector<std::uint32_t> active_;  // kernels with blocks to place, by priority and age
  std::vector<Flag> flags_;
  std::vector<KernelLedger> ledgers_;
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_packets_;
  std::vector<Acknowledgement> acknowledgements_;  // that are being collected, and free places
  std::array<std::uint32_t, kAcknowledgementHashes> first_acknowledgement_;
  std::uint32_t free_acknowledgement_ = kNoAcknowledgement;
  std::vector<OpId> ready_;
  std::vector<std::uint32_t> flushing_;  // kernels at their end that wait for stores to other GPUs, in order
  std::uint64_t remote_stores_ = 0;      // issued so far, in lines
  std::uint64_t remote_acknowledged_ = 0;
  std::uint32_t next_unit_ = 0;
  std::uint32_t next_gpc_ = 0;
  std::vector<std::uint32_t> gpc_units_;      // first unit of each GPC, and the end
  std::vector<std::uint32_t> gpc_of_;         // by compute unit
  std::vector<std::uint32_t> cluster_units_;  // of the cluster being placed
  std::uint32_t agents_placed_ = 0;
  std::uint32_t launches_ = 0;
  std::uint32_t collectives_ = 0;  // started or about to be, until they end
  Time collective_notice_;         // at least this long from being ready to the first message
  SubCycle distributor_free_ = 0;
  std::vector<std::uint32_t> parts_left_;          // by op: kernels of its script that have not ended
  LineAddress sram_first_line_ = ~LineAddress{0};  // the endpoint engine's memory lies behind HBM's addresses
  SubCycle sram_line_time_ = 0;
  SubCycle sram_latency_ = 0;
  SubCycle sram_free_ = 0;
  GpuStatistics statistics_;
};

// Runs one GPU by itself, without engine or links, until nothing is left for it to do.
void run_alone(Gpu& gpu);

}  // namespace weft
