// An input-buffered switch with virtual output queues: one port a GPU, each with the same number of lanes. A packet
// leaves on the lane of the output port that has the number of the lane it came on, so that all traffic of one address
// stays in order and meets in one place. It multicasts, and reduces when it is given a Reducer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "network/reducer.h"
#include "network/transmitter.h"
#include "sim/engine.h"
#include "sim/timing_wheel.h"

namespace weft {

struct SwitchPort {
  LinkWires* in = nullptr;
  LinkWires* out = nullptr;
  std::vector<std::shared_ptr<const LinkTiming>> lanes = {};  // of those with another rate; null: as the link's
};

struct SwitchStatistics {
  std::int64_t packets = 0;          // that came in
  std::int64_t multicast_bytes = 0;  // payload that came in once and left to every member
  std::int64_t added_bytes = 0;      // payload that left beyond what came: copies and sums, less what was summed
};

class Switch final : public Chip {
 public:
  // ports[g] belongs to GPU first_gpu + g. `reducer` may be empty. A multicast goes to the ports of the group whose
  // number it has as its destination: `groups` lists the ports of each; without any, group 0 is all of them.
  Switch(const SwitchSpec& spec, const std::shared_ptr<const LinkTiming>& link, std::uint32_t lanes,
         const std::vector<SwitchPort>& ports, std::unique_ptr<Reducer> reducer, std::uint32_t first_gpu = 0,
         std::vector<std::vector<std::uint32_t>> groups = {});

  void advance(Time until) override;
  [[nodiscard]] Time next_activity() const override;
  // It only reacts, so it is silent as long as nothing is in it.
  [[nodiscard]] Time silent_until(Time now) const override { return wheel_.empty() ? Time::max() : now; }

  [[nodiscard]] const SwitchStatistics& statistics() const { return statistics_; }
  [[nodiscard]] const Reducer* reducer() const { return reducer_.get(); }
  [[nodiscard]] const Transmitter& output(std::uint32_t port) const { return outputs_[port]; }
  // Whether a packet is held here: at the end of a run that means it never got through.
  [[nodiscard]] bool holds_packets() const;

 private:
  struct Event {
    Packet packet;
    bool made_here = false;  // holds no input buffer
  };
  // An input buffer place that is freed when the last copy of its packet has left.
  struct Hold {
    std::uint16_t port = 0;
    std::uint8_t lane = 0;
    VirtualChannel channel = VirtualChannel::request;
    std::uint32_t copies = 0;
    Time last;
  };
  struct StalledPort {
    std::deque<Packet> packets;
    Time since;
  };

  void handle(const Event& event);
  void handle_request(const Packet& packet);
  bool start_reduction(const Packet& packet);
  void resume_stalled(std::uint32_t port);
  void multicast(const Packet& packet);
  void handle_partial_reply(const Packet& packet);
  void handle_acknowledge(const Packet& packet);
  void send(const Packet& packet, std::uint32_t port, std::uint32_t hold);
  std::uint32_t hold(const Packet& packet, std::uint32_t copies);
  void departed(std::uint32_t hold, Time start);
  void give_credit(std::uint32_t port, std::uint8_t lane, VirtualChannel channel, Time when);
  [[nodiscard]] Time now() const;
  // The port of a GPU of a packet, and that by which the packet came in.
  [[nodiscard]] std::uint32_t port_of(std::uint32_t gpu) const { return gpu - first_gpu_; }
  [[nodiscard]] std::uint32_t input_port(const Packet& packet) const;
  [[nodiscard]] std::int64_t tick_at_or_after(Time t) const;

  SwitchSpec spec_;
  Time link_latency_;
  std::vector<std::vector<std::uint32_t>> groups_;  // ports, ascending
  std::uint32_t first_gpu_;
  Inbox inbox_;
  std::vector<SwitchPort> ports_;
  std::vector<Transmitter> outputs_;
  std::unique_ptr<Reducer> reducer_;
  TimingWheel<Event> wheel_;
  std::vector<Hold> holds_;
  std::vector<std::uint32_t> free_holds_;
  std::vector<StalledPort> stalled_;
  std::vector<std::vector<std::uint32_t>> acknowledged_;  // multicast writes: by source and agent, copies done so far
  std::vector<Departure> departures_;
  SwitchStatistics statistics_;
};

}  // namespace weft
