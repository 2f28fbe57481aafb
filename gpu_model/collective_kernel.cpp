#include "gpu_model/collective_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "gpu_model/coarse_programs.h"
#include "gpu_model/collective_choice.h"
#include "gpu_model/dma_collectives.h"
#include "gpu_model/in_switch_plan.h"
#include "gpu_model/in_switch_programs.h"
#include "gpu_model/message_programs.h"
#include "gpu_model/nic_programs.h"
#include "gpu_model/occupancy.h"
#include "gpu_model/phase_lines.h"
#include "gpu_model/schedule_programs.h"
#include "network/collective_algorithm.h"
#include "network/group_rings.h"
#include "network/tuner.h"
#include "sim/error.h"

namespace weft {

namespace {

TreePieces tree_pieces(CollectiveProtocol protocol) {
  if (protocol == CollectiveProtocol::simple) return TreePieces::by_depth;
  return protocol == CollectiveProtocol::ll128 ? TreePieces::by_nodes : TreePieces::whole;
}

ScheduleRequest request_of(const CollectiveContext& context, const CollectiveDemand& demand, const CollectiveWish& wish,
                           const TunerChoice& choice, const ProtocolShape& protocol, const NodesOfGroup& nodes) {
  std::int64_t element = bytes_per_element(demand.type);
  if (demand.bytes.count() % element != 0) element = 1;  // of a trace whose type is not known
  const std::uint32_t per_node = wish.ranks_per_node > 0 ? wish.ranks_per_node : nodes.in_each();
  return {.kind = demand.kind,
          .bytes = demand.bytes.count(),
          .element_bytes = element,
          .ranks = static_cast<std::uint32_t>(demand.group.size()),
          .root = demand.root,
          .distance = demand.distance,
          .first = demand.first,
          .channels = choice.channels,
          .channels_to_peer = choice.channels_to_peer,
          .piece_bytes = protocol.piece_bytes,
          .pieces_per_chunk = protocol.pieces_per_chunk,
          .chunk_unit = wish.alike_ranks ? std::int64_t{kLineBytes} : protocol.chunk_unit,
          .chunk_order = protocol.chunk_order,
          .tree_pieces = tree_pieces(choice.protocol),
          .ranks_per_node = per_node,
          .first_ranks = per_node > 0 ? std::vector<std::uint32_t>() : nodes.first_ranks,
          .alike_trees = wish.alike_ranks && protocol.inline_flags,
          .ring_orders = context.ring_orders};
}

CollectivePlan plan_schedule(const CollectiveDemand& demand, std::shared_ptr<const CollectiveSchedule> schedule,
                             const std::string& algorithm, CollectiveProtocol protocol, SchedulePlace place) {
  if (schedule->in_place() && demand.send_address != demand.receive_address) {
    throw InputError(fmt::format("{}: expected a collective in place, got two buffers", algorithm));
  }
  place.group = demand.group;
  place.input_address = static_cast<std::int64_t>(demand.send_address);
  place.output_address = static_cast<std::int64_t>(demand.receive_address);
  const std::uint32_t ranks = schedule->ranks();
  std::uint32_t blocks = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) blocks = std::max(blocks, schedule->blocks(rank));
  const auto layout = std::make_shared<const ScheduleLayout>(std::move(schedule), place);
  CollectivePlan plan{algorithm, to_string(protocol), blocks, layout->flags(), {}, {}, false};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    ScriptedKernel kernel;
    kernel.threads_per_block = place.protocol.threads + place.protocol.extra_threads;
    kernel.programs = schedule_programs(layout, rank);
    plan.ranks.push_back(std::move(kernel));
  }
  return plan;
}

// Of a registered block, two warps synchronise.
std::uint32_t registered_warps(const InSwitchSpec& spec) { return spec.reduce_warps + 2 * spec.copy_warps - 2; }

