// One GPU: a host thread and streams, a work distributor, compute units, L1, crossbar, L2, HBM and the ports of its
// links, at the grain of 128 B memory transactions. All of it is one chip of the engine and one event queue.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gpu_model/collective_pace.h"
#include "gpu_model/frontend.h"
#include "gpu_model/gpu_power.h"
#include "gpu_model/gpu_spec.h"
#include "gpu_model/gpu_state.h"
#include "gpu_model/gpu_work.h"
#include "gpu_model/l2_cache.h"
#include "gpu_model/link_ports.h"
#include "gpu_model/phase_repeats.h"
#include "gpu_model/resident_blocks.h"
#include "gpu_model/told_lines.h"
#include "gpu_model/unit.h"
#include "gpu_model/wave_skip.h"
#include "network/message_endpoint.h"
#include "sim/conductor.h"
#include "sim/timing_wheel.h"

namespace weft {

class Gpu final : public Chip {
 public:
  // `message`: its places in the trees of routers that sum.
  Gpu(GpuId id, const GpuSpec& spec, const GpuWork& work, LinkPorts ports, MessageEndpointSpec message = {});

  void advance(Time until) override;
  [[nodiscard]] Time next_activity() const override;
  // No collective runs or is about to: the next one first has to be started.
  [[nodiscard]] Time silent_until(Time now) const override;

  // Whether all operations have ended; if not when every chip sleeps, the run is stuck.
  [[nodiscard]] bool done() const { return frontend_.done(); }
  [[nodiscard]] std::optional<UnplacedBlocks> unplaced() const;
  [[nodiscard]] const std::vector<OpTimes>& times() const { return frontend_.all_times(); }
  [[nodiscard]] KernelLedger ledger(OpId op) const;  // of one that runs, so far
  [[nodiscard]] const GpuStatistics& statistics() const { return statistics_; }
  [[nodiscard]] const std::vector<ResidentTraffic>& residents() const { return residents_; }
  [[nodiscard]] HbmBytes hbm_bytes() const;
  [[nodiscard]] HbmOverTime hbm_over_time() const;
  [[nodiscard]] std::optional<PowerUse> power_use(Time run_end) const;
  [[nodiscard]] const L2Cache& l2() const { return l2_; }
  // What was left out would have taken, on top of what was simulated; times() have it.
  [[nodiscard]] const GpuProgress& skipped() const { return skipped_; }
  [[nodiscard]] GpuProgress progress() const;  // with it
  [[nodiscard]] double skip_variance() const { return skip_variance_; }
  // Where it is in its program if nothing runs. None: something does, or what has ended is no such place.
  [[nodiscard]] std::optional<ProgramPlace> quiet() const;
  // Collectives have the GPU for themselves, nothing of the host is due, and all of their warps are in the middle of
  // phases whose rounds need no more flags: `found` has them. False: not so.
  [[nodiscard]] bool paced(std::vector<PacedWarps>& found) const;
  // Between two windows: the agent goes on by so many rounds that are left out; and so much time for all of them.
  void leave_out(std::uint32_t agent, std::uint32_t rounds, const TouchElsewhere& elsewhere);
  void leave_out(SubCycle time);
  // Nothing of the host is due, and all that runs are collectives and kernels in the middle: how far the collectives
  // are. False: not so. Whether one of them goes on by itself, not waiting. How far the kernels are.
  [[nodiscard]] bool stepping(std::vector<CollectiveSteps>& found) const;
  [[nodiscard]] bool collectives_move() const;
  [[nodiscard]] bool working(std::vector<KernelWork>& found) const;
  void note_rounds();  // how fast each block goes is counted from here on
  double share_rounds(std::uint32_t slot, double rounds);
  // Between two windows: the kernel goes on by so many rounds of the blocks that run, as they were shared; by blocks.
  void leave_out_rounds_of(std::uint32_t slot, double rounds, SubCycle time, Told told);
  void leave_out_blocks_of(std::uint32_t slot, std::uint64_t blocks, Told told);
  [[nodiscard]] double fills_of_l2(double bytes) const { return bytes / static_cast<double>(spec_.l2.bytes); }
  [[nodiscard]] PhaseRepeats repeats(std::uint32_t agent, Turn turn, std::uint64_t most) const;
  // Between two windows: the agent goes on by `turns` of them, which take `time`, being where it is in the phase that
  // it comes to. With `elsewhere`, the L2 is given what they touch.
  void leave_out_turns(std::uint32_t agent, PhaseRepeats& repeats, std::uint64_t turns, SubCycle time,
                       const TouchElsewhere& elsewhere);
  // In what was left out, the flag has counted so much further, and who waits for it does so for `awaited` more.
  void count_left_out(std::uint32_t flag, std::uint32_t by, std::uint32_t awaited);
  [[nodiscard]] const Flag& flag(std::uint32_t index) const { return flags_[index]; }
  void add_left_out(const GpuProgress& moved, std::uint64_t remote_lines);
  void touch(const L2Cache::Lines& lines, bool stored);  // by another GPU's agents, in what was left out
  // Loads and stores of lines of other GPUs, simulated and left out.
  [[nodiscard]] std::uint64_t remote_lines() const { return remote_loads_ + remote_stores_; }
  [[nodiscard]] std::uint64_t remote_lines_left_out() const { return remote_left_out_; }
  // One that sleeps does not know the time: before leave_out() of operations and set_end().
  void come_to(Time now);
  // Between two windows: operations are left out, which move so much; seconds of units that communicate.
  void leave_out(const RepeatedOps& ops, const GpuProgress& moved, double communicating);
  // gpu_timed.cpp: what only takes its time; when it will end. Collectives that have blocks on units.
  [[nodiscard]] const std::vector<TimedKernel>& timed() const { return timed_; }
  void set_end(OpId op, SubCycle end);
  [[nodiscard]] Time timed_left() const;
  void communicating(std::vector<OpId>& found) const;
  [[nodiscard]] const Frontend& frontend() const { return frontend_; }
  void set_l2(L2Cache l2) { l2_ = std::move(l2); }  // before the first advance()
  [[nodiscard]] const LinkPorts& ports() const { return ports_; }
  [[nodiscard]] const MessageStatistics& messages() const { return message_.statistics(); }
  [[nodiscard]] const ClockDomain& clock() const { return clock_; }
  [[nodiscard]] std::int64_t grain() const { return spec_.grain; }

