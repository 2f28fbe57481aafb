// Stores of a unit that the L2 has taken but that wait for HBM: each gives its place back at its own, late time. A
// place matters only when the unit runs out of them, so the unit looks here then, which saves an event for each store.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu_model/clock_domain.h"

namespace weft {

class StoreCredits {
 public:
  // Times are told apart to `grain`, rounded down to a power of two (in SubCycle).
  explicit StoreCredits(SubCycle grain)
      : shift_(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<SubCycle>(grain, 1)))) - 1) {}

  [[nodiscard]] bool empty() const { return pending_ == 0; }

  // `count` places are free again at `when`, or up to one grain later. False, and nothing noted, if that is too far
  // from what is still noted: the caller keeps time by itself.
  bool add(SubCycle when, std::uint32_t count) {
    const std::int64_t slot = (when >> shift_) + 1;  // where it ends, so that nothing is free too early
    const std::int64_t first = pending_ == 0 ? slot : std::min(first_, slot);
    const std::int64_t last = pending_ == 0 ? slot : std::max(last_, slot);
    if (last - first >= kSlots) return false;
    first_ = first;
    last_ = last;
    if (places_.empty()) places_.resize(kSlots);
    places_[index(slot)] += static_cast<std::uint16_t>(count);
    pending_ += count;
    return true;
  }

  // Takes out the places that are free by now.
  std::uint32_t take(SubCycle now) {
    const std::int64_t last = now >> shift_;
    std::uint32_t taken = 0;
    for (; pending_ > 0 && first_ <= last; ++first_) {
      std::uint16_t& places = places_[index(first_)];
      taken += places;
      pending_ -= places;
      places = 0;
    }
    return taken;
  }

  // When the next ones are free; not when empty.
  SubCycle next() {
    while (places_[index(first_)] == 0) ++first_;
    return first_ << shift_;
  }

 private:
  static constexpr std::int64_t kSlots = 64;
  static std::size_t index(std::int64_t slot) { return static_cast<std::size_t>(slot) % kSlots; }

  std::vector<std::uint16_t> places_;  // from the first one on: many units never store
  std::int64_t first_ = 0;             // nothing is noted before this slot,
  std::int64_t last_ = 0;              // nor behind this one
  std::uint32_t pending_ = 0;
  int shift_;
};

}  // namespace weft
