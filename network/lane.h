// What the sending ends of lanes have in common: how long packets take, credits in hand, statistics.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "network/network_spec.h"
#include "network/packet.h"
#include "sim/time_bins.h"
#include "sim/wire.h"

namespace weft {

// The two wires of one direction: packets go with it, credits for the opposite direction's packets too.
struct LinkWires {
  Wire<Packet> packets;
  Wire<Credit> credits;
  std::unique_ptr<TimeBins> load;  // how long its lanes were busy, in femtoseconds, by the sender; null: nobody asks
};

// A class of links and the serialisation times that follow from it: shared by all its lanes.
class LinkTiming {
 public:
  // `factor` of the bandwidth is left.
  explicit LinkTiming(const LinkSpec& spec, double factor = 1);
  [[nodiscard]] const LinkSpec& spec() const { return spec_; }
  // Flits of a packet, headers included, and how long a lane takes for it.
  struct Serialisation {
    Time time;
    Time first;  // of a train, its first packet: from then on it can be passed on
    std::uint32_t wire_bytes = 0;
  };
  [[nodiscard]] const Serialisation& of(const Packet& packet) const {
    return packet.kind == PacketKind::acknowledge ? by_writes_[packet.count] : by_payload_[packet.payload];
  }

 private:
  LinkSpec spec_;
  std::vector<Serialisation> by_payload_;  // by bytes of payload; a flag write carries one flit
  std::vector<Serialisation> by_writes_;   // by writes that are acknowledged
};

// Peaks are peaks over this time, a multiple of the shortest bin.
inline constexpr Time kStatisticsPeriod = microseconds(10);

struct LaneStatistics {
  std::int64_t payload_bytes = 0;
  std::int64_t wire_bytes = 0;  // flits, headers included
  std::int64_t packets = 0;
  Time busy;
  Time stalled;  // idle while the packet that left next was there already: credits, or the crossbar
  std::uint32_t queue_high_water = 0;  // packets that waited for the lane at once

  void count(Time start, const LinkTiming::Serialisation& packet, std::uint16_t payload, TimeBins* load) {
    if (start >= bin_end_) [[unlikely]] {
      next_bin(start, load);
    }
    busy += packet.time;
    payload_bytes += payload;
    wire_bytes += packet.wire_bytes;
    ++packets;
  }
  // The most busy time in one kStatisticsPeriod.
  [[nodiscard]] Time busiest() const { return later(busiest_before_, busy - busy_before_period_); }
  // What `load` does not have yet.
  void count_open_bin(TimeBins& load) const {
    if (bin_end_ > Time(0)) load.add(bin_end_ / kShortestTimeBin - 1, (busy - busy_before_bin_).count());
  }

 private:
  [[gnu::noinline]] void next_bin(Time start, TimeBins* load);

  Time bin_end_;             // of the last packet's bin; it counts where it starts
  Time busy_before_bin_;     // `busy` when that bin began
  Time busy_before_period_;  // and when its kStatisticsPeriod did
  Time busiest_before_;      // in the periods before
};

// The credits of one virtual channel of a lane. They are announced before they arrive, with the time from which they
// may be used; places for those times are taken from a common array, as many as were announced at once so far: most
// lanes of a large network never see more than a few.
class CreditCounter {
 public:
  explicit CreditCounter(std::uint32_t credits = 0) : ready_(credits) {}

  // When the next credit may be used: Time(0) for one in hand; Time::max() when none is announced.
  [[nodiscard]] Time next(const std::vector<Time>& times) const {
    if (ready_ > 0) return Time(0);
    return announced_ == 0 ? Time::max() : times[place_ + first_];
  }
  void take() {
    if (ready_ > 0) {
      --ready_;
      return;
    }
    first_ = first_ + 1 == places_ ? 0 : first_ + 1;
    --announced_;
  }
  // At `now`, for who never takes one at an earlier time: those whose time has come are in hand, and their places in
  // the array are used again at once, which keeps it in the host's nearer caches.
  void put_at(Time now, Time when, std::uint32_t limit, std::vector<Time>& times) {
    if (latest_ <= now) {
      ready_ += announced_;
      announced_ = first_ = 0;
    }
    if (when <= now && announced_ == 0) {
      ++ready_;
      return;
    }
    latest_ = later(latest_, when);
    put(when, limit, times);
  }
  void put(Time when, std::uint32_t limit, std::vector<Time>& times) {
    if (announced_ == places_) [[unlikely]] {
      grow(limit, times);
    }
    const std::uint32_t at = first_ + announced_;
    times[place_ + (at >= places_ ? at - places_ : at)] = when;
    ++announced_;
  }
  [[nodiscard]] std::uint32_t count() const { return ready_ + announced_; }

 private:
  static constexpr std::uint32_t kFirstPlaces = 8;

  // Twice as many places behind all others.
  void grow(std::uint32_t limit, std::vector<Time>& times) {
    const auto to = static_cast<std::uint32_t>(times.size());
    const std::uint32_t places = std::min(limit, std::max(kFirstPlaces, 2 * places_));
    times.resize(times.size() + places);
    for (std::uint32_t i = 0; i < places_; ++i) times[to + i] = times[place_ + (first_ + i) % places_];
    place_ = to;
    places_ = places;
    first_ = 0;
  }

  std::uint32_t ready_ = 0;
  std::uint32_t announced_ = 0;
  std::uint32_t first_ = 0;
  std::uint32_t place_ = 0;
  std::uint32_t places_ = 0;
  Time latest_;  // of those announced
};

}  // namespace weft
