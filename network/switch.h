// An input-buffered switch with virtual output queues. It stands alone, with a port to each GPU, or in a plane of two
// levels: leaves with ports to GPUs and one to each spine, which is chosen by the address. A packet leaves on the lane
// of the output port that has the number of the lane it came on, so that all traffic of one address stays in order and
// meets in one place. It multicasts, and reduces when it is given a Reducer.
//
// Pull over two levels: the entry at the leaf of who asks is mandatory, its port stalls without one. The spine and the
// other leaves combine replies where they have an entry, and pass them on where not. Push: leaves combine what comes
// from below, the last switch that the sum needs sends it to all; what a table evicts goes on to the next level, and
// from the last to the home GPU of its address.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "network/reducer.h"
#include "network/transmitter.h"
#include "sim/conductor.h"
#include "sim/ids.h"
#include "sim/timing_wheel.h"

namespace weft {

struct SwitchPort {
  LinkWires* in = nullptr;
  LinkWires* out = nullptr;
  std::vector<std::shared_ptr<const LinkTiming>> lanes = {};  // of those with another rate; null: as the link's
};

// Where it stands: its first ports lead to the GPUs [first_gpu, first_gpu + gpus), the others up.
struct SwitchPlace {
  std::uint32_t first_gpu = 0;
  std::uint32_t gpus = 0;
  std::uint32_t gpus_per_port = 1;  // a leaf's, of a spine
  std::uint32_t ports_up = 0;       // to as many spines
  std::uint32_t interleave = 1;     // lanes of a GPU, over which consecutive lines go
  bool spine = false;
  bool folded = false;  // the one port is that of all GPUs: one of them stands for all (MulticastImages)
};

// Of GPUs that do the same, one may stand for all of a switch (gpu_model/folded_programs.h): its port is everybody's.
// Where its multicasts go to lines from `first` to `end`, those of the GPU k places on go `stride` * k lines further,
// and they come to this GPU, too.
struct MulticastImages {
  LineAddress first = 0;
  LineAddress end = 0;
  std::int64_t stride = 0;
};

// The GPUs that a multicast reaches, and what is summed over them.
struct MulticastGroup {
  std::vector<GpuId> gpus;  // ascending
  DataType type = DataType::fp32;
  std::vector<MulticastImages> images = {};  // where one GPU stands for all
  // The only one that gets sums which all of them push; of switches of one level.
  std::optional<GpuId> home = {};
};

struct SwitchStatistics {
  std::int64_t packets = 0;          // that came in
  std::int64_t multicast_bytes = 0;  // payload that came in once and left to every member
  std::int64_t added_bytes = 0;      // payload that left beyond what came: copies and sums, less what was summed
};

class Switch final : public Chip {
 public:
  // `reducer` may be empty; it has a table for each port and lane. A multicast goes to the group whose number it has as
  // its destination.
  Switch(const SwitchSpec& spec, const std::shared_ptr<const LinkTiming>& link, std::uint32_t lanes,
         const std::vector<SwitchPort>& ports, std::unique_ptr<Reducer> reducer, const SwitchPlace& place,
         const std::vector<MulticastGroup>& groups);

  void advance(Time until) override;
  [[nodiscard]] Time next_activity() const override;
  // It only reacts, so it is silent as long as nothing is in it.
  [[nodiscard]] Time silent_until(Time now) const override { return wheel_.empty() ? Time::max() : now; }

  [[nodiscard]] const SwitchStatistics& statistics() const { return statistics_; }
  [[nodiscard]] const Reducer* reducer() const { return reducer_.get(); }
  [[nodiscard]] const Transmitter& output(std::uint32_t port) const { return outputs_[port]; }
  // Whether a packet or a sum is held here: at the end of a run that means it never got through.
  [[nodiscard]] bool holds_packets() const;

