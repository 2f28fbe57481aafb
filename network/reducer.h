// The reducing hardware of a switch, as the switch sees it. switch_reduce/ implements it.
#pragma once

#include <cstdint>
#include <optional>

#include "network/packet.h"

namespace weft {

struct ReducerStatistics {
  std::int64_t reduced_bytes = 0;           // of results that left
  std::int64_t table_high_water_bytes = 0;  // of the fullest port
  Time stalled;                             // ports waiting for an entry, summed over ports
};

class Reducer {
 public:
  virtual ~Reducer() = default;
  // A multicast read comes in by `port` and wants an entry for `members` replies. nullopt: the port's table is full.
  virtual std::optional<std::uint32_t> open(std::uint32_t port, const Packet& request, std::uint32_t members) = 0;
  // A member's reply has come at `now`. When it was the last one: the time at which the sum is ready.
  virtual std::optional<Time> add(std::uint32_t entry, const Packet& reply, Time now) = 0;
  // The sum leaves for the requester; the entry is free again. Returns the request it answers.
  virtual Packet close(std::uint32_t entry) = 0;
  virtual void count_stall(Time duration) = 0;
  [[nodiscard]] virtual ReducerStatistics statistics() const = 0;
};

}  // namespace weft
