// Ports that lead towards targets, by table: targets of consecutive numbers with the same ports are one run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "network/routing.h"
#include "sim/error.h"

namespace weft {

class PortRuns {
 public:
  explicit PortRuns(std::size_t tables) : tables_(tables) {}
  // Of a table, targets ascend. No ports: no route goes there.
  void add(std::size_t table, std::uint32_t target, const std::vector<std::uint16_t>& ports) {
    std::vector<Run>& runs = tables_[table];
    if (!runs.empty() && runs.back().count == ports.size() &&
        std::equal(ports.begin(), ports.end(), ports_.begin() + runs.back().first)) {
      return;
    }
    runs.push_back({target, static_cast<std::uint32_t>(ports_.size()), static_cast<std::uint32_t>(ports.size())});
    ports_.insert(ports_.end(), ports.begin(), ports.end());
  }
  // Deterministic packets prefer by `gpu`.
  [[nodiscard]] Hops towards(std::size_t table, std::uint32_t target, std::uint32_t gpu) const {
    const std::vector<Run>& runs = tables_[table];
    const auto after = std::upper_bound(runs.begin(), runs.end(), target,
                                        [](std::uint32_t number, const Run& run) { return number < run.target; });
    WEFT_CHECK(after != runs.begin() && (after - 1)->count > 0, "a packet where no route to its GPU begins");
    const Run& run = *(after - 1);
    Hops hops;
    hops.ports = &ports_[run.first];
    hops.count = static_cast<std::uint16_t>(run.count);
    hops.preferred = static_cast<std::uint16_t>(gpu % run.count);
    return hops;
  }
  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = ports_.capacity() * sizeof(ports_[0]);
    for (const auto& table : tables_) sum += sizeof(table) + table.capacity() * sizeof(Run);
    return sum;
  }

 private:
  // Targets from `target` up to the next run's leave by ports_[first .. first + count).
  struct Run {
    std::uint32_t target = 0;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  std::vector<std::vector<Run>> tables_;
  std::vector<std::uint16_t> ports_;
};

}  // namespace weft
