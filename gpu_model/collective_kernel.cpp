#include "gpu_model/collective_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "gpu_model/engine_programs.h"
#include "gpu_model/in_switch_programs.h"
#include "gpu_model/phase_lines.h"
#include "gpu_model/schedule_programs.h"
#include "network/collective_algorithm.h"
#include "network/tuner.h"
#include "sim/error.h"

namespace weft {

namespace {

std::uint32_t lines_per_round(const CollectiveSpec& library) {
  return std::max(1U, library.bytes_in_flight_per_warp / kLineBytes);
}

// The schedule for an algorithm the user may ask for: where the collective does not have it, the usual one.
CollectiveAlgorithm schedule_algorithm(AllReduceAlgorithm algorithm, CollectiveKind kind) {
  const auto wanted = [&] {
    switch (algorithm) {
      case AllReduceAlgorithm::tree:
        return CollectiveAlgorithm::tree;
      case AllReduceAlgorithm::double_binary_tree:
        return CollectiveAlgorithm::double_binary_tree;
      case AllReduceAlgorithm::halving_doubling:
        return CollectiveAlgorithm::halving_doubling;
      case AllReduceAlgorithm::direct:
        return CollectiveAlgorithm::direct;
      case AllReduceAlgorithm::hierarchical:
        return CollectiveAlgorithm::hierarchical;
      default:
        return usual_algorithm(kind);
    }
  }();
  return supports(wanted, kind) ? wanted : usual_algorithm(kind);
}

// The size nccl-tests reports: the larger of what a rank gives and gets.
std::int64_t reported_bytes(const CollectiveDemand& demand) {
  const auto ranks = static_cast<std::int64_t>(demand.group.size());
  return demand.bytes.count() * (demand.kind == CollectiveKind::all_gather ? ranks : 1);
}

// Of a registered block, two warps synchronise.
std::uint32_t registered_warps(const InSwitchSpec& spec) { return spec.reduce_warps + 2 * spec.copy_warps - 2; }

CollectivePlan plan_in_switch(const CollectiveContext& context, const CollectiveDemand& demand, bool registered,
                              std::uint32_t channels, std::uint32_t warps, std::uint32_t first_flag) {
  const CollectiveSpec& library = *context.library;
  InSwitchPlace place;
  place.spec = library.in_switch;
  place.spec.channels = channels;
  place.registered = registered;
  place.registered_warps = warps;
  place.ranks = static_cast<std::uint32_t>(demand.group.size());
  place.lines_per_round = lines_per_round(library);
  place.fence = ClockDomain(context.gpu->clock).to_subcycles(library.fence);
  place.poll = ClockDomain(context.gpu->clock).to_subcycles(library.in_switch.poll);
  place.send_address = static_cast<std::int64_t>(demand.send_address);
  place.receive_address = static_cast<std::int64_t>(demand.receive_address);
  place.buffer = context.gpu->hbm.bytes - in_switch_buffer_bytes(place.spec, place.ranks);
  place.first_flag = first_flag;
  const InSwitchSchedule schedule(demand.bytes.count(), place.ranks, channels);
  CollectivePlan plan{"in_switch", to_string(CollectiveProtocol::simple), channels, in_switch_flags(place.spec), {}};
  for (std::uint32_t rank = 0; rank < place.ranks; ++rank) {
    ScriptedKernel kernel;
    kernel.threads_per_block = in_switch_threads(library.in_switch);
    kernel.programs = in_switch_programs(place, schedule, rank);
    plan.ranks.push_back(std::move(kernel));
  }
  return plan;
}

bool has_ring_orders(const CollectiveContext& context, const CollectiveDemand& demand) {
  return context.ring_orders && demand.group.size() == context.gpus;
}

CollectivePlan plan_schedule(const CollectiveContext& context, const CollectiveDemand& demand,
                             CollectiveAlgorithm algorithm, const TunerChoice& choice, SchedulePlace place) {
  place.group = demand.group;
  place.input_address = static_cast<std::int64_t>(demand.send_address);
  place.output_address = static_cast<std::int64_t>(demand.receive_address);
  const auto ranks = static_cast<std::uint32_t>(demand.group.size());
  std::int64_t element = bytes_per_element(demand.type);
  if (demand.bytes.count() % element != 0) element = 1;  // of a trace whose type is not known
  const ScheduleRequest request{.kind = demand.kind,
                                .bytes = demand.bytes.count(),
                                .element_bytes = element,
                                .ranks = ranks,
                                .channels = choice.channels,
                                .piece_bytes = place.protocol.piece_bytes,
                                .pieces_per_chunk = place.protocol.pieces_per_chunk,
                                .chunk_unit = place.protocol.chunk_unit,
                                .chunk_order = place.protocol.chunk_order,
                                .ring_orders = has_ring_orders(context, demand) ? context.ring_orders : nullptr};
  std::shared_ptr<const CollectiveSchedule> schedule = make_schedule(algorithm, request);
  const auto layout = std::make_shared<const ScheduleLayout>(schedule, place);
  CollectivePlan plan{to_string(algorithm), to_string(choice.protocol), choice.channels, layout->flags(), {}};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    ScriptedKernel kernel;
    kernel.threads_per_block = place.protocol.threads + place.protocol.extra_threads;
    kernel.programs = schedule_programs(layout, rank);
    plan.ranks.push_back(std::move(kernel));
  }
  return plan;
}

bool in_switch_is_possible(const CollectiveContext& context, const CollectiveDemand& demand,
                           AllReduceAlgorithm algorithm) {
  const bool possible =
      context.switch_reduces && demand.kind == CollectiveKind::all_reduce && demand.group.size() == context.gpus;
  if (!possible && algorithm == AllReduceAlgorithm::in_switch && demand.kind == CollectiveKind::all_reduce) {
    throw InputError(
        fmt::format("in_switch: expected a reducing switch and a group of all {} GPUs, got {} and a group "
                    "of {}",
                    context.gpus, context.switch_reduces ? "one" : "none", demand.group.size()));
  }
  return possible;
}

CollectivePlan plan_on_compute_units(const CollectiveContext& context, const CollectiveDemand& demand,
                                     const CollectiveWish& wish, std::uint32_t first_flag) {
  const CollectiveSpec& library = *context.library;
  AllReduceAlgorithm wanted = wish.algorithm;
  if (demand.kind != CollectiveKind::all_reduce && wanted == AllReduceAlgorithm::in_switch) {
    wanted = AllReduceAlgorithm::automatic;
  }
  const TunerQuery query{demand.kind,
                         reported_bytes(demand),
                         static_cast<std::uint32_t>(demand.group.size()),
                         context.links_per_gpu,
                         static_cast<double>(context.link.count()) * 1e-9,
                         in_switch_is_possible(context, demand, wish.algorithm)};
  TunerChoice choice = choose(library, query, wanted, wish.protocol, wish.channels);
  const ClockDomain clock(context.gpu->clock);
  const bool registered = wish.registered || library.in_switch.registered;
  Time start = library.base_latency;
  CollectivePlan plan;
  if (choice.algorithm == AllReduceAlgorithm::in_switch) {
    start = start + library.in_switch.start_latency;
    const bool fewer = registered && wish.channels == 0;
    plan = plan_in_switch(context, demand, registered, fewer ? library.in_switch.registered_channels : choice.channels,
                          registered_warps(library.in_switch), first_flag);
  } else {
    const CollectiveAlgorithm algorithm = schedule_algorithm(choice.algorithm, demand.kind);
    const bool is_ring = algorithm == CollectiveAlgorithm::ring;
    if (is_ring && wish.channels == 0 && has_ring_orders(context, demand)) {
      // As NCCL duplicates its rings: of all channels, each order gets as many. Short messages take the first few.
      const std::uint32_t orders = context.ring_orders->cycles();
      const std::uint32_t most = std::max(1U, library.ring.channels / orders) * orders;
      choice.channels = std::min(choice.channels, most);
    }
    SchedulePlace place;
    place.gpu = context.gpu;
    place.protocol = protocol_shape(library, choice.protocol, is_ring);
    place.fence = clock.to_subcycles(library.fence);
    place.adds_per_cycle = fp32_adds_per_cycle(*context.gpu);
    place.registered = registered && is_ring && choice.protocol == CollectiveProtocol::simple;
    place.buffer_end = context.gpu->hbm.bytes;
    place.first_flag = first_flag;
    plan = plan_schedule(context, demand, algorithm, choice, std::move(place));
  }
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
  if (wish.algorithm == AllReduceAlgorithm::in_switch && in_switch_is_possible(context, demand, wish.algorithm)) {
    plan = plan_in_switch(context, demand, true, machines, std::max(1U, lines / lines_per_round(*context.library)),
                          first_flag);
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
    plan = plan_schedule(context, demand, CollectiveAlgorithm::ring, choice, std::move(place));
  }
  for (ScriptedKernel& kernel : plan.ranks) {
    kernel.executor = Executor::endpoint_engine;
    kernel.start_latency = ClockDomain(context.gpu->clock).to_subcycles(engine.start);
  }
  return plan;
}

CollectivePlan plan_on_dma_engines(const CollectiveContext& context, const CollectiveDemand& demand,
                                   const CollectiveWish& wish, std::uint32_t first_flag) {
  using Planner = ScriptedKernel (*)(const EnginePlace&);
  const bool near_memory = wish.mover == Mover::near_memory;
  const auto planner = [&]() -> Planner {
    switch (demand.kind) {
      case CollectiveKind::all_reduce:
        return near_memory ? near_memory_all_reduce : copy_engine_all_reduce;
      case CollectiveKind::all_gather:
        return near_memory ? nullptr : copy_engine_all_gather;
      case CollectiveKind::all_to_all:
        return near_memory ? nullptr : copy_engine_all_to_all;
      case CollectiveKind::broadcast:
        return near_memory ? nullptr : copy_engine_broadcast;
      default:
        return nullptr;
    }
  }();
  const char* mover = to_string(wish.mover);
  if (planner == nullptr || wish.algorithm == AllReduceAlgorithm::in_switch) {
    throw InputError(fmt::format("mover {}: expected {} by another algorithm than in_switch, got {}", mover,
                                 near_memory ? "an all_reduce" : "an all_reduce, all_gather, all_to_all or broadcast",
                                 to_string(demand.kind)));
  }
  if (demand.send_address != demand.receive_address) {
    throw InputError(fmt::format("mover {}: expected a collective in place, got two buffers", mover));
  }
  EnginePlace place;
  place.gpu = context.gpu;
  place.library = context.library;
  place.group = demand.group;
  place.address = static_cast<std::int64_t>(demand.receive_address);
  place.bytes = reported_bytes(demand);
  place.buffer_end = context.gpu->hbm.bytes;
  place.first_flag = first_flag;
  const std::uint32_t flags = near_memory ? near_memory_flags(place) : copy_engine_flags(place);
  CollectivePlan plan{near_memory ? "ring" : "direct", to_string(CollectiveProtocol::simple), 0, flags, {}};
  for (place.rank = 0; place.rank < demand.group.size(); ++place.rank) plan.ranks.push_back(planner(place));
  plan.channels = plan.ranks.front().blocks();
  return plan;
}

}  // namespace

