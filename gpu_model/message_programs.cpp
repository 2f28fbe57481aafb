#include "gpu_model/message_programs.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu_model/engine_phases.h"
#include "sim/error.h"

namespace weft {

std::shared_ptr<const BlockPrograms> message_programs(const MessagePlace& place) {
  const auto share = [place](std::uint32_t block, std::uint32_t index, Phase& phase) {
    if (index > 0) return false;
    const std::int64_t count = (place.bytes + kLineBytes - 1) / kLineBytes;
    const LineRange part = LineRange{0, count}.part(block, place.channels);
    if (part.count == 0) return false;
    const std::int64_t at = part.first * kLineBytes;
    const std::int64_t bytes = part.count * kLineBytes;
    phase.load(lines(place.send_address + at, bytes));
    phase.store(lines(place.receive_address + at, bytes, Target::tree, place.group));
    set_rounds(phase, place.lines_per_round, place.warps);
    return true;
  };
  return std::make_shared<PhaseFunction>(place.channels, place.warps * place.lines_per_round, share);
}

CollectivePlan plan_in_network(const CollectiveContext& context, const CollectiveDemand& demand,
                               const CollectiveWish& wish) {
  if (!context.why_not_in_network.empty()) {
    throw InputError(fmt::format("in_network: expected a collective that the network can sum, got one for which {}",
                                 context.why_not_in_network));
  }
  const CollectiveSpec& library = *context.library;
  MessagePlace place;
  place.group = context.aggregation_group;
  place.channels = wish.channels > 0 ? wish.channels : library.ring.channels;
  place.warps = library.ring.threads / 32;
  place.lines_per_round = std::max(1U, library.bytes_in_flight_per_warp / kLineBytes);
  place.bytes = demand.bytes.count();
  place.send_address = static_cast<std::int64_t>(demand.send_address);
  place.receive_address = static_cast<std::int64_t>(demand.receive_address);
  ScriptedKernel kernel;
  kernel.threads_per_block = library.ring.threads;
  kernel.registers_per_thread = library.registers_per_thread;
  kernel.shared_memory_bytes = library.shared_memory_bytes;
  kernel.start_latency = ClockDomain(context.gpu->clock).to_subcycles(library.base_latency);
  kernel.programs = message_programs(place);
  CollectivePlan plan{kInNetwork, to_string(CollectiveProtocol::simple), place.channels, 0, {}, {}};
  plan.ranks.assign(demand.group.size(), kernel);
  return plan;
}

}  // namespace weft
