// The reducing hardware of a switch, as the switch sees it. switch_reduce/ implements it. Tables are numbered by
// physical port: port of the switch times lanes, plus lane. Times of calls ascend.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "network/packet.h"
#include "sim/program.h"

namespace weft {

// Who gets an entry that becomes free while requests wait for one: the oldest, or the groups in turn.
enum class TableArbitration : std::uint8_t { fifo, round_robin };

struct ReducerStatistics {
  std::int64_t reduced_bytes = 0;           // of results that left
  std::int64_t table_high_water_bytes = 0;  // of the fullest port
  Time stalled;                             // ports with a request that waits for an entry, summed over ports
  std::int64_t entries_opened = 0;
  std::int64_t refused = 0;         // requests of an upper level that went on uncombined for want of an entry
  std::int64_t wasted_replies = 0;  // partial replies and pushes that therefore met no sum here
  std::int64_t evicted = 0;         // pushed sums that left incomplete for a newer one
  std::int64_t timed_out = 0;       // the same, because nothing came to them
  double entry_seconds = 0;         // entries x time
  Time adders_busy;                 // summed over adders
};

// What a pushed contribution did.
struct Pushed {
  std::optional<std::uint32_t> entry;  // none: every entry of the table is about to leave
  std::optional<Time> ready;           // the sum is complete then
  std::optional<Packet> evicted;       // for its place: as pushed, with the contributions counted
  Time evicted_at;
};

class Reducer {
 public:
  virtual ~Reducer() = default;
  [[nodiscard]] virtual TableArbitration arbitration() const = 0;

  // Pull. A multicast read wants an entry of `table` for `contributions` of members. nullopt: there is none.
  virtual std::optional<std::uint32_t> open(std::uint32_t table, const Packet& request, std::uint32_t contributions,
                                            DataType type, Time now) = 0;
  // A reply of packet.count contributions has come at `now`. When it was the last one: the time of the sum.
  virtual std::optional<Time> add(std::uint32_t entry, const Packet& reply, Time now) = 0;
  // Push. Adds packet.count contributions to the sum of their group and line in `table`, of `contributions` in all.
  virtual Pushed push(std::uint32_t table, const Packet& packet, std::uint32_t contributions, DataType type,
                      Time now) = 0;
  // The sum leaves; the entry is free again. Returns the request it answers, or the first push, with the contributions.
  virtual Packet close(std::uint32_t entry, Time now) = 0;

  // The next time at which a pushed sum of `table` will have waited too long, if there is one; and one that has.
  [[nodiscard]] virtual std::optional<Time> next_timeout(std::uint32_t table) const = 0;
  virtual std::optional<Packet> take_timed_out(std::uint32_t table, Time now) = 0;

  virtual void count_stall(std::uint32_t table, Time duration) = 0;
  virtual void count_refused() = 0;
  virtual void count_wasted() = 0;
  [[nodiscard]] virtual std::uint32_t occupied() const = 0;
  [[nodiscard]] virtual ReducerStatistics statistics() const = 0;
  [[nodiscard]] virtual const std::vector<Time>& stalled_by_table() const = 0;
};

}  // namespace weft
