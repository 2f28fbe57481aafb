// The sending end of a link: lanes that serialise packets, and the credits of the receiver's buffers. Used by GPUs and
// by the output ports of switches.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "network/network_spec.h"
#include "network/packet.h"
#include "sim/wire.h"

namespace weft {

// The two wires of one direction: packets go with it, credits for the opposite direction's packets too.
struct LinkWires {
  Wire<Packet> packets;
  Wire<Credit> credits;
};

// A packet that left its queue: who held it upstream may give its place free at this time.
struct Departure {
  Packet packet;          // as it was submitted
  std::uint32_t held_by;  // as given to submit()
  Time start;
};

struct LaneStatistics {
  std::int64_t payload_bytes = 0;
  std::int64_t wire_bytes = 0;  // flits, headers included
  std::int64_t packets = 0;
  Time busy;
  Time busiest;             // the most busy time in one kStatisticsPeriod
  std::int64_t period = 0;  // the period `busy_in_period` counts
  Time busy_in_period;
};

// Peaks are peaks over this time.
inline constexpr Time kStatisticsPeriod = microseconds(10);

class Transmitter {
 public:
  // `lanes` parallel lanes to one neighbour.
  Transmitter(const LinkSpec& spec, std::uint32_t lanes, LinkWires& out);

  // Sends a packet that is ready at `ready` on packet.lane. Packets of one lane and virtual channel keep their order.
  // Without a credit it waits here; `departures` then reports it later. Returns the start of its transmission if that
  // is already known. Calls on one lane must come with ascending `ready`.
  [[nodiscard]] bool submit(const Packet& packet, Time ready, std::uint32_t held_by, Time& start);

  // Credits that arrive; sends what waited for them and appends it to `departures`.
  void receive_credit(const Credit& credit, std::vector<Departure>& departures);

  [[nodiscard]] std::uint32_t lanes() const { return static_cast<std::uint32_t>(lanes_.size()); }
  [[nodiscard]] const LaneStatistics& statistics(std::uint32_t lane) const { return lanes_[lane].statistics; }
  [[nodiscard]] std::size_t waiting() const { return waiting_; }

 private:
  struct Waiting {
    Packet packet;
    Time ready;
    std::uint32_t held_by;
  };
  // Credits in hand, as a ring of the times from which they may be used: they are announced before they arrive.
  struct CreditRing {
    std::vector<Time> usable_from;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
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
    CreditRing credits[kVirtualChannels];
    std::deque<Waiting> queue[kVirtualChannels];
    LaneStatistics statistics;
  };

  Time transmit(Lane& lane, const Packet& packet, Time ready);
  static Time take_lane(Lane& lane, std::size_t channel, Time ready, Time credit, Time duration);

  LinkSpec spec_;
  std::vector<Time> flit_time_;  // by number of flits
  std::vector<Lane> lanes_;
  LinkWires* out_;
  std::size_t waiting_ = 0;
};

// Flits of a packet with its headers; a flag write carries one flit of data.
[[nodiscard]] std::uint32_t flits(const LinkSpec& spec, const Packet& packet);

}  // namespace weft
