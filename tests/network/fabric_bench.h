// A fabric on a bench: every GPU is an endpoint that sends what it is told and takes what comes.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "network/fabric.h"
#include "network/transmitter.h"

namespace weft {

// 32 B flits at 32 B in two ticks of a router (2^20 fs): times that are whole ticks, so that nothing is rounded.
inline constexpr Time kFlit{1LL << 20};
inline constexpr Time kHop{32LL << 19};
inline constexpr Time kRouter{16LL << 19};

inline LinkSpec fabric_link(std::uint32_t credits = 8) {
  LinkSpec link;
  link.bandwidth = Bandwidth(30'517'578'125);
  link.latency = kHop;
  link.flit_bytes = 32;
  link.credits = credits;
  return link;
}

inline NetworkSpec fabric_of(TopologyKind topology, std::uint32_t credits = 8) {
  NetworkSpec spec;
  spec.topology = topology;
  spec.link = fabric_link(credits);
  spec.switch_.latency = kRouter;
  return spec;
}

// The time of a packet of so many flits over `routers` routers, from end to end, unloaded.
inline Time unloaded(std::uint32_t routers, std::uint32_t flit_count) {
  return (kHop + kFlit * flit_count) * (routers + 1) + kRouter * routers;
}

class Endpoint final : public Chip {
 public:
  Endpoint(Fabric& fabric, std::uint32_t gpu) {
    for (std::uint32_t p = 0; p < fabric.topology().nodes()[gpu].ports; ++p) {
      const auto lanes = fabric.lanes(gpu, p);
      out_.emplace_back(lanes[0], static_cast<std::uint32_t>(lanes.size()), fabric.out(gpu, p));
      in_.push_back(&fabric.in(gpu, p));
      back_.push_back(&fabric.out(gpu, p));
    }
  }
  void send(Packet packet, Time when, std::uint32_t port = 0) {
    Time start;
    static_cast<void>(out_[port].submit(packet, when, 0, start));
  }
  void advance(Time) override {
    for (std::size_t p = 0; p < in_.size(); ++p) {
      in_[p]->credits.receive([&](const Credit& credit) { out_[p].receive_credit(credit, departures_); });
      in_[p]->packets.receive([&](const Packet& packet) {
        arrived.push_back(packet);
        back_[p]->credits.send({packet.when + kHop, packet.lane, virtual_channel(packet.kind), packet.vc_class});
      });
    }
  }
  [[nodiscard]] Time next_activity() const override { return Time::max(); }
  [[nodiscard]] const Transmitter& out(std::size_t port = 0) const { return out_[port]; }
  std::vector<Packet> arrived;

 private:
  std::vector<Transmitter> out_;
  std::vector<LinkWires*> in_, back_;
  std::vector<Departure> departures_;
};

class FabricBench {
 public:
  FabricBench(const NetworkSpec& spec, std::uint32_t gpus) : fabric(spec, gpus) {
    for (std::uint32_t g = 0; g < gpus; ++g) ends.push_back(std::make_unique<Endpoint>(fabric, g));
  }
  void send(std::uint16_t from, std::uint16_t to, std::uint32_t line, Time when, PacketKind kind = PacketKind::write,
            std::uint32_t agent = 0) {
    Packet packet;
    packet.agent = agent;
    packet.kind = kind;
    packet.source = virtual_channel(kind) == VirtualChannel::request ? from : to;
    packet.destination = virtual_channel(kind) == VirtualChannel::request ? to : from;
    packet.line = line;
    packet.payload = 128;
    // A cluster's GPUs have their NIC at the last port.
    const std::uint32_t node = fabric.network().gpus_per_node;
    const std::uint32_t ports = fabric.topology().nodes()[from].ports;
    ends[from]->send(packet, when, from / node == to / node ? 0 : ports - 1);
  }
  // Window by window, as the engine does it, until `until`.
  void run(Time until) {
    const Time window = fabric.window();
    for (; now < until; now += window) {
      for (const auto& end : ends) end->advance(now + window);
      for (std::size_t r = 0; r < fabric.routers(); ++r) fabric.router(r).advance(now + window);
      for (std::uint32_t n = 0; n < fabric.topology().nodes().size(); ++n) {
        for (std::uint32_t p = 0; p < fabric.topology().nodes()[n].ports; ++p) {
          fabric.out(n, p).packets.flip();
          fabric.out(n, p).credits.flip();
        }
      }
    }
  }
  [[nodiscard]] std::size_t arrived() const {
    std::size_t sum = 0;
    for (const auto& end : ends) sum += end->arrived.size();
    return sum;
  }
  [[nodiscard]] bool holds_packets() const {
    bool holds = std::any_of(ends.begin(), ends.end(), [](const auto& end) { return end->out().waiting() > 0; });
    for (std::size_t r = 0; r < fabric.routers(); ++r) holds = holds || fabric.router(r).holds_packets();
    return holds;
  }

  Fabric fabric;
  std::vector<std::unique_ptr<Endpoint>> ends;
  Time now;
};

// The time of one packet alone from one GPU to another.
inline Time time_alone(const NetworkSpec& spec, std::uint32_t gpus, std::uint16_t from, std::uint16_t to) {
  FabricBench bench(spec, gpus);
  bench.send(from, to, 7, Time(0));
  bench.run(microseconds(3));
  return bench.ends[to]->arrived.size() == 1 ? bench.ends[to]->arrived[0].when : Time::max();
}

}  // namespace weft
