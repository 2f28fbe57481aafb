#include "gpu_model/collective_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "gpu_model/in_switch_programs.h"
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

CollectivePlan plan_in_switch(const CollectiveContext& context, const CollectiveDemand& demand,
                              const TunerChoice& choice, std::uint32_t first_flag) {
  const CollectiveSpec& library = *context.library;
  InSwitchPlace place;
  place.spec = library.in_switch;
  place.spec.channels = choice.channels;
  place.ranks = static_cast<std::uint32_t>(demand.group.size());
  place.lines_per_round = lines_per_round(library);
  place.fence = ClockDomain(context.gpu->clock).to_subcycles(library.fence);
  place.send_address = static_cast<std::int64_t>(demand.send_address);
  place.receive_address = static_cast<std::int64_t>(demand.receive_address);
  place.buffer = context.gpu->hbm.bytes - in_switch_buffer_bytes(place.spec, place.ranks);
  place.first_flag = first_flag;
  const InSwitchSchedule schedule(demand.bytes.count(), place.ranks, choice.channels);
  CollectivePlan plan{"in_switch", to_string(choice.protocol), choice.channels, in_switch_flags(place.spec), {}};
  for (std::uint32_t rank = 0; rank < place.ranks; ++rank) {
    ScriptedKernel kernel;
    kernel.threads_per_block = in_switch_threads(place.spec);
    kernel.programs = in_switch_programs(place, schedule, rank);
    plan.ranks.push_back(std::move(kernel));
  }
  return plan;
}

CollectivePlan plan_schedule(const CollectiveContext& context, const CollectiveDemand& demand,
                             CollectiveAlgorithm algorithm, const TunerChoice& choice, std::uint32_t first_flag) {
  const CollectiveSpec& library = *context.library;
  SchedulePlace place;
  place.gpu = context.gpu;
  place.protocol = protocol_shape(library, choice.protocol, algorithm == CollectiveAlgorithm::ring);
  place.fence = ClockDomain(context.gpu->clock).to_subcycles(library.fence);
  place.group = demand.group;
  place.input_address = static_cast<std::int64_t>(demand.send_address);
  place.output_address = static_cast<std::int64_t>(demand.receive_address);
  place.buffer_end = context.gpu->hbm.bytes;
  place.first_flag = first_flag;
  const auto ranks = static_cast<std::uint32_t>(demand.group.size());
  std::int64_t element = bytes_per_element(demand.type);
  if (demand.bytes.count() % element != 0) element = 1;  // of a trace whose type is not known
  const ScheduleRequest request{.kind = demand.kind,
                                .bytes = demand.bytes.count(),
                                .element_bytes = element,
                                .ranks = ranks,
                                .channels = choice.channels,
                                .piece_bytes = place.protocol.piece_bytes,
                                .pieces_per_chunk = place.protocol.pieces_per_chunk};
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

}  // namespace

std::int64_t communication_buffer_bytes(const CollectiveSpec& library, std::uint32_t gpus) {
  const std::int64_t ring = library.ring.channels * library.ring.buffer_bytes;
  return std::max(ring, in_switch_buffer_bytes(library.in_switch, gpus));
}

CollectivePlan plan_collective(const CollectiveContext& context, const CollectiveDemand& demand,
                               const CollectiveWish& wish, std::uint32_t first_flag) {
  if (demand.group.size() < 2) throw InputError("a collective: expected a group of at least 2 GPUs");
  AllReduceAlgorithm algorithm = wish.algorithm;
  if (demand.kind != CollectiveKind::all_reduce && algorithm == AllReduceAlgorithm::in_switch) {
    algorithm = AllReduceAlgorithm::automatic;
  }
  const TunerQuery query{demand.kind,
                         reported_bytes(demand),
                         static_cast<std::uint32_t>(demand.group.size()),
                         context.links_per_gpu,
                         static_cast<double>(context.link.count()) * 1e-9,
                         in_switch_is_possible(context, demand, wish.algorithm)};
  const TunerChoice choice = choose(*context.library, query, algorithm, wish.protocol, wish.channels);
  CollectivePlan plan =
      choice.algorithm == AllReduceAlgorithm::in_switch
          ? plan_in_switch(context, demand, choice, first_flag)
          : plan_schedule(context, demand, schedule_algorithm(choice.algorithm, demand.kind), choice, first_flag);
  const ClockDomain clock(context.gpu->clock);
  Time start = context.library->base_latency;
  if (choice.algorithm == AllReduceAlgorithm::in_switch) start = start + context.library->in_switch.start_latency;
  for (ScriptedKernel& kernel : plan.ranks) {
    kernel.registers_per_thread = context.library->registers_per_thread;
    kernel.shared_memory_bytes = context.library->shared_memory_bytes;
    kernel.start_latency = clock.to_subcycles(start);
  }
  return plan;
}

}  // namespace weft