CollectivePlan plan_by_schedule(const CollectiveContext& context, const CollectiveDemand& demand,
                                const CollectiveWish& wish, const CollectiveChoice& choice, const NodesOfGroup& nodes,
                                std::uint32_t first_flag) {
  const CollectiveSpec& library = *context.library;
  const ClockDomain clock(context.gpu->clock);
  const bool sends = !choice.user && is_point_to_point(demand.kind);
  SchedulePlace place;
  place.gpu = context.gpu;
  place.protocol = choice.shape;
  place.fence = clock.to_subcycles(library.fence);
  place.node_latency = clock.to_subcycles(context.node_latency) + staging_time(*context.gpu);
  if (context.nic_GBps > 0) place.gpus_per_node = context.gpus_per_node;
  if (library.pxn && sends) place.gpus_per_nic = context.gpus_per_nic;
  place.nic_line = nic_line_time(*context.gpu, context.nic_GBps);
  place.values_travel = context.values_travel;
  place.proxy_latency = clock.to_subcycles(place.protocol.proxy_latency);
  place.adds_per_cycle = fp32_adds_per_cycle(*context.gpu);
  const bool simple_ring = choice.is_ring && choice.tuned.protocol == CollectiveProtocol::simple;
  place.registered = choice.registered && simple_ring;
  // NCCL src/transport/p2p.cc, P2P_DIRECT: only where senders write, and of these collectives (src/device).
  const bool direct = demand.kind == CollectiveKind::all_reduce || demand.kind == CollectiveKind::all_gather;
  if (direct && simple_ring && !library.ring.receiver_reads) place.gpus_per_process = context.gpus_per_process;
  place.buffer_end = context.gpu->hbm.bytes;
  place.first_flag = first_flag;
  const ScheduleRequest request = request_of(context, demand, wish, choice.tuned, place.protocol, nodes);
  const CollectiveAlgorithm algorithm = schedule_for(choice.tuned.algorithm, demand.kind);
  return plan_schedule(
      demand, choice.user ? make_user_schedule(wish.user_algorithm, request) : make_schedule(algorithm, request),
      choice.user ? wish.user_algorithm->name : to_string(algorithm), choice.tuned.protocol, std::move(place));
}

CollectivePlan plan_on_compute_units(const CollectiveContext& context, const CollectiveDemand& demand,
                                     const CollectiveWish& wish, std::uint32_t first_flag) {
  const CollectiveSpec& library = *context.library;
  const NodesOfGroup nodes = nodes_of_group(demand.group, context.gpus_per_node);
  const CollectiveChoice choice = choose_collective(context, demand, wish, nodes);
  CollectiveDemand cut = demand;
  cut.bytes = choice.bytes;
  Time start = library.base_latency;
  CollectivePlan plan;
  if (choice.tuned.algorithm == AllReduceAlgorithm::in_switch) {
    start = start + library.in_switch.start_latency;
    plan = plan_in_switch(context, cut, wish, choice.registered, choice.tuned.channels,
                          registered_warps(library.in_switch), first_flag);
  } else {
    plan = plan_by_schedule(context, cut, wish, choice, nodes, first_flag);
  }
  plan.fell_back = choice.fell_back;
  const ClockDomain clock(context.gpu->clock);
  for (ScriptedKernel& kernel : plan.ranks) {
    kernel.registers_per_thread = library.registers_per_thread;
    kernel.shared_memory_bytes = library.shared_memory_bytes;
    kernel.start_latency = clock.to_subcycles(start);
  }
  return plan;
}

