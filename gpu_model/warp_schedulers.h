// The sub-partitions of a compute unit: each has a warp scheduler that issues an instruction a cycle, and pipes of its
// own. They are booked round by round (phase.h): of a block's round, each sub-partition that holds warps of it does an
// equal part. A round is taken from the waiting ones when the slot that takes it longest gets free; in its other slots
// it stands behind who has them, so that rounds of different kernels share issue slots and overlap on different pipes.
//
// Left out: stalls within a round (dependent instructions, register banks), and preemption: who goes first is decided
// between rounds. Blocks of fewer warps than sub-partitions take some of them, in turn.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpu_model/clock_domain.h"
#include "gpu_model/gpu_spec.h"
#include "gpu_model/phase.h"

namespace weft {

class WarpSchedulers {
 public:
  static constexpr std::uint32_t kMost = 8;

  WarpSchedulers(std::uint32_t schedulers, WarpPolicy policy) : count_(schedulers), policy_(policy) {}

  // Warps of one block whose next round can begin.
  struct Ready {
    std::uint32_t agent = 0;
    std::uint32_t age = 0;  // number of the block among those placed; unique
    SubCycle since = 0;
    Slot busiest = Slot::fp32;
    std::uint8_t partitions = 0;        // as a mask
    SubCycle communication_before = 0;  // filled in by add()
  };
  struct Booked {
    SubCycle start = 0;                  // on the busiest slot, of the first sub-partition
    SubCycle free = 0;                   // the busiest slot of it is free again
    SubCycle done = 0;                   // through on all slots of all sub-partitions
    SubCycle held_by_communication = 0;  // of the wait for the start: rounds of communication on that slot
  };

  // The sub-partitions of a block of so many warps that is placed now.
  std::uint8_t place(std::uint32_t warps);

  void add(const Ready& ready);
  [[nodiscard]] bool waiting() const { return !waiting_.empty(); }
  // Takes out whose round begins next, if one can at `now`.
  std::optional<Ready> pick(SubCycle now);
  // Books a round; its phase says what it takes. `communication`: it is one of a collective's.
  Booked book(const Ready& ready, const Phase& phase, Stretch stretch = {}, bool communication = false);
  // When the first of the waiting can begin, or could have. There is one.
  [[nodiscard]] SubCycle opens() const;

 private:
  [[nodiscard]] SubCycle& free(std::uint32_t partition, std::size_t slot) {
    return free_[std::size_t{partition} * kSlotCount + slot];
  }
  // The busiest slot of who waits is free on one of its sub-partitions.
  [[nodiscard]] SubCycle opens(const Ready& ready) const;
  [[nodiscard]] bool before(const Ready& a, const Ready& b) const;

  std::uint32_t count_;
  WarpPolicy policy_;
  std::uint32_t next_partition_ = 0;
  std::uint32_t last_ = ~std::uint32_t{0};  // age of who went last
  std::vector<Ready> waiting_;
  // From the first block on, since many units never see one:
  std::vector<SubCycle> free_;  // by sub-partition and slot
  // By busiest slot: what rounds of communication took of it so far, and when the last of them is through.
  struct Communication {
    SubCycle taken = 0;
    SubCycle until = 0;
  };
  std::vector<Communication> communication_;
};

}  // namespace weft
