// An input-queued router: a queue for each lane that comes in and each virtual channel, or one more for each output
// (SwitchSpec::virtual_output_queues), routes, a separable allocator, credits. A packet waits at the head of its queue
// until its lane out is free, the input can be read, and the next router has a place for it.
//
// Allocation is event by event: an output that is free, wanted and has credits takes one of the queue heads that want
// it, round robin or the oldest; an input is read by one output at a time, `speedup` times as fast as lanes are. So a
// grant is a maximal match, found at the moment at which something becomes free, and idle routers cost nothing. Where
// the routes say so, what comes from terminals leaves only when nothing that is on its way can. Round robin gives all
// lanes from one terminal a turn together, in which they take turns: lanes into a network are not a weight against what
// is half-way through it.
//
// Packets of one path and virtual channel keep their order. With spray and adaptive routing, packets of one address may
// pass each other; what a program relies on still holds, since a sender's fence waits for all acknowledgements before
// it posts a flag.
//
// A router on the tree of a group takes contributions out of their queues as they come, and holds their places only
// while they wait for a slot. What it sends of its own waits in queues behind the outputs, which slots bound.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "network/aggregator.h"
#include "network/lane.h"
#include "network/routing.h"
#include "sim/conductor.h"
#include "sim/timing_wheel.h"

namespace weft {

struct RouterPort {
  LinkWires* in = nullptr;
  LinkWires* out = nullptr;
  std::vector<std::shared_ptr<const LinkTiming>> lanes;  // null: this lane is out
  Time latency;                                          // of the link, for credits
  bool terminal = false;  // to a GPU or into another network: one virtual channel a message class
};

class Router final : public Chip {
 public:
  // `node` is this router's in `routing`, which outlives it. `vc_classes` of each message class.
  Router(const SwitchSpec& spec, PathChoice choice, std::uint32_t node, const Routing& routing,
         std::vector<RouterPort> ports, std::uint32_t vc_classes, RouterTrees trees = {});

  void advance(Time until) override;
  [[nodiscard]] Time next_activity() const override;
  [[nodiscard]] Time silent_until(Time now) const override { return std::max(now, next_activity()); }

  [[nodiscard]] std::uint32_t node() const { return node_; }
  [[nodiscard]] const LaneStatistics& statistics(std::uint32_t port, std::uint32_t lane) const {
    return outputs_[first_lane_[port] + lane].statistics;
  }
  [[nodiscard]] bool holds_packets() const { return free_slots_.size() != slots_.size(); }
  // Null: it does not sum.
  [[nodiscard]] const Aggregator* aggregator() const { return trees_.aggregator.get(); }
  // Payload of packets of trees that it sent, less that of those that came: what copies added and sums and losses took.
  [[nodiscard]] std::int64_t added_bytes() const { return added_bytes_; }
  [[nodiscard]] std::uint32_t lanes() const { return static_cast<std::uint32_t>(outputs_.size()); }
  [[nodiscard]] std::int64_t lost_packets() const { return lost_; }

  // The first packet of a queue and what it waits for: places in buffers, here and at the next router.
  struct Blocked {
    std::uint32_t in_port = 0, in_lane = 0;
    std::uint32_t out_port = 0, out_lane = 0;
    VirtualChannel channel = VirtualChannel::request;
    std::uint8_t in_class = 0, out_class = 0;
  };
  [[nodiscard]] std::vector<Blocked> blocked() const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  // An event is a slot whose packet has crossed the router's pipeline, or an output to serve.
  using Event = std::uint32_t;
  static constexpr Event kServe = 1U << 31;

  struct Slot {
    Packet packet;  // `when`: since when it waits in its queue
    std::uint32_t next = kNone;
    std::uint32_t queue = 0;
    std::uint32_t output = 0;
    std::uint32_t credit = 0;  // that it needs: a place in credits_, by its lane and virtual channel out
  };
  // Of a lane in and a virtual channel, and with virtual output queues of an output.
  struct Queue {
    std::uint32_t head = kNone;
    std::uint32_t tail = kNone;
    std::uint32_t credit = 0;  // that its head needs
    std::uint16_t port = 0;
    std::uint16_t gives_way : 1 = 0;  // 1: to those of 0
    std::uint16_t bundle : 15 = 0;    // one of bundles_, plus one; 0: in none
    Wire<Credit>* credits = nullptr;  // to who fills it; null: this router itself
    Credit place;                     // that is given back there; `when`: the latency of that wire
  };
  // What a packet touches on its way out: two cache lines of the host.
  struct alignas(64) Output {
    Time free;
    std::int64_t serve_at = -1;           // tick of the event that serves it next; -1: none
    std::array<std::uint32_t, 2> last{};  // queue served last, of those that give way or do not
    std::uint32_t waiting = 0;            // packets in queues that will leave by it
    const LinkTiming* timing = nullptr;
    LinkWires* wires = nullptr;
    Time latency;  // of the link
    std::uint32_t credits = 0;
    std::uint16_t port = 0;
    std::uint8_t lane = 0;
    bool terminal = false;
    LaneStatistics statistics;
  };
  struct Grant {
    std::uint32_t queue = kNone;
    Time from;   // at the earliest
    Time retry;  // when no queue can be served: when one might
  };