 private:
  // arrived: by `port`. sum: of an entry, is ready. partial: leaves incomplete. acknowledge: of pushes, is due.
  // timeout: of a table's oldest pushed sum.
  enum class EventKind : std::uint8_t { arrived, sum, partial, acknowledge, timeout };
  struct Event {
    Packet packet;
    std::uint16_t port = 0;
    EventKind kind = EventKind::arrived;
  };
  // An input buffer place that is freed when the last copy of its packet has left.
  struct Hold {
    std::uint16_t port = 0;
    std::uint8_t lane = 0;
    VirtualChannel channel = VirtualChannel::request;
    std::uint32_t copies = 0;
    Time last;
  };
  // Requests that wait for an entry of a port's table: in one queue, or one a group.
  struct Stalled {
    std::vector<std::deque<Packet>> queues;
    std::uint32_t waiting = 0;
    std::uint32_t turn = 0;
    Time since;
  };
  struct Branch {
    std::uint32_t port = 0;
    std::uint32_t gpus = 0;
  };
  struct Group {
    std::vector<Branch> below;  // ascending
    std::vector<std::uint16_t> gpus;
    std::uint32_t gpus_below = 0;
    DataType type = DataType::fp32;
    std::vector<MulticastImages> images;
    std::optional<GpuId> home;
    [[nodiscard]] LineAddress image(LineAddress line, std::size_t gpu) const;
    [[nodiscard]] bool goes_up() const { return gpus_below < gpus.size(); }
  };
  struct PushAcknowledge {
    std::uint8_t count = 0;
    bool timer_runs = false;
  };

  // switch.cpp
  void handle(const Event& event);
  void handle_arrival(const Packet& packet, std::uint32_t port);
  void multicast(const Packet& packet, std::uint32_t port);
  void handle_acknowledge(const Packet& packet, std::uint32_t port);
  void send(const Packet& packet, std::uint32_t port, std::uint32_t hold);
  std::uint32_t hold(const Packet& packet, std::uint32_t port, std::uint32_t copies);
  void departed(std::uint32_t hold, Time start);
  void give_credit(std::uint32_t port, std::uint8_t lane, VirtualChannel channel, Time when);
  void push_event(Time when, const Packet& packet, EventKind kind, std::uint32_t port = 0);
  [[nodiscard]] Time now() const;
  [[nodiscard]] std::uint32_t port_to(std::uint32_t gpu, LineAddress line) const;
  [[nodiscard]] bool is_below(std::uint32_t gpu) const { return gpu - place_.first_gpu < place_.gpus; }
  [[nodiscard]] std::uint32_t link(std::uint32_t port, std::uint8_t lane) const { return port * lanes_ + lane; }
  [[nodiscard]] std::int64_t tick_at_or_after(Time t) const;

  // switch_reduction.cpp
  bool begin_request(const Packet& packet, std::uint32_t port);
  void stall(const Packet& packet, std::uint32_t port);
  void resume_stalled(std::uint32_t port, std::uint8_t lane);
  bool start_reduction(const Packet& packet, std::uint32_t port);
  void handle_partial_reply(const Packet& packet, std::uint32_t port);
  void handle_push(const Packet& packet, std::uint32_t port);
  void acknowledge_push(const Packet& packet);
  void flush_push_acknowledge(const Packet& packet);
  void sum_is_ready(const Packet& last);
  void send_partial(Packet packet);
  void arm_timeout(std::uint32_t table);
  void handle_timeout(std::uint32_t table);
  [[nodiscard]] std::uint32_t level(const Packet& packet) const;
  [[nodiscard]] Group& group_of(const Packet& packet) { return groups_.at(packet.destination); }

  static constexpr std::uint32_t kNoHold = ~std::uint32_t{0};
  static constexpr std::uint32_t kNoPort = ~std::uint32_t{0};

  SwitchSpec spec_;
  Time link_latency_;
  std::uint32_t lanes_;
  SwitchPlace place_;
  std::uint32_t ports_down_;
  std::vector<Group> groups_;
  Inbox inbox_;
  std::vector<SwitchPort> ports_;
  std::vector<Transmitter> outputs_;
  std::unique_ptr<Reducer> reducer_;
  TimingWheel<Event> wheel_;
  std::vector<Hold> holds_;
  std::vector<std::uint32_t> free_holds_;
  std::vector<Stalled> stalled_;                          // by port and lane
  std::vector<std::vector<std::uint32_t>> acknowledged_;  // multicast writes: by source and agent, copies done so far
  std::vector<std::vector<PushAcknowledge>> push_acknowledges_;  // by port and lane, and agent
  std::vector<bool> timeout_armed_;                              // by table
  std::vector<Departure> departures_;
  SwitchStatistics statistics_;
};

}  // namespace weft
