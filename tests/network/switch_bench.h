// A switch on a bench: packets go in at a given time, and what comes out is collected by port.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "network/switch.h"

namespace weft {

// 16 B flits at 16 GB/s: a flit takes 1 ns. Latencies are whole ticks of the switch's event queue, 2^19 fs.
inline constexpr Time kSwitchLatency{64LL << 19};
inline constexpr Time kLinkLatency{32LL << 19};

inline LinkSpec bench_link(std::uint32_t credits = 16) {
  LinkSpec spec;
  spec.bandwidth = gigabytes_per_second(16);
  spec.latency = kLinkLatency;
  spec.credits = credits;
  return spec;
}

class SwitchBench {
 public:
  // A port to each GPU; `groups` of GPUs, without any all of them.
  explicit SwitchBench(std::uint32_t ports, const LinkSpec& link = bench_link(),
                       std::unique_ptr<Reducer> reducer = nullptr,
                       const std::vector<std::vector<std::uint32_t>>& groups = {})
      : SwitchBench(ports, link, std::move(reducer), SwitchPlace{.gpus = ports}, groups) {}
  SwitchBench(std::uint32_t ports, const LinkSpec& link, std::unique_ptr<Reducer> reducer, const SwitchPlace& place,
              const std::vector<std::vector<std::uint32_t>>& groups)
      : in_(ports), out_(ports) {
    std::vector<MulticastGroup> multicasts(std::max<std::size_t>(1, groups.size()));
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const std::uint32_t gpu : groups[g]) multicasts[g].gpus.push_back(GpuId{gpu});
    }
    for (std::uint32_t gpu = 0; groups.empty() && gpu < place.gpus; ++gpu) multicasts[0].gpus.push_back(GpuId{gpu});
    std::vector<SwitchPort> wires;
    for (std::uint32_t p = 0; p < ports; ++p) wires.push_back({&in_[p], &out_[p]});
    hub_ = std::make_unique<Switch>(SwitchSpec{.latency = kSwitchLatency}, std::make_shared<const LinkTiming>(link), 1,
                                    wires, std::move(reducer), place, multicasts);
    packets.resize(ports);
    credits.resize(ports);
  }

  // `packet` arrives by `port` at `when`.
  void send(std::uint32_t port, Packet packet, Time when) {
    packet.when = when;
    in_[port].packets.send(packet);
  }
  void give_credit(std::uint32_t port, VirtualChannel channel, Time when) {
    in_[port].credits.send({when, 0, channel});
  }
  // Lets the switch run until `until`; what it sent is appended to packets and credits.
  void advance(Time until) {
    for (LinkWires& wires : in_) {
      wires.packets.flip();
      wires.credits.flip();
    }
    hub_->advance(until);
    for (std::size_t p = 0; p < out_.size(); ++p) {
      out_[p].packets.flip();
      out_[p].credits.flip();
      out_[p].packets.receive([&](const Packet& packet) { packets[p].push_back(packet); });
      out_[p].credits.receive([&](const Credit& credit) { credits[p].push_back(credit); });
    }
  }
  [[nodiscard]] const Switch& hub() const { return *hub_; }

  std::vector<std::vector<Packet>> packets;  // by output port
  std::vector<std::vector<Credit>> credits;

 private:
  std::deque<LinkWires> in_;
  std::deque<LinkWires> out_;
  std::unique_ptr<Switch> hub_;
};

inline Packet packet_of(PacketKind kind, std::uint16_t source, std::uint16_t destination, std::uint32_t line = 0) {
  Packet packet;
  packet.kind = kind;
  packet.source = source;
  packet.destination = destination;
  packet.line = line;
  if (kind == PacketKind::write || kind == PacketKind::multicast_write || kind == PacketKind::read_reply ||
      kind == PacketKind::partial_reply) {
    packet.payload = 128;
  }
  if (kind == PacketKind::multicast_write) packet.entry = 1;  // its acknowledgements are combined
  return packet;
}

}  // namespace weft
