#include "network/collective_schedule.h"

#include <fmt/format.h>

namespace weft {

std::string CollectiveSchedule::describe(std::uint32_t rank, std::uint32_t block, std::uint32_t group,
                                         std::uint64_t index) const {
  return fmt::format("rank {}, block {}, group {}, step {}", rank, block, group, index);
}

}  // namespace weft
