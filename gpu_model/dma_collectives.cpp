#include "gpu_model/dma_collectives.h"

#include <fmt/format.h>

#include "gpu_model/engine_programs.h"
#include "sim/error.h"

namespace weft {

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

}  // namespace weft
