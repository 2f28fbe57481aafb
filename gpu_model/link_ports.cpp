#include "gpu_model/link_ports.h"

#include <algorithm>

#include "network/lane_turn.h"
#include "sim/error.h"

namespace weft {

LinkPorts::LinkPorts(const LinkPlan& plan, GpuId self, const std::vector<LinkBundle>& bundles)
    : plan_(plan), self_(self.value), inbox_(std::make_unique<Inbox>()) {
  for (std::uint32_t b = 0; b < bundles.size(); ++b) {
    const LinkBundle& bundle = bundles[b];
    WEFT_CHECK(!bundle.lanes.empty() && bundle.lanes.size() < 256, "a link bundle of 1 to 255 lanes");
    std::vector<std::uint8_t> live;
    for (std::size_t lane = 0; lane < bundle.lanes.size(); ++lane) {
      if (bundle.lanes[lane] != nullptr) live.push_back(static_cast<std::uint8_t>(lane));
    }
    if (live.size() < bundle.lanes.size()) {
      live_.resize(bundles.size());
      live_[b] = live;
    }
    std::shared_ptr<const LinkTiming> first;
    for (const auto& timing : bundle.lanes) first = first ? first : timing;
    in_.push_back(bundle.in);
    out_.push_back(bundle.out);
    bundle.in->credits.announce_to(*inbox_, b * 2);
    bundle.in->packets.announce_to(*inbox_, b * 2 + 1);
    if (first == nullptr) {  // all are out, and no packet takes it
      WEFT_CHECK(!plan_.lanes_to_gpu.empty(), "a bundle without a lane");
      LinkSpec unused;
      unused.bandwidth = gigabytes_per_second(1);
      first = std::make_shared<const LinkTiming>(unused);
    }
    latency_.push_back(first->spec().latency);
    transmitters_.emplace_back(first, static_cast<std::uint32_t>(bundle.lanes.size()), *bundle.out);
    for (std::uint32_t lane = 0; lane < bundle.lanes.size(); ++lane) {
      if (bundle.lanes[lane] != nullptr && bundle.lanes[lane] != first) {
        transmitters_.back().set_lane_timing(lane, bundle.lanes[lane]);
      }
    }
  }
}

Packet LinkPorts::as_sent_to_it(const Packet& packet) const {
  if (plan_.loops) {
    Packet own = packet;
    std::swap(own.source, own.destination);
    return own;
  }
  const std::uint32_t ahead = target_of(packet) / plan_.there * plan_.there;
  const auto seen_from_here = [&](std::uint16_t gpu) {
    return static_cast<std::uint16_t>((gpu + plan_.gpus - ahead) % plan_.gpus);
  };
  Packet own = packet;
  own.source = seen_from_here(packet.source);
  own.destination = seen_from_here(packet.destination);
  return own;
}

LinkLane LinkPorts::lane_in(std::uint32_t bundle, std::uint32_t spread) const {
  if (!live_.empty() && !live_[bundle].empty()) {
    return {bundle, live_[bundle][spread % live_[bundle].size()]};
  }
  return {bundle, static_cast<std::uint8_t>(spread % transmitters_[bundle].lanes())};
}

namespace {
LinkLane one_of(const std::vector<LinkLane>& lanes, LineAddress line) { return lanes[lane_turn(line) % lanes.size()]; }
}  // namespace

LinkLane LinkPorts::lane_of_group(LineAddress line, std::uint16_t group) const {
  return one_of(plan_.lanes_of_group.empty() ? plan_.lanes : plan_.lanes_of_group[group], line);
}

LinkLane LinkPorts::lane_of(LineAddress line, std::uint16_t destination) const {
  const std::uint32_t spread = lane_turn(line);
  if (destination - plan_.first_gpu >= plan_.gpus) {
    return lane_in(static_cast<std::uint32_t>(transmitters_.size() - 1), spread);
  }
  switch (plan_.kind) {
    case LinkPlan::Kind::planes:
      return one_of(plan_.lanes_to_gpu.empty() ? plan_.lanes : plan_.lanes_to_gpu[destination - plan_.first_gpu], line);
    case LinkPlan::Kind::router: {
      const std::uint32_t own = plan_.lanes_for_each;
      return lane_in(0, own == 0 ? spread : (destination - plan_.first_gpu) * own + spread % own);
    }
    case LinkPlan::Kind::peers:
      break;
  }
  const std::uint32_t peer = destination - plan_.first_gpu;
  return lane_in(destination < self_ ? peer : peer - 1, spread);
}

void LinkPorts::submit(const Packet& packet, std::size_t bundle, Time ready) {
  Time start;
  // Who waits for a credit waits in the transmitter; agents are bounded by their outstanding requests.
  if (live_.empty() || live_[bundle].empty()) {
    static_cast<void>(transmitters_[bundle].submit(packet, ready, 0, start));
    return;
  }
  Packet sent = packet;
  const std::vector<std::uint8_t>& live = live_[bundle];
  if (std::find(live.begin(), live.end(), sent.lane) == live.end()) sent.lane = live[sent.lane % live.size()];
  static_cast<void>(transmitters_[bundle].submit(sent, ready, 0, start));
}

void LinkPorts::give_credit(const Packet& packet, std::size_t bundle, Time when) {
  out_[bundle]->credits.send({when + latency_[bundle], packet.lane, virtual_channel(packet.kind)});
}

}  // namespace weft
