#include "gpu_model/collective_choice.h"

#include <algorithm>

#include "gpu_model/in_switch_plan.h"
#include "network/collective_algorithm.h"

namespace weft {

namespace {

EvenMessage evened(const CollectiveDemand& demand, const CollectiveWish& wish) {
  if (wish.even_messages != nullptr) {
    const auto even = wish.even_messages->find(message_of(demand));
    if (even != wish.even_messages->end()) return even->second;
  }
  return {.bytes = demand.bytes.count()};
}

bool is_by_user(const CollectiveDemand& demand, const CollectiveWish& wish) {
  return wish.user_algorithm && wish.user_algorithm->kind == demand.kind &&
         wish.user_algorithm->ranks.size() == demand.group.size();
}

TunerChoice tuned(const CollectiveSpec& library, const TunerQuery& query, const CollectiveWish& wish) {
  if (query.user_algorithm) {  // its own blocks share what NCCL's limit of LL leaves to all channels
    CollectiveSpec own = library;
    own.tuner.ll_max_GBps *= static_cast<double>(wish.user_algorithm->most_blocks()) / library.ring.channels;
    return choose(own, query, AllReduceAlgorithm::direct, wish.protocol, 1);
  }
  if (wish.algorithm != AllReduceAlgorithm::in_switch || query.kind == CollectiveKind::all_reduce) {
    return choose(library, query, wish.algorithm, wish.protocol, wish.channels);
  }
  if (!query.in_switch) return choose(library, query, AllReduceAlgorithm::automatic, wish.protocol, wish.channels);
  // Also what NCCL's tuner has no model of.
  return {AllReduceAlgorithm::in_switch, CollectiveProtocol::simple,
          wish.channels > 0 ? wish.channels : library.in_switch.channels};
}

// Of what the tuner chose: as many channels as the orders of rings, or the trees, have for each alike.
void share_channels(const CollectiveContext& context, const NodesOfGroup& nodes, CollectiveChoice& choice) {
  const auto share = [&](std::uint32_t alike) {
    const std::uint32_t most = std::max(1U, context.library->ring.channels / alike) * alike;
    choice.tuned.channels = std::min(choice.tuned.channels, most);
  };
  // As NCCL duplicates its rings: of all channels, each order gets as many. Short messages take the first few.
  if (choice.is_ring && context.ring_orders) share(context.ring_orders->cycles());
  const std::uint32_t pairs = 2 * nodes.in_each();  // of trees, one by each rank of a node
  if (choice.tuned.algorithm == AllReduceAlgorithm::double_binary_tree && pairs > 0 && nodes.count() > 1) share(pairs);
}

}  // namespace

CollectiveChoice choose_collective(const CollectiveContext& context, const CollectiveDemand& demand,
                                   const CollectiveWish& wish, const NodesOfGroup& nodes) {
  const CollectiveSpec& library = *context.library;
  CollectiveChoice choice;
  choice.user = is_by_user(demand, wish);
  choice.registered = wish.registered || library.in_switch.registered || demand.kind == CollectiveKind::barrier;
  TunerQuery query{demand.kind,
                   reported_bytes(demand),
                   static_cast<std::uint32_t>(demand.group.size()),
                   context.links_per_gpu,
                   static_cast<double>(context.link.count()) * 1e-9,
                   in_switch_is_possible(context, demand, wish.algorithm, choice.registered),
                   nodes.count(),
                   nodes.fewest,
                   context.nic_GBps,
                   choice.user};
  choice.tuned = tuned(library, query, wish);
  choice.fell_back = choice.tuned.algorithm == AllReduceAlgorithm::in_switch && !context.switch_fault.empty();
  if (choice.fell_back) {
    query.in_switch = false;
    choice.tuned = choose(library, query, AllReduceAlgorithm::automatic, wish.protocol, wish.channels);
  }
  std::uint32_t& channels = choice.tuned.channels;
  // A choice: blocks that wait for each other, of which nobody asked for more, have a unit each.
  if (wish.channels == 0 && !choice.user) channels = std::min(channels, context.gpu->compute_units);
  const EvenMessage even = evened(demand, wish);
  choice.bytes = Bytes(even.bytes);
  if (choice.tuned.algorithm == AllReduceAlgorithm::in_switch) {
    if (choice.registered && wish.channels == 0) channels = library.in_switch.registered_channels;
    return choice;
  }
  const CollectiveAlgorithm algorithm = schedule_for(choice.tuned.algorithm, demand.kind);
  choice.is_ring = !choice.user && algorithm == CollectiveAlgorithm::ring;
  if (wish.channels == 0) share_channels(context, nodes, choice);
  if (even.channels > 0) channels = even.channels;
  const bool slices =
      choice.user || choice.is_ring ||
      (algorithm == CollectiveAlgorithm::direct && has_block_a_peer(demand.kind, query.ranks, channels));
  choice.shape = !choice.user && is_point_to_point(demand.kind)
                     ? protocol_shape_of_sends(library, choice.tuned.protocol)
                     : protocol_shape(library, choice.tuned.protocol, slices);
  if (choice.is_ring && wish.alike_ranks && context.ring_orders && choice.shape.chunk_order == ChunkOrder::by_loop) {
    channels = std::min(
        channels, filled_channels(even.bytes, query.ranks, channels, choice.shape.chunk_unit, *context.ring_orders));
  }
  return choice;
}

Message message_of(const CollectiveDemand& demand) {
  return {demand.kind,         demand.bytes.count(),     demand.type, demand.distance, demand.first,
          demand.group.size(), demand.group.back().value};
}

std::int64_t reported_bytes(const CollectiveDemand& demand) {
  const auto ranks = static_cast<std::int64_t>(demand.group.size());
  const bool joins = demand.kind == CollectiveKind::all_gather || demand.kind == CollectiveKind::gather;
  return demand.bytes.count() * (joins ? ranks : 1);
}

}  // namespace weft
