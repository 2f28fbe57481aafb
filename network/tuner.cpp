#include "network/tuner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "network/collective_algorithm.h"
#include "network/protocol.h"
#include "network/send_channels.h"
#include "sim/error.h"

namespace weft {

namespace {

// NCCL src/graph/tuning.cc, in microseconds: baseLatencies, and hwLatencies over NVLink and over the network.
struct Latency {
  double base;
  double step;
  double network_step;
};
Latency ring_latency(CollectiveProtocol protocol) {
  switch (protocol) {
    case CollectiveProtocol::ll:
      return {6.6, 0.6, 2.7};
    case CollectiveProtocol::ll128:
      return {14.0, 1.9, 4.0};
    default:
      return {8.4, 3.4, 14.0};
  }
}
Latency tree_latency(CollectiveProtocol protocol) {
  switch (protocol) {
    case CollectiveProtocol::ll:
      return {6.8, 0.6, 5.0};
    case CollectiveProtocol::ll128:
      return {14.0, 1.25, 8.5};
    default:
      return {8.4, 4.0, 14.0};
  }
}
constexpr double kInSwitchLatency = 25;
constexpr double kInSwitchNetworkLatency = 14;  // NVLSTree, a level of the tree
constexpr double kInSwitchBaseLatency = 8.4;    // which only NVLSTree adds
constexpr double kLinkShare = 0.8;              // NCCL src/graph/topo.h: 20 of 25 GB/s, and about that of later links
constexpr double kLlShare = 0.5;                // of the bandwidth: half of a line is flags
constexpr double kLl128Share = 0.92;            // 120 of 128 B, and some
constexpr double kTreeShare = 0.92;
constexpr double kTreeLlShare = 1 / 3.8;
constexpr double kLlSlowerInNodes = 1.8;  // steps of LL in a node of several
constexpr double kRingPlateau = 1.4;      // of the latency of Simple rings over nodes, from 64 B a channel and rank

// treeCorrectionFactor: by powers of two from 64 B; 1 beyond.
double tree_correction(CollectiveProtocol protocol, std::int64_t bytes) {
  static constexpr std::array<std::array<double, 23>, 3> kFactors{
      {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
       {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
       {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};
  if (bytes < 64) return 1;
  const auto size = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(bytes) >> 6U)) - 1;
  const std::size_t row = protocol == CollectiveProtocol::ll ? 0 : protocol == CollectiveProtocol::ll128 ? 1 : 2;
  return size < kFactors[row].size() ? kFactors[row][size] : 1;
}

// Of the bus: what a ring of `ranks` moves on each link for one message.
double ring_steps(CollectiveKind kind, double ranks) {
  if (kind == CollectiveKind::shift) return std::min(ranks - 1, 1.0);
  return kind == CollectiveKind::all_reduce ? 2 * (ranks - 1) : ranks - 1;
}

// NCCL src/enqueue.cc: gathers and scatters of one node, of at most NCCL_MAX_NVLS_ARITY ranks.
constexpr std::uint32_t kMostGatheredRanks = 32;
bool takes_in_switch(const TunerQuery& query) {
  if (query.kind == CollectiveKind::all_reduce) return true;
  return (query.kind == CollectiveKind::all_gather || query.kind == CollectiveKind::reduce_scatter) &&
         query.nodes == 1 && query.ranks <= kMostGatheredRanks;
}

// Of the bus, by each head: a GPU's links carry each head once, and once more what is its own (NCCL
// src/graph/search.cc, ncclTopoSearchTryNvls).
double head_GBps(const TunerSpec& tuner, double links, double heads) {
  const double most = links / (heads + 1);
  double found = 0;
  for (const double tried : tuner.in_switch_head_GBps) {
    if (tried <= most) found = std::max(found, tried);
  }
  return tuner.in_switch_efficiency * (heads - 1) / heads * (found > 0 ? found : most);
}

std::int64_t bytes_to_peer(const TunerQuery& query) {
  return is_exchange(query.kind) ? query.bytes / std::max(1U, query.ranks) : query.bytes;
}

double levels(std::uint32_t nodes) { return static_cast<double>(std::bit_width(nodes) - 1); }

}  // namespace

bool is_point_to_point(CollectiveKind kind) {
  return is_exchange(kind) || kind == CollectiveKind::send_receive || kind == CollectiveKind::shift;
}

std::optional<double> predicted_us(const CollectiveSpec& library, const TunerQuery& query, AllReduceAlgorithm algorithm,
                                   CollectiveProtocol protocol) {
  const TunerSpec& tuner = library.tuner;
  const double link = tuner.link_GBps > 0 ? tuner.link_GBps : kLinkShare * query.link_GBps;
  const double links = link * query.links_per_gpu;
  const auto bytes = static_cast<double>(query.bytes);
  const double ranks = query.ranks;
  const std::uint32_t nodes = query.nodes;
  // What crosses between nodes of a ring, or of all the heads of a tree, goes through all NICs of the node.
  const double nics = query.nic_GBps * query.ranks_per_node;
  const double bus = nodes > 1 ? std::min(links, nics) : links;
  if (algorithm == AllReduceAlgorithm::in_switch) {
    if (protocol != CollectiveProtocol::simple || !takes_in_switch(query)) return std::nullopt;
    const double heads = nodes == 1 ? ranks : query.ranks_per_node;
    const double inside = head_GBps(tuner, links, heads);
    // All-gathers and reduce-scatters: less the own part.
    if (query.kind != CollectiveKind::all_reduce) {
      return kInSwitchLatency + bytes / (heads * inside * (ranks - 1) / ranks * 1e3);
    }
    const double both_ways = 2 * inside;
    const double share = heads * ranks / ring_steps(query.kind, ranks) * 1e3;
    if (nodes == 1) return kInSwitchLatency + bytes / (both_ways * share);
    const double between = query.nic_GBps * (nodes == 2 ? 2 : 1);
    return kInSwitchBaseLatency + kInSwitchLatency + 2 * levels(nodes) * kInSwitchNetworkLatency +
           bytes / (std::min(both_ways, between) * share);
  }
  const double ll_max = nodes == 1   ? tuner.ll_max_GBps
                        : nodes == 2 ? tuner.ll_max_two_nodes_GBps
                                     : tuner.ll_max_nodes_GBps;
  const double slower = nodes > 1 && protocol == CollectiveProtocol::ll ? kLlSlowerInNodes : 1;
  if (protocol == CollectiveProtocol::ll128 && tuner.ll128_channel_GBps <= 0) return std::nullopt;
  const double ll128_max = library.ring.channels * tuner.ll128_channel_GBps;
  if (nodes > 1 && algorithm == AllReduceAlgorithm::double_binary_tree && query.kind == CollectiveKind::all_reduce) {
    const bool unequal = nodes * query.ranks_per_node < query.ranks;
    double bandwidth = (nodes == 2 && unequal ? std::min(links, 2 * nics) : bus) * kTreeShare;
    if (protocol == CollectiveProtocol::ll) bandwidth = std::min(bandwidth * kTreeLlShare, ll_max);
    if (protocol == CollectiveProtocol::ll128) bandwidth = std::min(bandwidth * 120 / 128, ll128_max);
    const Latency latency = tree_latency(protocol);
    return latency.base +
           2 * ((query.ranks / nodes - 1) * latency.step * slower + levels(nodes) * latency.network_step) +
           bytes / (bandwidth / 2 * tree_correction(protocol, query.bytes) * 1e3);
  }
  // What the library does not have, or does not have on one node, is taken for as fast as a ring: it matters for the
  // protocol.
  double bandwidth = bus;
  if (protocol == CollectiveProtocol::ll) bandwidth = std::min(bus * kLlShare, ll_max);
  if (protocol == CollectiveProtocol::ll128) bandwidth = std::min(bus * kLl128Share, ll128_max);
  const double steps = ring_steps(query.kind, ranks);
  const double network_steps = ring_steps(query.kind, nodes);
  const Latency latency = ring_latency(protocol);
  double time = latency.base + (steps - network_steps) * latency.step * slower + network_steps * latency.network_step;
  const bool plateau = nodes > 1 && protocol == CollectiveProtocol::simple &&
                       query.kind == CollectiveKind::all_reduce && bytes >= 64 * library.ring.channels * ranks;
  if (plateau) time *= kRingPlateau;
  const double moved = query.kind == CollectiveKind::shift ? bytes : bytes * steps / ranks;
  return time + moved / (bandwidth * 1e3);
}

namespace {

bool takes_direct(const TunerSpec::Direct& direct, const TunerQuery& query) {
  return query.kind == CollectiveKind::all_reduce && query.ranks == direct.ranks && query.bytes >= direct.min_bytes &&
         query.bytes <= direct.max_bytes;
}

}  // namespace

TunerChoice choose(const CollectiveSpec& library, const TunerQuery& query, AllReduceAlgorithm algorithm,
                   CollectiveProtocol protocol, std::uint32_t channels) {
  const TunerSpec::Direct& direct = library.tuner.direct;
  if (algorithm == AllReduceAlgorithm::automatic && takes_direct(direct, query)) {
    const bool simple = query.bytes >= direct.simple_from_bytes;
    const auto usual = simple ? CollectiveProtocol::simple : CollectiveProtocol::ll;
    return {AllReduceAlgorithm::direct, protocol == CollectiveProtocol::automatic ? usual : protocol,
            channels > 0 ? channels : direct.channels};
  }
  const bool sends = !query.user_algorithm && is_point_to_point(query.kind);
  const SendQuery send{bytes_to_peer(query), query.ranks, query.links_per_gpu, query.nodes, channels};
  if (sends && protocol == CollectiveProtocol::automatic) protocol = protocol_of_sends(library, send);
  TunerChoice best;
  std::optional<double> least;
  std::vector<AllReduceAlgorithm> algorithms{algorithm};
  if (algorithm == AllReduceAlgorithm::automatic) {
    algorithms = {AllReduceAlgorithm::ring};
    if (query.in_switch) algorithms.push_back(AllReduceAlgorithm::in_switch);
    if (query.nodes > 1 && query.kind == CollectiveKind::all_reduce) {
      algorithms.push_back(AllReduceAlgorithm::double_binary_tree);
    }
  }
  for (const auto a : algorithms) {
    for (const auto p : {CollectiveProtocol::ll, CollectiveProtocol::ll128, CollectiveProtocol::simple}) {
      if (protocol != CollectiveProtocol::automatic && p != protocol) continue;
      const std::optional<double> time = predicted_us(library, query, a, p);
      if (!time || (least && *time >= *least)) continue;
      least = time;
      best.algorithm = a;
      best.protocol = p;
    }
  }
  if (!least) {
    std::string has;
    for (const auto p : {CollectiveProtocol::simple, CollectiveProtocol::ll, CollectiveProtocol::ll128}) {
      const auto does = [&](AllReduceAlgorithm a) { return predicted_us(library, query, a, p).has_value(); };
      if (std::any_of(algorithms.begin(), algorithms.end(), does)) has += std::string(to_string(p)) + " or ";
    }
    throw InputError("a collective: expected the protocol auto" +
                     (has.empty() ? "" : " or " + has.substr(0, has.size() - 4)) + ", got " + to_string(protocol) +
                     ", which the algorithm does not have here");
  }
  if (sends) {
    best.channels_to_peer = channels_to_peer(library, send, best.protocol);
    best.channels = is_exchange(query.kind) ? channels_of_sends(library, send)
                    : channels > 0          ? channels
                                            : best.channels_to_peer;
  } else if (channels > 0) {
    best.channels = channels;
  } else if (best.algorithm == AllReduceAlgorithm::in_switch) {
    best.channels = library.in_switch.channels;
  } else {
    best.channels =
        channels_for(library, best.protocol, best.algorithm == AllReduceAlgorithm::ring, query.bytes, query.ranks);
  }
  return best;
}

}  // namespace weft