  void bundle_terminals();
  void receive_packets(std::uint32_t port);
  void receive_credits(std::uint32_t port);
  void arrive(std::uint32_t slot);
  [[nodiscard]] std::uint32_t choose(const Hops& hops, const Packet& packet);
  [[nodiscard]] std::uint32_t least_waiting(const Hops& hops, std::uint32_t turn) const;
  [[nodiscard]] std::uint32_t live_lane(std::uint32_t port, std::uint32_t start) const;
  [[nodiscard]] std::uint32_t lane_by_turns(std::uint32_t port, const Packet& packet) const;
  // By its lane in: places of a queue, and of credits of a lane out.
  [[nodiscard]] std::uint32_t place(std::uint32_t lane, std::uint32_t vc) const { return (lane << vc_shift_) + vc; }
  [[nodiscard]] std::uint32_t lane_of(std::uint32_t queue) const { return place_of(queue) >> vc_shift_; }
  // By its place, and of the queues there that of an output.
  [[nodiscard]] std::uint32_t place_of(std::uint32_t queue) const { return queue >> output_shift_; }
  [[nodiscard]] std::uint32_t queue_of(std::uint32_t place, std::uint32_t output) const {
    return (place << output_shift_) + (output & output_mask_);
  }
  [[nodiscard]] std::uint32_t vc_of(std::uint32_t place) const { return place & ((1U << vc_shift_) - 1); }
  void serve(std::uint32_t output);
  void serve_at(std::uint32_t output, Time when);
  [[nodiscard]] Grant arbitrate(std::uint32_t output) const;
  void arbitrate_among(std::uint32_t output, std::uint32_t gives_way, Grant& grant) const;
  template <typename Wanted, typename Visit>
  bool scan(std::uint32_t start, Wanted wanted, Visit visit) const;
  bool consider(std::uint32_t queue, Time soon, Grant& grant, Time& oldest) const;
  void request(std::uint32_t queue, const Slot& head);
  void send(std::uint32_t output, std::uint32_t queue, Time from);
  void transmit(Output& out, std::uint32_t slot, std::uint32_t queue, Time ready, Time from);
  [[nodiscard]] Time now() const { return Time(wheel_.now() << kTickShift); }
  std::uint32_t take_slot(const Packet& packet, std::uint32_t queue);
  void free_slot(std::uint32_t slot) { free_slots_.push_back(slot); }
  void enqueue(std::uint32_t slot);

  // router_aggregation.cpp: packets of trees
  [[nodiscard]] bool is_internal(std::uint32_t queue) const { return queue >= first_internal_; }
  bool taken_by_tree(std::uint32_t slot);
  void contribution_came(std::uint32_t slot);
  void sum_came(const Packet& sum);
  void wake(std::uint32_t aggregator_slot);
  void pass_on(const Packet& packet, std::uint32_t port, Time when);
  void leave_queue(std::uint32_t slot);
  [[nodiscard]] std::uint32_t tree_output(const Packet& packet, std::uint32_t port) const;

  // The tick of the event queue is 0.52 ns, as a switch's: passage through the router is rounded up to it, lanes keep
  // exact times.
  static constexpr int kTickShift = 19;
  static constexpr Time kTick{std::int64_t{1} << kTickShift};

  SwitchSpec spec_;
  PathChoice choice_;
  std::uint32_t node_;
  std::uint32_t output_shift_ = 0, output_mask_ = 0;  // a lane in and a virtual channel have 2^shift queues, or one
  std::uint32_t vc_shift_;  // a lane has 2^shift places for virtual channels: class * kVirtualChannels + message class
  std::uint32_t classes_;
  Time passage_;             // latency, and what rounds up to the tick
  std::uint32_t words_ = 0;  // of a request mask
  const Routing* routing_;
  std::vector<RouterPort> ports_;
  std::vector<std::uint32_t> first_lane_;  // by port; lanes in and out are numbered alike
  bool all_lanes_work_ = true;

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;  // apart from them: a slot may be far from the host's caches
  std::vector<Queue> queues_;              // by lane in and virtual channel
  std::vector<Time> input_free_;           // by lane in
  std::vector<Output> outputs_;            // by lane out
  std::vector<std::uint64_t> requests_;    // by lane out: places with a queue whose head wants it
  std::vector<std::uint64_t> giving_way_;  // places with queues that give way; empty: none do
  // Terminals with several lanes, of whose places all have one turn of round robin.
  struct Bundle {
    std::uint32_t first = 0;            // place
    std::vector<std::uint64_t> places;  // as a mask
  };
  std::vector<Bundle> bundles_;
  std::vector<std::uint32_t> bundle_last_;  // by lane out and bundle: place served last
  std::vector<CreditCounter> credits_;      // by lane out and virtual channel
  std::vector<Time> credit_times_;
  TimingWheel<Event, 1024> wheel_;
  Inbox inbox_;

  RouterTrees trees_;
  // Queues from here on hold what this router sends of its own, one for each lane out and virtual channel.
  std::uint32_t first_internal_ = 0;
  std::vector<std::vector<std::uint32_t>> slot_waiters_;  // by slot of the aggregator: contributions to later chunks
  std::vector<std::uint32_t> woken_;
  std::int64_t added_bytes_ = 0;
  std::int64_t lost_ = 0;
  std::uint64_t tree_packets_ = 0;  // that came
  std::uint32_t turn_ = 0;          // of spray
};

}  // namespace weft
