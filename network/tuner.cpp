#include "network/tuner.h"

#include <algorithm>
#include <vector>

#include "network/protocol.h"
#include "sim/error.h"

namespace weft {

namespace {

// NCCL src/graph/tuning.cc, in microseconds: baseLatencies, and hwLatencies over NVLink.
struct RingLatency {
  double base;
  double step;
};
RingLatency ring_latency(CollectiveProtocol protocol) {
  switch (protocol) {
    case CollectiveProtocol::ll:
      return {6.6, 0.6};
    case CollectiveProtocol::ll128:
      return {14.0, 1.9};
    default:
      return {8.4, 3.4};
  }
}
constexpr double kInSwitchLatency = 25;
constexpr double kLinkShare = 0.8;    // NCCL src/graph/topo.h: 20 of 25 GB/s, and about that of later links
constexpr double kLlShare = 0.5;      // of the bandwidth: half of a line is flags
constexpr double kLl128Share = 0.92;  // 120 of 128 B, and some

// Of the bus: what a ring of `ranks` moves on each link for one message.
double ring_steps(CollectiveKind kind, double ranks) {
  return kind == CollectiveKind::all_reduce ? 2 * (ranks - 1) : ranks - 1;
}

}  // namespace

std::optional<double> predicted_us(const CollectiveSpec& library, const TunerQuery& query, AllReduceAlgorithm algorithm,
                                   CollectiveProtocol protocol) {
  const TunerSpec& tuner = library.tuner;
  const double link = tuner.link_GBps > 0 ? tuner.link_GBps : kLinkShare * query.link_GBps;
  const double bus = link * query.links_per_gpu;
  const auto bytes = static_cast<double>(query.bytes);
  const double ranks = query.ranks;
  if (algorithm == AllReduceAlgorithm::in_switch) {
    if (protocol != CollectiveProtocol::simple || query.kind != CollectiveKind::all_reduce) return std::nullopt;
    const double channels = library.in_switch.channels;
    return kInSwitchLatency + bytes / (bus * tuner.in_switch_efficiency * (channels - 1) / channels * 1e3);
  }
  // What the library does not have, or does not have on one node, is taken for as fast as a ring: it matters for the
  // protocol.
  double bandwidth = bus;
  if (protocol == CollectiveProtocol::ll) bandwidth = std::min(bus * kLlShare, tuner.ll_max_GBps);
  if (protocol == CollectiveProtocol::ll128) {
    if (tuner.ll128_channel_GBps <= 0) return std::nullopt;
    bandwidth = std::min(bus * kLl128Share, library.ring.channels * tuner.ll128_channel_GBps);
  }
  const double steps = ring_steps(query.kind, ranks);
  const RingLatency latency = ring_latency(protocol);
  return latency.base + steps * latency.step + bytes * steps / ranks / (bandwidth * 1e3);
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
  TunerChoice best;
  std::optional<double> least;
  std::vector<AllReduceAlgorithm> algorithms{algorithm};
  if (algorithm == AllReduceAlgorithm::automatic) {
    algorithms = {AllReduceAlgorithm::ring};
    if (query.in_switch) algorithms.push_back(AllReduceAlgorithm::in_switch);
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
    throw InputError(std::string("a collective: expected a protocol that the algorithm has here, got ") +
                     to_string(protocol));
  }
  if (channels > 0) {
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