 private:
  friend class GpuPower;  // sets all that goes by the units' clock

  // gpu.cpp: time and events; gpu_over_time.cpp: bins of HBM traffic
  void handle(const GpuEvent& event);
  void announce(const GpuEvent& event) const;
  // gpu_engines.cpp: the units beside compute units, but private ones
  void add_engines();
  // Of the host, or the beginning or end of an operation.
  void push_control(SubCycle when, const GpuEvent& event);
  [[gnu::always_inline]] void push(SubCycle when, const GpuEvent& event) { wheel_.push(tick_at_or_after(when), event); }
  [[nodiscard]] SubCycle now() const { return cycles(wheel_.now()); }
  void run_events(std::int64_t end);
  void next_bin(std::int64_t tick);
  void add_open_bin(HbmOverTime& over_time) const;

  // gpu_control.cpp: host, streams, work distributor
  void make_ready(OpId op);
  void host_step();
  void start_op(OpId op);
  void start_kernel(OpId op, const ScriptedKernel* script);
  [[nodiscard]] SubCycle lasts_of(OpId op) const { return op.value < work_.lasts.size() ? work_.lasts[op.value] : 0; }
  [[nodiscard]] const PushedOutput* pushed_by(OpId op) const;
  [[nodiscard]] std::uint32_t engine_unit(Executor executor, std::uint64_t block) const;
  [[nodiscard]] std::uint32_t nic_unit() const { return spec_.compute_units + 1; }
  void end_op(std::uint32_t kernel);
  void go_on(bool host);
  [[nodiscard]] std::optional<SubCycle> given_time(OpId op) const;
  void start_timed(std::uint32_t slot, SubCycle lasts);
  void expect_timed(const TimedKernel& kernel);
  void end_timed();
  void place_anywhere(std::uint32_t kernel);
  void dispatch(std::uint32_t kernel);                      // gpu_places.cpp
  void dispatch_on(std::uint32_t unit, const Block& left);  // gpu_places.cpp
  [[nodiscard]] bool ends_with_neighbour(const Block& block) const;
  void leave_unit(const Block& block);
  bool place_block(std::uint32_t kernel, std::uint32_t unit, const Block* left = nullptr);
  void end_block(std::uint32_t block);
  void end_kernel_if_drained(std::uint32_t kernel);
  [[nodiscard]] bool is_fenced(std::uint32_t unit) const;  // what it sends: what engines and NICs do is not
  void fenced_accesses_done(std::uint32_t count, SubCycle when);
  void account_unit(std::uint32_t unit);

