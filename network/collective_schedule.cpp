#include "network/collective_schedule.h"

#include <fmt/format.h>

#include <set>

namespace weft {

std::vector<std::uint32_t> CollectiveSchedule::sends_to(std::uint32_t rank, std::uint32_t block,
                                                        std::uint32_t group) const {
  std::set<std::uint32_t> peers;
  const std::uint64_t count = steps(rank, block, group);
  for (std::uint64_t i = 0; i < count; ++i) {
    const ScheduleStep next = step(rank, block, group, i);
    peers.insert(next.sends_to.begin(), next.sends_to.begin() + next.send_count);
  }
  return {peers.begin(), peers.end()};
}

bool CollectiveSchedule::is_waited_for(std::uint32_t rank, std::uint32_t block, std::uint32_t group) const {
  for (std::uint32_t b = 0; b < blocks(rank); ++b) {
    for (std::uint32_t g = 0; g < groups(rank, b); ++g) {
      const std::uint64_t count = steps(rank, b, g);
      for (std::uint64_t i = 0; i < count; ++i) {
        const ScheduleStep next = step(rank, b, g, i);
        for (std::size_t a = 0; a < next.after_count; ++a) {
          if (next.after.at(a).block == block && next.after.at(a).group == group) return true;
        }
      }
    }
  }
  return false;
}

std::string CollectiveSchedule::describe(std::uint32_t rank, std::uint32_t block, std::uint32_t group,
                                         std::uint64_t index) const {
  return fmt::format("rank {}, block {}, group {}, step {}", rank, block, group, index);
}

}  // namespace weft
