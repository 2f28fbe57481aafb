// Tables of sums, one a port, as in Klenk et al., "An in-network architecture for accelerating shared-memory
// multiprocessor collectives", ISCA 2020. An entry waits for the contributions of all members, which the adders of its
// port sum as they come. Pull: a request opens it, and the sum goes back to who asked. Push: the first contribution
// opens it, the others find it by group and line, and the sum goes to all. Sums that are pushed and wait are evicted,
// the least recently used first, when a newer one needs the place or when nothing has come to them for too long.
#pragma once

#include <memory>
#include <vector>

#include "network/reducer.h"
#include "switch_reduce/reduce_spec.h"

namespace weft {

class ReductionTable final : public Reducer {
 public:
  // `members`: most contributions of an entry. `sums`: where values travel.
  ReductionTable(const ReduceSpec& spec, std::uint32_t tables, std::uint32_t members = 1,
                 std::unique_ptr<LineSums> sums = nullptr);

  [[nodiscard]] TableArbitration arbitration() const override { return spec_.arbitration; }
  std::optional<std::uint32_t> open(std::uint32_t table, const Packet& request, std::uint32_t contributions,
                                    DataType type, Time now) override;
  std::optional<Time> add(std::uint32_t entry, const Packet& reply, Time now) override;
  Pushed push(std::uint32_t table, const Packet& packet, std::uint32_t contributions, DataType type, Time now) override;
  Packet close(std::uint32_t entry, Time now) override;
  [[nodiscard]] std::optional<Time> next_timeout(std::uint32_t table) const override;
  std::optional<Packet> take_timed_out(std::uint32_t table, Time now) override;
  void count_stall(std::uint32_t table, Time duration) override;
  void count_refused() override { ++statistics_.refused; }
  void count_wasted() override { ++statistics_.wasted_replies; }
  [[nodiscard]] std::uint32_t occupied() const override { return in_use_; }
  [[nodiscard]] ReducerStatistics statistics() const override { return statistics_; }
  [[nodiscard]] const std::vector<Time>& stalled_by_table() const override { return stalled_; }

  // What one entry takes of the table of a switch of so many ports.
  [[nodiscard]] static std::uint32_t entry_bytes(const ReduceSpec& spec, std::uint32_t ports) {
    return spec.entry_bytes + kept_bytes(spec.accumulation, ports);
  }
  [[nodiscard]] std::uint32_t entries_per_port() const { return entries_per_port_; }
  [[nodiscard]] std::uint32_t occupied(std::uint32_t table) const { return tables_[table].occupied; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Entry {
    Packet packet;  // the request, or the first push
    std::uint32_t table = 0;
    std::uint32_t contributions = 0;  // in all
    std::uint32_t missing = 0;
    DataType type = DataType::fp32;
    Time sum_ready;
    Time last_use;
    // Of an incomplete pushed sum: neighbours by last use, and the next of the same hash.
    std::uint32_t older = kNone, newer = kNone, next = kNone;
  };
  struct Table {
    std::uint32_t occupied = 0;
    std::uint32_t oldest = kNone, newest = kNone;  // of incomplete pushed sums, by last use
  };

  std::uint32_t take_entry(std::uint32_t table, const Packet& packet, std::uint32_t contributions, DataType type,
                           Time now);
  void free_entry(std::uint32_t entry, Time now);
  bool full(std::uint32_t table, std::uint32_t group);
  void operands_came(Entry& at, const Packet& operand, std::uint32_t count, Time now);
  std::uint32_t& bucket(std::uint32_t group, LineAddress line);
  [[nodiscard]] std::uint32_t find(std::uint32_t group, LineAddress line);
  void used(std::uint32_t entry, Time now);
  void forget(std::uint32_t entry);
  Packet evict(std::uint32_t entry, Time now);
  std::uint32_t& of_group(std::uint32_t table, std::uint32_t group);

  ReduceSpec spec_;
  Clock clock_;
  std::uint32_t entry_bytes_;
  std::uint32_t entries_per_port_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
  std::vector<Table> tables_;
  std::vector<std::uint32_t> by_group_;  // entries, by group and table; with group_entries only
  std::vector<Time> adders_free_;        // by table and adder
  std::vector<std::uint32_t> buckets_;   // of pushed sums, by hash of group and line
  std::vector<Time> stalled_;
  std::uint32_t in_use_ = 0;
  Time counted_until_;  // entry_seconds
  ReducerStatistics statistics_;
  std::unique_ptr<LineSums> sums_;
};

}  // namespace weft