const char* to_string(Mover mover) {
  switch (mover) {
    case Mover::compute_units:
      return "compute_units";
    case Mover::copy_engine:
      return "copy_engine";
    case Mover::endpoint_engine:
      return "endpoint_engine";
    case Mover::near_memory:
      return "near_memory";
  }
  throw InternalError("unknown mover");
}

std::int64_t communication_buffer_bytes(const CollectiveSpec& library, std::uint32_t gpus) {
  const std::int64_t ring = library.ring.channels * library.ring.buffer_bytes;
  return std::max(ring, in_switch_buffer_bytes(library.in_switch, gpus));
}

CollectivePlan plan_collective(const CollectiveContext& context, const CollectiveDemand& demand,
                               const CollectiveWish& wish, std::uint32_t first_flag) {
  if (demand.group.size() < 2) throw InputError("a collective: expected a group of at least 2 GPUs");
  if (wish.mover == Mover::compute_units) return plan_on_compute_units(context, demand, wish, first_flag);
  if (!context.gpu->engines) {
    throw InputError(fmt::format("mover {}: expected a GPU with engines (gpu.engines), got {} without",
                                 to_string(wish.mover), context.gpu->name));
  }
  if (wish.mover == Mover::endpoint_engine) return plan_on_endpoint_engine(context, demand, wish, first_flag);
  return plan_on_dma_engines(context, demand, wish, first_flag);
}

}  // namespace weft
