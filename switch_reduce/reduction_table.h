// Pull reduction: a table a port, as in Klenk et al., "An in-network architecture for accelerating shared-memory
// multiprocessor collectives", ISCA 2020. An entry waits for the replies of all members; adders sum them as they come.
#pragma once

#include <memory>
#include <vector>

#include "network/reducer.h"
#include "switch_reduce/reduce_spec.h"

namespace weft {

class ReductionTable final : public Reducer {
 public:
  // `sums`: where values travel.
  ReductionTable(const ReduceSpec& spec, std::uint32_t ports, std::unique_ptr<LineSums> sums = nullptr);

  std::optional<std::uint32_t> open(std::uint32_t port, const Packet& request, std::uint32_t members) override;
  std::optional<Time> add(std::uint32_t entry, const Packet& reply, Time now) override;
  Packet close(std::uint32_t entry) override;
  void count_stall(Time duration) override { statistics_.stalled += duration; }
  [[nodiscard]] ReducerStatistics statistics() const override { return statistics_; }

  // What one entry takes of the table of a switch of so many ports.
  [[nodiscard]] static std::uint32_t entry_bytes(const ReduceSpec& spec, std::uint32_t ports) {
    return spec.entry_bytes + kept_bytes(spec.accumulation, ports);
  }
  [[nodiscard]] std::uint32_t entries_per_port() const { return entries_per_port_; }
  [[nodiscard]] std::uint32_t occupied(std::uint32_t port) const { return occupied_[port]; }

 private:
  struct Entry {
    Packet request;
    std::uint32_t port = 0;
    std::uint32_t members = 0;
    std::uint32_t missing = 0;
    Time sum_ready;
  };

  ReduceSpec spec_;
  std::uint32_t entry_bytes_;
  std::uint32_t entries_per_port_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> occupied_;  // by port
  Time adders_free_;
  ReducerStatistics statistics_;
  std::unique_ptr<LineSums> sums_;
};

}  // namespace weft
