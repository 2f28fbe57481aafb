#include "gpu_model/gpu.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "gpu_model/gpu_values.h"
#include "sim/error.h"
#include "sim/prefetch.h"

namespace weft {

namespace {
// Of an L2 hit's latency, the share of the way there: the request crosses the crossbar, the answer crosses it with the
// data. Measured sums do not tell the two apart; a model choice that only shifts waiting between them.
constexpr double kRequestShare = 0.4;

SubCycle hit_latency(const GpuSpec& spec) { return cycles(std::int64_t{spec.l2.hit_latency_cycles}); }
}  // namespace

Gpu::Gpu(GpuId id, const GpuSpec& spec, const GpuWork& work, LinkPorts ports, MessageEndpointSpec message)
    : id_(id),
      spec_(spec),
      clock_(spec.clock),
      work_(work),
      frontend_(*work.program, spec.launch, work.host, clock_, work.from),
      l2_(spec.l2, spec.hbm, spec.clock),
      ports_(std::move(ports)),
      message_(std::move(message)),
      request_latency_(static_cast<SubCycle>(static_cast<double>(hit_latency(spec)) * kRequestShare)),
      l1_latency_(cycles(std::int64_t{spec.compute_unit.l1_latency_cycles})),
      l1_line_time_(cycles(static_cast<double>(kLineBytes) / spec.compute_unit.l1_bytes_per_cycle)),
      barrier_latency_(cycles(std::int64_t{spec.compute_unit.barrier_cycles})),
      device_latency_(clock_.to_subcycles(spec.launch.device_latency)),
      graph_node_(work.host.cuda_graph ? clock_.to_subcycles(spec.launch.graph_node) : device_latency_),
      flags_(work.flags),
      ledgers_(work.program->ops.size() + work.residents.size()),
      parts_left_(work.program->ops.size() + work.residents.size(), 0),
      residents_(work.residents.size()) {
  acknowledgements_.first.fill(kNoAcknowledgement);
  if (id.value >= HbmOverTime::kMostGpus) binned_.end = std::numeric_limits<std::int64_t>::max();  // it has no bins
  const SubCycle slice_time = cycles(static_cast<double>(kLineBytes) / spec.l2.bytes_per_cycle);
  response_latency_ = hit_latency(spec) - request_latency_ - slice_time;
  WEFT_CHECK(response_latency_ > 0, "the latency of an L2 hit is below its service time");
  WEFT_CHECK(work.flags < kMaxFlags, "more flags than events can tell apart");
  // A thread that polls has one load under way: the next one comes half a round trip after the change, on average.
  poll_wait_ = hit_latency(spec) / 2;
  const ComputeUnitSpec& unit = spec.compute_unit;
  const SubCycle line_time = cycles(static_cast<double>(kLineBytes) / unit.l2_bytes_per_cycle);
  const double store_rate = unit.store_bytes_per_cycle > 0 ? unit.store_bytes_per_cycle : unit.l2_bytes_per_cycle;
  if (spec.gpc_bytes_per_cycle > 0) {
    gpc_ports_.line_time = cycles(static_cast<double>(kLineBytes) / spec.gpc_bytes_per_cycle);
    gpc_ports_.free.resize(spec.gpcs);
  }
  const SubCycle store_time = cycles(static_cast<double>(kLineBytes) / store_rate);
  const WarpSchedulers schedulers(unit.schedulers, unit.policy);
  for (std::uint32_t u = 0; u < spec.compute_units; ++u) {
    units_.emplace_back(unit, spec.l2.tlb, schedulers, cycles(std::int64_t{spec.grain}), line_time, store_time);
  }
  order_.units = units_in_order(spec);
  for (std::uint32_t gpc = 0; gpc <= spec.gpcs; ++gpc) order_.gpc_units.push_back(first_unit_of_gpc(spec, gpc));
  for (std::uint32_t gpc = 0; gpc < spec.gpcs; ++gpc) order_.gpc_of.resize(order_.gpc_units[gpc + 1], gpc);
  for (std::uint32_t u = spec.compute_units / 2; u < spec.compute_units; ++u) units_[u].partition = 1;
  for (Unit& u : units_) {
    u.to_links = request_latency_;
    u.from_links = response_latency_;
    u.store_credits = StoreCredits(response_latency_);
  }
  add_engines();
  if (work.private_parts.compute_units) {
    private_units_ = static_cast<std::uint32_t>(units_.size());
    for (std::uint32_t u = 0; u < spec.compute_units; ++u) units_.emplace_back(units_[u]);
  }
  units_.shrink_to_fit();
  if (spec.power) power_.emplace(*spec.power, *this);
  l2_.make_private(work.private_parts.cache, work.private_parts.hbm);
  SubCycle notice = std::numeric_limits<SubCycle>::max();
  for (const ScriptedKernel* script : work.scripts) {
    if (script == nullptr || script->blocks() == 0) continue;
    notice = std::min(notice, script->start_latency + units_[engine_unit(script->executor, 0)].to_links);
  }
  if (std::ranges::any_of(work.pushes, [](const PushedOutput* pushed) { return pushed != nullptr; })) {
    notice = std::min(notice, request_latency_);
  }
  const bool talks = notice != std::numeric_limits<SubCycle>::max();
  // A GPU that never talks needs no short windows; progress is reported between windows, so they are not endless.
  collective_notice_ = talks ? clock_.to_time(notice + std::min(device_latency_, graph_node_)) : microseconds(20);
  if (work.from == nullptr) {
    start_residents();
    if (const auto first = frontend_.first_step()) push_control(*first, GpuEvent{.kind = EventKind::host_step});
    return;
  }
  for (std::uint32_t i = work.from->first.value; i < work.from->issued; ++i) {
    if (work.program->ops[i].kind == ProgramOpKind::host_wait || had_ended(*work.program, *work.from, i)) continue;
    push_control(work.from->arrivals[i - work.from->first.value], GpuEvent{.kind = EventKind::op_arrives, .agent = i});
  }
  if (work.from->next_step) push_control(*work.from->next_step, GpuEvent{.kind = EventKind::host_step});
}

Time Gpu::next_activity() const {
  const std::int64_t tick = wheel_.next();
  return tick == TimingWheel<GpuEvent>::kNever ? Time::max() : clock_.to_time(cycles(tick));
}

Time Gpu::silent_until(Time now) const {
  // Packets that wait in the transmitters leave when credits come: those are messages it receives.
  return collectives_ > 0 || flags_leaving_ > 0 ? now : now + collective_notice_;
}

void Gpu::advance(Time until) {
  ports_.receive([&](const Packet& packet, std::uint32_t bundle) {
    // Requests cross the crossbar to L2, answers go to their unit, data for the SRAM is there.
    const bool crosses = virtual_channel(packet.kind) == VirtualChannel::request && !in_sram(packet.line);
    const SubCycle crossing = crosses ? request_latency_ : 0;
    push(std::max(clock_.to_subcycles(packet.when), now()) + crossing,
         GpuEvent{.kind = EventKind::ingress,
                  .lines = static_cast<std::uint8_t>(crosses ? packet.payload / kLineBytes : 0),
                  .gpu = static_cast<std::uint16_t>(bundle),
                  .line = packet.line,
                  .agent = keep(packet)});
  });
  const std::int64_t end = tick_at_or_after(clock_.to_subcycles(until));
  if (among_many()) wheel_.announce_until(end, [this](const GpuEvent& event) { announce(event); });
  if (id_.value < HbmOverTime::kMostGpus || power_) {
    for (std::int64_t tick = wheel_.next(); tick < end; tick = wheel_.next()) {
      if (tick >= binned_.end) next_bin(tick);
      if (power_ && tick >= power_->window_end()) power_->next_window(*this, tick);
      run_events(std::min({binned_.end, power_ ? power_->window_end() : end, end}));
    }
  }
  run_events(end);
}

void Gpu::run_events(std::int64_t end) {
  wheel_.run_until(end, [this](const GpuEvent& event) { handle(event); });
}

void Gpu::announce(const GpuEvent& event) const {
  switch (event.kind) {
    case EventKind::load_at_l2:
    case EventKind::load_for_l1_at_l2:
    case EventKind::store_at_l2:
    case EventKind::atomic_at_l2:
    case EventKind::fetch_atomic_at_l2:
      l2_.prefetch(event.line, event.lines);
      break;
    case EventKind::ingress:
      prefetch_line(&packets_[event.agent]);
      l2_.prefetch(event.line, event.lines);
      break;
    case EventKind::egress_reply:
      prefetch_line(&packets_[event.agent]);
      break;
    default:
      break;
  }
}

void Gpu::handle(const GpuEvent& event) {
  switch (event.kind) {
    case EventKind::load_at_l2:
    case EventKind::load_for_l1_at_l2:
      on_load_at_l2(event);
      return;
    case EventKind::store_at_l2:
      on_store_at_l2(event);
      return;
    case EventKind::atomic_at_l2:
      on_atomic_at_l2(event, false);
      return;
    case EventKind::fetch_atomic_at_l2:
      on_atomic_at_l2(event, true);
      return;
    case EventKind::load_at_sram:
      if (work_.values != nullptr) work_.values->loaded(event.agent, event.line, event.lines);
      push(access_sram(event.lines) + sram_latency_,
           GpuEvent{.kind = EventKind::response, .lines = event.lines, .agent = event.agent});
      return;
    case EventKind::store_at_sram:
      if (work_.values != nullptr) work_.values->stored(event.agent, event.line, event.lines);
      stores_done(event.agent, event.lines, access_sram(event.lines));
      return;
    case EventKind::flag_at_l2:
      ++statistics_.flags_come;
      count_flag(event.line);
      return;
    case EventKind::response:
      on_response(event);
      return;
    case EventKind::l1_fill:
      on_l1_fill(event);
      return;
    case EventKind::computed:
      on_computed(event);
      return;
    case EventKind::slot_free:
      on_slot_free(event.agent);
      return;
    case EventKind::resume:
      run_agent(event.agent);
      return;
    case EventKind::egress:
      on_egress(event);
      return;
    case EventKind::egress_reply:
      submit(packets_[event.agent], event.gpu);
      free_packets_.push_back(event.agent);
      return;
    case EventKind::ingress: {
      const Packet packet = packets_[event.agent];
      free_packets_.push_back(event.agent);
      on_ingress(packet, event.gpu);
      return;
    }
    case EventKind::chunk_sum_at_l2: {
      const Packet packet = packets_[event.agent];
      free_packets_.push_back(event.agent);
      on_chunk_sum_at_l2(packet, event.gpu);
      return;
    }
    case EventKind::message_timeout:
      message_timer_runs_ = false;
      message_.send_again(clock_.to_time(now()), sending_);
      send_chunks();
      return;
    case EventKind::flush_acknowledge:
      acknowledgements_.all[event.agent].timer_runs = false;
      flush_acknowledge(event.agent, now());
      forget_acknowledgement(event.agent);
      return;
    case EventKind::store_credit: {
      Unit& unit = units_[event.agent];
      if (event.lines == 0) unit.looks_for_credits = false;
      unit.stores_out -= event.lines + unit.store_credits.take(now());
      wake(unit.store_waiters, unit.stores_out, unit.store_limit);
      if (!unit.store_waiters.empty()) look_for_credits(event.agent);
      return;
    }
    case EventKind::host_step:
      --control_due_;
      host_step();
      return;
    case EventKind::op_arrives:
      --control_due_;
      if (frontend_.arrived(OpId{event.agent})) make_ready(OpId{event.agent});
      return;
    case EventKind::op_starts:
      --control_due_;
      start_op(OpId{event.agent});
      return;
    case EventKind::kernel_launched:
      --control_due_;
      start_kernel(OpId{event.agent}, &work_.scripts[event.agent]->launched.at(event.line));
      return;
    case EventKind::op_ends:
      --control_due_;
      end_op(event.agent);
      return;
    case EventKind::timed_ends:
      end_timed();
      return;
  }
}

void run_alone(Gpu& gpu) {
  for (Time next = gpu.next_activity(); next != Time::max(); next = gpu.next_activity()) {
    gpu.advance(next + microseconds(100));
  }
}

}  // namespace weft
