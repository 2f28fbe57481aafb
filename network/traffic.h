// Synthetic traffic: endpoints that inject packets at random times and drain what comes, to measure a network by
// itself (Dally and Towles, Principles and Practices of Interconnection Networks, 2004, chapters 23 to 25).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "network/fabric.h"
#include "network/transmitter.h"
#include "sim/engine.h"

namespace weft {

enum class TrafficPattern : std::uint8_t {
  uniform,    // any other endpoint, equally likely
  transpose,  // (x, y) to (y, x) of a square; the diagonal stays silent
};

struct TrafficSpec {
  TrafficPattern pattern = TrafficPattern::uniform;
  double load = 0;           // packets an endpoint and cycle, offered as a Bernoulli process
  Time cycle;                // of a flit on a lane
  std::uint8_t payload = 0;  // bytes
  Time warm_up;              // packets made before this time are not measured
  Time end;                  // none are made after it
  std::uint64_t seed = 1;
};

struct TrafficStatistics {
  std::int64_t measured = 0;  // packets made from warm-up to end, that have arrived
  Time latency;               // of those, summed: from being made, so that waiting at the source counts
  std::int64_t accepted = 0;  // packets that arrived from warm-up to end
  std::int64_t packets = 0;   // that arrived in all
};

class TrafficEndpoint final : public Chip {
 public:
  TrafficEndpoint(const TrafficSpec& spec, Fabric& fabric, std::uint32_t gpu, std::uint32_t gpus);

  void advance(Time until) override;
  [[nodiscard]] Time next_activity() const override { return next_ < spec_.end ? next_ : Time::max(); }
  [[nodiscard]] const TrafficStatistics& statistics() const { return statistics_; }

 private:
  std::uint64_t random();
  void draw_next();
  [[nodiscard]] std::uint16_t draw_destination();

  TrafficSpec spec_;
  std::uint32_t gpu_, gpus_;
  Inbox inbox_;
  LinkWires* in_;
  LinkWires* out_;
  Time latency_;
  Transmitter transmitter_;
  std::vector<Departure> departures_;
  double log_silence_;  // of the probability that a cycle makes no packet
  std::uint64_t state_;
  Time next_;
  std::uint32_t sequence_ = 0;
  TrafficStatistics statistics_;
};

// Runs the traffic to its end, until all packets have arrived; uses up the process's engine.
struct TrafficResult {
  double latency_cycles = 0;  // mean
  double accepted = 0;        // packets an endpoint and cycle
  std::int64_t hops = 0;      // lanes that packets passed
  std::int64_t packets = 0;
};
[[nodiscard]] TrafficResult run_traffic(const TrafficSpec& spec, Fabric& fabric, std::uint32_t gpus,
                                        std::uint32_t threads = 1);

}  // namespace weft
