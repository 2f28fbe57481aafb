#include "network/traffic.h"

#include <cmath>

#include "sim/error.h"

namespace weft {

TrafficEndpoint::TrafficEndpoint(const TrafficSpec& spec, Fabric& fabric, std::uint32_t gpu, std::uint32_t gpus)
    : spec_(spec),
      gpu_(gpu),
      gpus_(gpus),
      in_(&fabric.in(gpu, 0)),
      out_(&fabric.out(gpu, 0)),
      latency_(fabric.lanes(gpu, 0).front()->spec().latency),
      transmitter_(fabric.lanes(gpu, 0).front(), static_cast<std::uint32_t>(fabric.lanes(gpu, 0).size()), *out_),
      log_silence_(std::log1p(-spec.load)),
      state_(spec.seed * 0x9E3779B97F4A7C15ULL + gpu) {
  in_->credits.announce_to(inbox_, 0);
  in_->packets.announce_to(inbox_, 1);
  draw_next();
}

// splitmix64 (Steele, Lea, Flood, 2014): the standard library's distributions differ between implementations.
std::uint64_t TrafficEndpoint::random() {
  std::uint64_t x = state_ += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// The next success of a Bernoulli process: a geometric number of cycles on.
void TrafficEndpoint::draw_next() {
  const double u = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
  const double gap = spec_.load >= 1 ? 1 : std::floor(std::log(u) / log_silence_) + 1;
  next_ += Time(static_cast<std::int64_t>(std::min(gap, 1e9)) * spec_.cycle.count());
}

std::uint16_t TrafficEndpoint::draw_destination() {
  if (spec_.pattern == TrafficPattern::transpose) {
    const auto side = static_cast<std::uint32_t>(std::lround(std::sqrt(gpus_)));
    return static_cast<std::uint16_t>(gpu_ % side * side + gpu_ / side);
  }
  const auto other = static_cast<std::uint32_t>(((random() >> 32) * (gpus_ - 1)) >> 32);
  return static_cast<std::uint16_t>(other < gpu_ ? other : other + 1);
}

void TrafficEndpoint::advance(Time until) {
  inbox_.drain([&](std::uint32_t slot) {
    if (slot == 0) {
      departures_.clear();
      in_->credits.receive([&](const Credit& credit) { transmitter_.receive_credit(credit, departures_); });
      return;
    }
    in_->packets.receive([&](const Packet& packet) {
      out_->credits.send({packet.when + latency_, packet.lane, virtual_channel(packet.kind), packet.vc_class});
      ++statistics_.packets;
      if (packet.when >= spec_.warm_up && packet.when < spec_.end) ++statistics_.accepted;
      const Time made = spec_.cycle * packet.agent;
      if (made < spec_.warm_up) return;
      ++statistics_.measured;
      statistics_.latency += packet.when - made;
    });
  });
  const Time end = std::min(until, spec_.end);
  for (; next_ < end; draw_next()) {
    Packet packet;
    packet.kind = PacketKind::write;
    packet.source = static_cast<std::uint16_t>(gpu_);
    packet.destination = draw_destination();
    packet.line = sequence_++;
    packet.agent = static_cast<std::uint32_t>(next_ / spec_.cycle);
    packet.payload = spec_.payload;
    packet.lane = static_cast<std::uint8_t>(packet.line % transmitter_.lanes());
    if (packet.destination == gpu_) continue;
    Time start;
    static_cast<void>(transmitter_.submit(packet, next_, 0, start));
  }
}

TrafficResult run_traffic(const TrafficSpec& spec, Fabric& fabric, std::uint32_t gpus, std::uint32_t threads) {
  WEFT_CHECK(spec.load > 0 && spec.cycle > Time(0) && gpus > 1, "traffic has a load, a cycle and two ends");
  std::vector<std::unique_ptr<TrafficEndpoint>> ends;
  Engine engine({fabric.window(), threads});
  for (std::uint32_t g = 0; g < gpus; ++g) {
    ends.push_back(std::make_unique<TrafficEndpoint>(spec, fabric, g, gpus));
    engine.add_chip(fabric.topology().name(g), *ends.back());
  }
  fabric.add_to(engine, [&](std::uint32_t node) -> const Chip& { return *ends[node]; });
  engine.run({});
  TrafficStatistics sum;
  for (const auto& end : ends) {
    sum.measured += end->statistics().measured;
    sum.latency += end->statistics().latency;
    sum.accepted += end->statistics().accepted;
    sum.packets += end->statistics().packets;
  }
  const auto cycle = static_cast<double>(spec.cycle.count());
  TrafficResult result;
  result.packets = sum.packets;
  result.latency_cycles =
      sum.measured > 0 ? static_cast<double>(sum.latency.count()) / cycle / static_cast<double>(sum.measured) : 0;
  result.accepted = static_cast<double>(sum.accepted) * cycle / static_cast<double>((spec.end - spec.warm_up).count()) /
                    static_cast<double>(gpus);
  result.hops = sum.packets;  // the lanes from endpoints into the network
  for (std::size_t r = 0; r < fabric.routers(); ++r) {
    const Router& router = fabric.router(r);
    for (std::uint32_t p = 0; p < fabric.topology().nodes()[router.node()].ports; ++p) {
      for (std::uint32_t lane = 0; lane < fabric.lanes(router.node(), p).size(); ++lane) {
        result.hops += router.statistics(p, lane).packets;
      }
    }
  }
  return result;
}

}  // namespace weft
