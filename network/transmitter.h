// The sending end of a link: lanes that serialise packets, and the credits of the receiver's buffers. Used by GPUs and
// by the output ports of switches with virtual output queues.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "network/lane.h"

namespace weft {

// A packet that left its queue: who held it upstream may give its place free at this time.
struct Departure {
  Packet packet;          // as it was submitted
  std::uint32_t held_by;  // as given to submit()
  Time start;
};

class Transmitter {
 public:
  // `lanes` parallel lanes to one neighbour. `passes_on`: what it sends it got by a link.
  Transmitter(const LinkSpec& spec, std::uint32_t lanes, LinkWires& out)
      : Transmitter(std::make_shared<const LinkTiming>(spec), lanes, out) {}
  Transmitter(std::shared_ptr<const LinkTiming> timing, std::uint32_t lanes, LinkWires& out, bool passes_on = false);

  // Before the first packet: this lane has another rate.
  void set_lane_timing(std::uint32_t lane, std::shared_ptr<const LinkTiming> timing);

  // Sends a packet that is ready at `ready` on packet.lane. Packets of one lane and virtual channel keep their order.
  // Without a credit it waits here; `departures` then reports it later. Returns the start of its transmission if that
  // is already known. Calls on one lane must come with ascending `ready`.
  [[nodiscard]] bool submit(const Packet& packet, Time ready, std::uint32_t held_by, Time& start);

  // Credits that arrive; sends what waited for them and appends it to `departures`.
  void receive_credit(const Credit& credit, std::vector<Departure>& departures);

  [[nodiscard]] const LinkSpec& spec() const { return timing_->spec(); }
  [[nodiscard]] std::uint32_t lanes() const { return static_cast<std::uint32_t>(lanes_.size()); }
  [[nodiscard]] const LaneStatistics& statistics(std::uint32_t lane) const { return lanes_[lane].statistics; }
  [[nodiscard]] std::size_t waiting() const { return waiting_; }
  // Whether the first packet of a lane and virtual channel waits for a credit.
  [[nodiscard]] bool waits(std::uint32_t lane, VirtualChannel channel) const {
    return !lanes_[lane].queue[static_cast<std::size_t>(channel)].empty();
  }

 private:
  struct Waiting {
    Packet packet;
    Time ready;
    std::uint32_t held_by;
  };
  // Side by side in their order: the host has the next one in its caches before it is asked for.
  class Queue {
   public:
    [[nodiscard]] bool empty() const { return first_ == packets_.size(); }
    void push(const Waiting& waiting) {
      if (2 * first_ >= packets_.size()) {  // half of them are gone, or all
        packets_.erase(packets_.begin(), packets_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
      }
      packets_.push_back(waiting);
    }
    [[nodiscard]] const Waiting& pop() { return packets_[first_++]; }

   private:
    std::vector<Waiting> packets_;
    std::size_t first_ = 0;
  };
  // The lane is idle while a packet waits for a credit that is announced but has not come: packets of the other virtual
  // channel go first.
  struct Gap {
    Time begin, end;
    std::size_t channel = 0;  // that waits
  };
  struct Lane {
    Time free;
    Gap gap;
    std::array<CreditCounter, kVirtualChannels> credits;
    std::array<Queue, kVirtualChannels> queue;
    std::uint32_t queued = 0;
    LaneStatistics statistics;
  };

  Time transmit(std::uint32_t lane, const Packet& packet, Time ready);
  static Time take_lane(Lane& lane, std::size_t channel, Time ready, Time credit, Time duration);
  [[nodiscard]] const LinkTiming& timing_of(std::uint32_t lane) const;

  std::shared_ptr<const LinkTiming> timing_;
  std::vector<Lane> lanes_;
  std::vector<std::shared_ptr<const LinkTiming>> lane_timing_;  // empty: all as timing_
  std::vector<Time> credit_times_;
  std::uint32_t waiting_ = 0;
  bool passes_on_;
  LinkWires* out_;
};

}  // namespace weft