  // gpu_residents.cpp: blocks that stay beside all operations; their numbers follow those of operations
  [[nodiscard]] bool is_resident(OpId op) const { return op.value >= work_.program->ops.size(); }
  void start_residents();
  bool resident_stays(const Agent& agent);
  void stop_residents_if_done();
  [[nodiscard]] bool only_collectives() const;
  [[nodiscard]] bool settled() const;                  // gpu_company.cpp
  void count_left_out(const L2Cache::Touched& moved);  // by collectives

  // gpu_waves.cpp: waves and rounds that are left out
  void watch_waves(const RunningKernel& kernel);
  template <class Turns>
  void leave_out(WaveSkip& skip, std::uint64_t most, Turns&& turns);
  void leave_out_work(std::uint64_t rounds);
  void leave_out_waves();
  L2Cache::Touched leave_out_blocks(RunningKernel& kernel, std::uint64_t blocks, Told told);
  std::uint64_t become_later_blocks(std::uint32_t slot, std::uint64_t wave, std::uint64_t most);
  void tell_progress(const std::vector<std::size_t>& agents);
  void leave_out_rounds();
  [[nodiscard]] std::int64_t streams_of(std::uint32_t slot) const;
  std::uint64_t leave_out_shared(std::uint32_t slot, double times, Told telling, L2Cache::Touched& moved);
  L2Cache::Touched skip_rounds(Agent& agent, std::uint32_t rounds, const TouchElsewhere& elsewhere = {},
                               std::uint32_t most_lines = ~std::uint32_t{0}, ToldLines* told = nullptr);

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
  bool take_up_piece(std::uint32_t agent);
  void finish_agent(std::uint32_t index);
  void post(std::uint32_t index, std::uint32_t number);  // of the phase
  void end_fence(std::uint32_t index);

  // gpu_rounds.cpp: what they compute
  void rounds_complete(std::uint32_t index);
  void round_ready(std::uint32_t index, SubCycle since);
  void start_rounds(std::uint32_t unit);
  void on_computed(const GpuEvent& event);
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
  void look_for_credits(std::uint32_t unit);
  void wake(WaitQueue& queue, const std::uint32_t& outstanding, std::uint32_t limit);
  void on_response(const GpuEvent& event);
  void on_l1_fill(const GpuEvent& event);
  void stores_done(std::uint32_t agent, std::uint32_t count, SubCycle when);

  // gpu_memory.cpp: L2
  void on_load_at_l2(const GpuEvent& event);
  void on_store_at_l2(const GpuEvent& event);
  void on_atomic_at_l2(const GpuEvent& event, bool value_returns);
  void respond(const GpuEvent& event, const L2Cache::Access& access, EventKind kind);
  [[nodiscard]] bool in_sram(LineAddress line) const { return line >= sram_first_line_; }
  SubCycle access_sram(std::uint32_t lines);
  void count_flag(std::uint32_t flag);
  static L2Cache::Lines lines_of(const GpuEvent& event, const Unit& unit, bool communication);
  void count_communication(const L2Cache::Access& access, std::uint32_t lines, bool communication);
  void book(OpId op, const L2Cache::Access& access, std::uint32_t lines, SubCycle back);

  // gpu_links.cpp: links
  void on_egress(const GpuEvent& event);
  void submit(const Packet& packet, std::uint16_t bundle);
  void give_credit(const Packet& packet, std::uint16_t bundle, SubCycle when);
  void on_ingress(const Packet& packet, std::uint16_t bundle);
  SubCycle write_came(const Packet& packet, SubCycle& started);
  void on_sum(const Packet& packet, std::uint16_t bundle);  // gpu_sums.cpp
  void sum_came(std::uint32_t flag);
  void send_reply(const Packet& request, PacketKind kind, std::uint16_t bundle, SubCycle when);
  void acknowledge(const Packet& write, std::uint16_t bundle, SubCycle when);
  std::uint32_t acknowledgement_of(std::uint32_t collector);
  void flush_acknowledge(std::uint32_t place, SubCycle when);
  void forget_acknowledgement(std::uint32_t place);
  std::uint32_t keep(const Packet& packet);

