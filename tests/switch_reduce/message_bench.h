// Endpoints that all-reduce a message of chunks through a network of routers that sum, with nothing behind them.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "network/message_endpoint.h"
#include "switch_reduce/aggregation_pool.h"
#include "tests/network/fabric_bench.h"

namespace weft {

// Adders that keep up with a lane of fabric_link(): a line in one of its flits' times, half a flit's latency.
inline AggregationSpec small_pool(std::uint32_t slots, std::uint32_t window) {
  AggregationSpec spec;
  spec.slots = slots;
  spec.window = window;
  spec.adders.bits = 1024;
  spec.adders.clock = megahertz(1000);
  spec.adders.lanes.fill(32);
  spec.latency = nanoseconds(10);
  return spec;
}

// A GPU that contributes `chunks` lines and takes their sums.
class MessageEnd final : public Chip {
 public:
  MessageEnd(Fabric& fabric, std::uint32_t gpu, const MessageEndpointSpec& spec)
      : wires_in_(&fabric.in(gpu, 0)),
        wires_out_(&fabric.out(gpu, 0)),
        out_(fabric.lanes(gpu, 0)[0], static_cast<std::uint32_t>(fabric.lanes(gpu, 0).size()), fabric.out(gpu, 0)),
        message(spec) {}
  void post(std::uint32_t chunks, Time now, std::uint16_t group = 0) {
    for (std::uint32_t c = 0; c < chunks; ++c) {
      message.post(group, 0, c, c, static_cast<std::uint16_t>(kLineBytes), now, sending_);
    }
    flush(now);
  }
  void advance(Time until) override {
    wires_in_->credits.receive([&](const Credit& credit) { out_.receive_credit(credit, departures_); });
    wires_in_->packets.receive([&](const Packet& packet) {
      wires_out_->credits.send({packet.when + kHop, packet.lane, virtual_channel(packet.kind), packet.vc_class});
      if (const auto agent = message.sum_came(packet, packet.when, sending_)) {
        sums.push_back(*agent);
        last = packet.when;
      }
      flush(packet.when);
    });
    const auto due = message.next_timeout();
    if (!due || *due >= until) return;
    message.send_again(until, sending_);
    flush(until);
  }
  [[nodiscard]] Time next_activity() const override { return Time::max(); }
  std::vector<std::uint32_t> sums;  // in the order in which they came
  Time last;

 private:
  void flush(Time now) {
    ready_ = std::max(ready_, now);
    for (MessageEndpoint::Sending& sending : sending_) {
      sending.packet.lane = static_cast<std::uint8_t>(sending.packet.entry % out_.lanes());
      Time start;
      static_cast<void>(out_.submit(sending.packet, ready_, 0, start));
    }
    sending_.clear();
  }
  LinkWires* wires_in_;
  LinkWires* wires_out_;
  Transmitter out_;
  Time ready_;
  std::vector<MessageEndpoint::Sending> sending_;
  std::vector<Departure> departures_;

 public:
  MessageEndpoint message;
};

class MessageBench {
 public:
  MessageBench(const NetworkSpec& network, const AggregationSpec& spec, std::vector<AggregationGroup> groups,
               std::uint32_t gpus)
      : fabric(network, gpus, {}, plan_of(spec, groups)) {
    for (std::uint32_t g = 0; g < gpus; ++g) {
      MessageEndpointSpec end;
      end.timeout = spec.timeout;
      end.loss = {spec.loss, 1};
      end.link = (std::uint64_t{1} << 32) + g;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        MessageEndpointSpec::Group& own = end.groups.emplace_back();
        const auto at = std::find(groups[i].gpus.begin(), groups[i].gpus.end(), GpuId{g});
        if (at == groups[i].gpus.end()) continue;
        own.streams = groups[i].streams;
        own.window = spec.window_of(own.streams);
        own.place = fabric.trees()[i].members[static_cast<std::size_t>(at - groups[i].gpus.begin())];
      }
      ends.push_back(std::make_unique<MessageEnd>(fabric, g, end));
    }
  }
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
  // Until all have the sums of `chunks` chunks and nothing is under way; false when it takes too long.
  bool finish(std::uint32_t chunks) {
    for (int step = 0; step < 200 && !all_came(chunks); ++step) run(now + microseconds(5));
    run(now + microseconds(5));
    return all_came(chunks);
  }
  // All end points have the sums of `chunks` chunks, each once.
  [[nodiscard]] bool all_came(std::uint32_t chunks) const {
    return std::all_of(ends.begin(), ends.end(), [&](const auto& end) {
      std::vector<std::uint32_t> sums = end->sums;
      std::sort(sums.begin(), sums.end());
      for (std::uint32_t c = 0; c < sums.size(); ++c) {
        if (sums[c] != c) return false;
      }
      return sums.size() == chunks;
    });
  }
  [[nodiscard]] AggregatorStatistics pools() const {
    AggregatorStatistics all;
    for (std::size_t r = 0; r < fabric.routers(); ++r) {
      if (fabric.router(r).aggregator() == nullptr) continue;
      const AggregatorStatistics one = fabric.router(r).aggregator()->statistics();
      all.high_water = std::max(all.high_water, one.high_water);
      all.duplicates += one.duplicates;
      all.stale += one.stale;
      all.stalled_packets += one.stalled_packets;
      all.stalled += one.stalled;
      all.reduced_bytes += one.reduced_bytes;
    }
    return all;
  }
  [[nodiscard]] std::int64_t retransmissions() const {
    std::int64_t sum = 0;
    for (const auto& end : ends) sum += end->message.statistics().retransmissions;
    return sum;
  }
  [[nodiscard]] std::int64_t lost() const {
    std::int64_t sum = 0;
    for (const auto& end : ends) sum += end->message.statistics().lost;
    for (std::size_t r = 0; r < fabric.routers(); ++r) sum += fabric.router(r).lost_packets();
    return sum;
  }
  [[nodiscard]] bool holds_packets() const {
    for (std::size_t r = 0; r < fabric.routers(); ++r) {
      if (fabric.router(r).holds_packets()) return true;
    }
    return false;
  }

  Fabric fabric;
  std::vector<std::unique_ptr<MessageEnd>> ends;
  Time now;

 private:
  static AggregationPlan plan_of(const AggregationSpec& spec, const std::vector<AggregationGroup>& groups) {
    return {groups,
            [spec](const auto& all, const auto& places, std::uint32_t lanes) {
              return std::make_unique<AggregationPool>(spec, all, places, lanes);
            },
            {spec.loss, 1}};
  }
};

// All of `gpus` GPUs.
inline AggregationGroup group_of_all(std::uint32_t gpus) {
  AggregationGroup group;
  for (std::uint32_t g = 0; g < gpus; ++g) group.gpus.push_back(GpuId{g});
  return group;
}

}  // namespace weft
