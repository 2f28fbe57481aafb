#include "network/send_channels.h"

#include <algorithm>
#include <bit>

#include "network/protocol.h"

namespace weft {

namespace {

constexpr std::int64_t kLlBytesPerChannel = 16384;      // NCCL_P2P_LL_THRESHOLD
constexpr std::int64_t kNetworkStepBytes = 128 * 1024;  // NCCL_P2P_NET_CHUNKSIZE
constexpr std::uint32_t kNetworkChannelsToPeer = 2;     // src/graph/paths.cc, ncclTopoGetNchannels

std::uint32_t most_to_peer(const CollectiveSpec& library, const SendQuery& query) {
  std::uint32_t most = std::bit_ceil(std::max(1U, 2 * query.links_per_gpu));
  if (library.sends.channels_to_peer > 0) most = std::bit_ceil(library.sends.channels_to_peer);
  if (query.nodes > 1) most = std::min(most, kNetworkChannelsToPeer);
  return std::min(most, channels_of_sends(library, query));
}

}  // namespace

std::uint32_t channels_of_sends(const CollectiveSpec& library, const SendQuery& query) {
  if (query.channels > 0) return std::bit_floor(query.channels);
  return std::bit_ceil(std::max(1U, library.sends.channels > 0 ? library.sends.channels : library.ring.channels));
}

CollectiveProtocol protocol_of_sends(const CollectiveSpec& library, const SendQuery& query) {
  return query.bytes <= most_to_peer(library, query) * kLlBytesPerChannel ? CollectiveProtocol::ll
                                                                          : CollectiveProtocol::simple;
}

std::uint32_t channels_to_peer(const CollectiveSpec& library, const SendQuery& query, CollectiveProtocol protocol) {
  std::int64_t step = protocol_shape(library, protocol, false).slot_bytes;
  if (query.nodes > 1 && protocol == CollectiveProtocol::simple) step = kNetworkStepBytes;
  const std::int64_t least_part = query.nodes > 1 ? step / 2 : std::max<std::int64_t>(1, step / 8);
  const std::int64_t most_part = query.nodes > 1 ? step : step * 32;
  const std::uint32_t all = channels_of_sends(library, query);
  const std::uint32_t most = most_to_peer(library, query);
  const auto parts = [&query](std::int64_t part) { return (query.bytes + part - 1) / part; };
  std::uint32_t first = most;  // one for each send, if all ranks were sent to
  while (first > 1 && first * query.ranks > all) first /= 2;
  auto channels = static_cast<std::uint32_t>(std::clamp<std::int64_t>(parts(least_part), 1, first));
  while (channels <= most / 2 && parts(channels) > most_part) channels *= 2;
  return channels;
}

}  // namespace weft