  // gpu_messages.cpp: contributions to sums of routers
  void on_contributions(const GpuEvent& event);
  void on_chunk_sum(const Packet& packet, std::uint16_t bundle);
  void on_chunk_sum_at_l2(const Packet& packet, std::uint16_t bundle);
  void send_chunks();

  GpuId id_;
  GpuSpec spec_;
  ClockDomain clock_;
  GpuWork work_;
  Frontend frontend_;
  L2Cache l2_;
  LinkPorts ports_;
  MessageEndpoint message_;
  std::vector<MessageEndpoint::Sending> sending_;
  bool message_timer_runs_ = false;
  TimingWheel<GpuEvent> wheel_;

  SubCycle request_latency_;   // unit or link port to L2 slice
  SubCycle response_latency_;  // L2 slice to unit or link port
  SubCycle poll_wait_;         // from a change in L2 to the poll that sees it, on average
  SubCycle l1_latency_, l1_line_time_, barrier_latency_;
  SubCycle device_latency_, graph_node_;  // the latter: device_latency_, unless kernels are launched as graphs
  std::uint32_t private_units_ = 0;       // the first of them; 0: none
  std::optional<GpuPower> power_;

  // Compute units, then the copy engine of the host link, the NIC's DMA, copy engines between GPUs, the endpoint
  // engine, private compute units of communication.
  std::vector<Unit> units_;
  std::vector<Agent> agents_;
  std::vector<std::uint32_t> free_agents_, free_blocks_, free_running_, free_packets_;
  std::vector<Block> blocks_, left_;  // the latter are through and keep their places until their neighbours are
  std::vector<RunningKernel> running_;
  std::vector<std::uint32_t> active_;  // kernels with blocks to place, by priority and age
  std::vector<TimedKernel> timed_;
  std::vector<Flag> flags_;
  std::vector<KernelLedger> ledgers_;
  std::vector<Packet> packets_;
  Acknowledgements acknowledgements_;
  std::vector<OpId> ready_;
  std::vector<std::uint32_t> pushing_, flushing_;       // kernels that push sums; that wait for a fence at their end
  std::uint64_t remote_stores_ = 0, remote_loads_ = 0;  // issued so far, in lines
  std::uint64_t fenced_ = 0, fenced_done_ = 0, remote_left_out_ = 0;  // the former: of compute units
  // Events of the host and of operations; operations that nothing holds back, and that have not started.
  std::uint32_t control_due_ = 0, starting_ = 0;
  UnitOrder order_;
  GpcPorts gpc_ports_;
  std::uint32_t agents_placed_ = 0, launches_ = 0, flags_leaving_ = 0;  // the latter: to other GPUs, not sent yet
  std::uint32_t collectives_ = 0;                  // and kernels that push: started or about to be, until they end
  Time collective_notice_;                         // at least this long from being ready to the first message
  std::vector<std::uint32_t> parts_left_;          // by op: kernels of its script that have not ended
  LineAddress sram_first_line_ = ~LineAddress{0};  // the endpoint engine's memory lies behind HBM's addresses
  SubCycle distributor_free_ = 0, sram_line_time_ = 0, sram_latency_ = 0, sram_free_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> partial_sums_;  // by group and line: contributions that have come
  GpuStatistics statistics_;
  std::vector<ResidentTraffic> residents_;
  std::optional<WaveSkip> waves_, rounds_;  // of the kernel that runs by itself: of blocks, of those that run
  std::uint64_t rounds_done_ = 0, rounds_of_block_ = 0;  // since it does; of a block at its end, if it computes nothing
  std::uint64_t block_changes_ = 0;                      // blocks begun and ended, at the last mark of rounds
  std::vector<RoundRate> round_rates_;                   // by agent
  GpuProgress skipped_;
  double skip_variance_ = 0;
  BinnedHbm binned_;
};

void run_alone(Gpu& gpu);  // without engine or links, until nothing is left for it to do

}  // namespace weft
