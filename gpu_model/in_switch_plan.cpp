#include "gpu_model/in_switch_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu_model/in_switch_programs.h"
#include "gpu_model/in_switch_registered.h"
#include "gpu_model/nic_programs.h"
#include "gpu_model/phase_lines.h"
#include "network/collective_algorithm.h"
#include "network/group_rings.h"
#include "sim/error.h"

namespace weft {

namespace {
// Of so few GPUs each has more to add: NCCL moves two of a block's warps there (src/device/all_reduce.h).
constexpr std::uint32_t kFewMembers = 6;

// GPUs of the collective in each node; 0: nodes have different numbers of them.
std::uint32_t members_per_node(const CollectiveContext& context, const CollectiveDemand& demand) {
  return nodes_of_group(demand.group, context.gpus_per_node).in_each();
}
}  // namespace

std::uint32_t lines_per_round(const CollectiveSpec& library) {
  return std::max(1U, library.in_switch.bytes_in_flight_per_warp / kLineBytes);
}

bool in_switch_is_possible(const CollectiveContext& context, const CollectiveDemand& demand,
                           AllReduceAlgorithm algorithm, bool registered) {
  const std::uint32_t members = members_per_node(context, demand);
  std::string why_not = context.why_not_in_switch;
  if (why_not.empty() && members < 2) {
    why_not = members == 0 ? "nodes have different numbers of its GPUs" : "nodes have one GPU of it each";
  }
  if (why_not.empty() && demand.kind != CollectiveKind::all_reduce) {
    if (!does(AllReduceAlgorithm::in_switch, demand.kind)) {
      why_not = fmt::format("{} is not among what they do", to_string(demand.kind));
    } else if (members > context.fan_in) {
      why_not = "all but all_reduce need entries that count all of their GPUs";
    } else if (members != demand.group.size()) {
      why_not = "all but all_reduce need one node";
    } else if (!registered && !is_staged_in_switch(demand.kind)) {
      why_not = fmt::format("{} needs registered buffers (all_reduce.registered)", to_string(demand.kind));
    }
  }
  // Other collectives of a program that asks for it take what they have, as with other algorithms.
  if (!why_not.empty() && algorithm == AllReduceAlgorithm::in_switch && demand.kind == CollectiveKind::all_reduce) {
    throw InputError(
        fmt::format("in_switch: expected a collective that the switches can reduce, got one for which {}", why_not));
  }
  return why_not.empty();
}

CollectivePlan plan_in_switch(const CollectiveContext& context, const CollectiveDemand& demand,
                              const CollectiveWish& wish, bool registered, std::uint32_t channels, std::uint32_t warps,
                              std::uint32_t first_flag) {
  const CollectiveSpec& library = *context.library;
  InSwitchPlace place;
  place.spec = library.in_switch;
  place.spec.channels = channels;
  const std::uint32_t members = members_per_node(context, demand);
  if (members <= kFewMembers && place.spec.copy_warps > 1) {
    place.spec.reduce_warps += 2;
    --place.spec.copy_warps;
  }
  place.ranks = in_switch_part(members, context.fan_in);
  place.group = demand.group.members();
  place.kind = demand.kind;
  place.root = demand.root;
  place.registered = registered && place.nodes() == 1;  // NCCL stages what goes on to other nodes
  place.bytes = demand.bytes.count() / (demand.kind == CollectiveKind::reduce_scatter ? place.ranks : 1);
  place.registered_warps = warps;
  place.multicast_group = context.multicast_group;
  place.lines_per_round = lines_per_round(library);
  place.copy_lines_per_round = std::max(1U, library.bytes_in_flight_per_warp / kLineBytes);
  const ClockDomain clock(context.gpu->clock);
  place.fence = clock.to_subcycles(library.fence);
  place.adds_per_cycle = fp32_adds_per_cycle(*context.gpu);
  place.poll = clock.to_subcycles(library.in_switch.poll);
  place.alike_ranks = wish.alike_ranks;
  place.node_latency = clock.to_subcycles(context.node_latency) + staging_time(*context.gpu);
  place.values_travel = context.values_travel;
  place.nic_line = nic_line_time(*context.gpu, context.nic_GBps);
  place.proxy_latency = clock.to_subcycles(library.proxy.simple);
  place.send_address = static_cast<std::int64_t>(demand.send_address);
  place.receive_address = static_cast<std::int64_t>(demand.receive_address);
  place.buffer = context.gpu->hbm.bytes - in_switch_buffer_bytes(place.spec, place.ranks, place.nodes());
  place.first_flag = first_flag;
  CollectivePlan plan{kInSwitch, to_string(CollectiveProtocol::simple), channels, in_switch_flags(place), {}, {},
                      false};
  // A group of all: switches know who of it is in their node. Of parts, each has a group of its own.
  if (place.ranks == members) {
    plan.multicasts.push_back(demand.group);
  } else {
    for (auto first = place.group.begin(); first != place.group.end(); first += place.ranks) {
      plan.multicasts.emplace_back(std::vector<GpuId>(first, first + place.ranks));
    }
  }
  for (std::uint32_t rank = 0; rank < demand.group.size(); ++rank) {
    if (place.ranks < members) {
      place.multicast_group = static_cast<std::uint16_t>(context.multicast_group + rank / place.ranks);
    }
    ScriptedKernel kernel;
    kernel.threads_per_block = in_switch_threads(place);
    kernel.programs = in_switch_programs(place, rank);
    plan.ranks.push_back(std::move(kernel));
  }
  return plan;
}

}  // namespace weft
