#include <bit>

#include "network/generated_schedule.h"
#include "network/schedule_generators.h"

namespace weft {

namespace {

// Dissemination (Hensgen, Finkel, Manber 1988): in round k a token to the rank 2^k places on.
class DisseminationBarrier : public GeneratedSchedule {
 public:
  using GeneratedSchedule::GeneratedSchedule;
  [[nodiscard]] std::uint32_t blocks(std::uint32_t /*rank*/) const override { return 1; }
  [[nodiscard]] std::uint64_t steps(std::uint32_t /*rank*/, std::uint32_t /*block*/,
                                    std::uint32_t /*group*/) const override {
    return std::uint64_t{2} * static_cast<std::uint32_t>(std::bit_width(ranks() - 1));
  }
  [[nodiscard]] ScheduleStep step(std::uint32_t rank, std::uint32_t /*block*/, std::uint32_t /*group*/,
                                  std::uint64_t index) const override {
    const std::uint32_t distance = 1U << (index / 2);
    ScheduleStep step;
    return index % 2 == 0 ? step.send(after(rank, distance)) : step.receive(before(rank, distance));
  }
};

}  // namespace

std::unique_ptr<CollectiveSchedule> make_dissemination_barrier(const ScheduleRequest& request) {
  return std::make_unique<DisseminationBarrier>(request);
}

}  // namespace weft