// The library's ring, between the engines' memories: a chunk is read once, added to on its way, and written once. The
// hardware counts what has come, so nothing is fenced.
CollectivePlan plan_on_endpoint_engine(const CollectiveContext& context, const CollectiveDemand& demand,
                                       const CollectiveWish& wish, std::uint32_t first_flag) {
  const EndpointEngineSpec& engine = context.gpu->engines->endpoint_engine;
  const std::uint32_t machines = wish.channels > 0 ? wish.channels : engine.state_machines;
  const std::uint32_t lines = std::max(2U, engine.max_outstanding_lines / machines);  // in flight, of each
  CollectivePlan plan;
  const bool in_switch =
      wish.algorithm == AllReduceAlgorithm::in_switch && in_switch_is_possible(context, demand, wish.algorithm, true);
  if (in_switch && context.switch_fault.empty()) {
    plan = plan_in_switch(context, demand, wish, true, machines,
                          std::max(1U, lines / lines_per_round(*context.library)), first_flag);
  } else {
    if (!supports(CollectiveAlgorithm::ring, demand.kind)) {
      throw InputError(
          fmt::format("mover endpoint_engine: expected a collective that a ring does, got {}", to_string(demand.kind)));
    }
    SchedulePlace place;
    place.gpu = context.gpu;
    ProtocolShape& shape = place.protocol;
    shape.lines_per_round = std::min(16U, lines / 2);
    shape.threads = 32 * std::max(1U, lines / 2 / shape.lines_per_round);  // its rounds in flight, of two sources
    shape.slot_bytes = engine.sram_bytes / machines / shape.slots / kLineBytes * kLineBytes;
    shape.piece_bytes = shape.slot_bytes;
    shape.pieces_per_chunk = 2;  // one comes while the other is passed on
    shape.inline_flags = true;
    if (shape.slot_bytes == 0) throw InputError("mover endpoint_engine: expected sram_bytes for a line a slot");
    place.adds_per_cycle = engine.adds_per_cycle;
    place.buffer_end = context.gpu->hbm.bytes + engine.sram_bytes;
    place.first_flag = first_flag;
    const TunerChoice choice{AllReduceAlgorithm::ring, CollectiveProtocol::simple, machines};
    const NodesOfGroup nodes = nodes_of_group(demand.group, context.gpus_per_node);
    const ScheduleRequest request = request_of(context, demand, wish, choice, place.protocol, nodes);
    plan = plan_schedule(demand, make_schedule(CollectiveAlgorithm::ring, request),
                         to_string(CollectiveAlgorithm::ring), choice.protocol, std::move(place));
    plan.fell_back = in_switch;
  }
  for (ScriptedKernel& kernel : plan.ranks) {
    kernel.executor = Executor::endpoint_engine;
    kernel.start_latency = ClockDomain(context.gpu->clock).to_subcycles(engine.start);
  }
  return plan;
}

}  // namespace

const char* to_string(Mover mover) {
  constexpr std::array kNames{"compute_units", "copy_engine", "endpoint_engine", "near_memory"};
  return kNames.at(static_cast<std::size_t>(mover));
}

std::int64_t communication_buffer_bytes(const CollectiveSpec& library, std::uint32_t gpus, std::uint32_t gpus_per_node,
                                        bool in_switch) {
  const bool nodes = gpus > gpus_per_node;
  const std::uint32_t leaving = nodes ? (library.ring.channels + gpus_per_node - 1) / gpus_per_node : 0;
  const std::int64_t ring = (library.ring.channels + leaving) * library.ring.buffer_bytes;
  if (!in_switch) return ring;
  return std::max(ring, in_switch_buffer_bytes(library.in_switch, std::min(gpus, gpus_per_node), nodes ? 2 : 1));
}

namespace {
CollectivePlan plan_of_mover(const CollectiveContext& context, const CollectiveDemand& demand,
                             const CollectiveWish& wish, std::uint32_t first_flag) {
  if (demand.group.size() < 2) throw InputError("a collective: expected a group of at least 2 GPUs");
  if (wish.algorithm == AllReduceAlgorithm::in_network) {
    if (wish.mover != Mover::compute_units) {
      throw InputError(fmt::format("in_network: expected the mover compute_units, got {}", to_string(wish.mover)));
    }
    if (demand.kind == CollectiveKind::all_reduce) return plan_in_network(context, demand, wish);
    CollectiveWish usual = wish;
    usual.algorithm = AllReduceAlgorithm::automatic;
    return plan_on_compute_units(context, demand, usual, first_flag);
  }
  if (wish.mover == Mover::compute_units) return plan_on_compute_units(context, demand, wish, first_flag);
  if (!context.gpu->engines) {
    throw InputError(fmt::format("mover {}: expected a GPU with engines (gpu.engines), got {} without",
                                 to_string(wish.mover), context.gpu->name));
  }
  if (wish.mover == Mover::endpoint_engine) return plan_on_endpoint_engine(context, demand, wish, first_flag);
  return plan_on_dma_engines(context, demand, wish, first_flag);
}
}  // namespace

CollectivePlan plan_collective(const CollectiveContext& context, const CollectiveDemand& demand,
                               const CollectiveWish& wish, std::uint32_t first_flag) {
  CollectivePlan plan = plan_of_mover(context, demand, wish, first_flag);
  const std::string whose = fmt::format("collectives: {} by {}", plan.algorithm, plan.protocol);
  for (ScriptedKernel& rank : plan.ranks) {
    if (rank.executor == Executor::compute_units) {
      needs_that_fit(*context.gpu, whose, rank.threads_per_block, rank.registers_per_thread, rank.shared_memory_bytes);
    }
    if (wish.grain > 1) rank.programs = coarse(std::move(rank.programs), wish.grain);
  }
  return plan;
}

}  // namespace weft
