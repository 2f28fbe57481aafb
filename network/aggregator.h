// What a router that sums chunks knows of its slots and adders. switch_reduce/ implements it. Slots are numbered; lanes
// as the router's lanes in. Times of calls ascend.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "network/aggregation_tree.h"
#include "network/packet.h"

namespace weft {

struct AggregatorStatistics {
  std::int64_t reduced_bytes = 0;    // of sums that left
  std::uint32_t high_water = 0;      // slots in use at once
  std::int64_t duplicates = 0;       // contributions that had come before
  std::int64_t stale = 0;            // of them, to a chunk whose slot another one has by now
  std::int64_t stalled_packets = 0;  // contributions that waited for their slot
  Time stalled;                      // summed over them
  Time adders_busy;                  // summed over adders
};

// What became of a contribution.
struct Contributed {
  enum class As : std::uint8_t {
    summed,
    completed,     // it was the last one: the sum is there at `when`
    waiting,       // its slot still has an earlier chunk
    dropped,       // a duplicate that nobody waits for
    asks_above,    // a duplicate: the sum went up and the result has not come
    asks_for_sum,  // a duplicate: the result has been here, and did not reach who sends this
  } as = As::dropped;
  std::uint32_t slot = 0;
  Time when = Time(0);
};

class Aggregator {
 public:
  virtual ~Aggregator() = default;
  [[nodiscard]] virtual std::uint32_t slots() const = 0;
  virtual Contributed contribute(const Packet& packet, std::uint32_t lane, Time now) = 0;
  // The result of a chunk has come: its slot is free for the next one, but keeps the result until then. None: it had
  // come before.
  virtual std::optional<std::uint32_t> finish(const Packet& sum) = 0;
  virtual void count_stall(Time duration) = 0;
  [[nodiscard]] virtual AggregatorStatistics statistics() const = 0;
};

// For a router of `lanes` lanes, with its places in the trees of `groups`.
using AggregatorFactory = std::function<std::unique_ptr<Aggregator>(
    const std::vector<AggregationGroup>& groups, const std::vector<TreePlace>& places, std::uint32_t lanes)>;

// Which packets of trees get lost on links: each with the same probability, by a hash of seed, link and count.
struct PacketLoss {
  double probability = 0;
  std::uint64_t seed = 0;
  [[nodiscard]] bool lost(std::uint64_t link, std::uint64_t count) const {
    if (probability == 0) return false;
    std::uint64_t x = seed + link * 0xD1B54A32D192ED03ULL + count * 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;  // splitmix64 (Steele, Lea, Flood, 2014)
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    x ^= x >> 31;
    return static_cast<double>(x >> 11) * 0x1p-53 < probability;
  }
};

// All that the routers of a network need to sum.
struct AggregationPlan {
  std::vector<AggregationGroup> groups;
  AggregatorFactory make_aggregator;
  PacketLoss loss;
};

// Of one router.
struct RouterTrees {
  std::vector<TreePlace> places;           // by group; empty: the router is on no tree
  std::unique_ptr<Aggregator> aggregator;  // null: it only passes packets on
  PacketLoss loss;
};

}  // namespace weft
