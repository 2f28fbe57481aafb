#include "gpu_model/warp_schedulers.h"

#include <algorithm>
#include <limits>

namespace weft {

std::uint8_t WarpSchedulers::place(std::uint32_t warps) {
  if (free_.empty()) {
    free_.resize(std::size_t{count_} * kSlotCount, 0);
    communication_.resize(kSlotCount);
  }
  if (warps >= count_) return static_cast<std::uint8_t>((1U << count_) - 1);
  std::uint32_t mask = 0;
  for (std::uint32_t w = 0; w < warps; ++w) {
    mask |= 1U << next_partition_;
    next_partition_ = next_partition_ + 1 == count_ ? 0 : next_partition_ + 1;
  }
  return static_cast<std::uint8_t>(mask);
}

void WarpSchedulers::add(const Ready& ready) {
  waiting_.push_back(ready);
  const Communication& communication = communication_[static_cast<std::size_t>(ready.busiest)];
  waiting_.back().communication_before = communication.taken - std::max<SubCycle>(0, communication.until - ready.since);
}

SubCycle WarpSchedulers::opens(const Ready& ready) const {
  SubCycle earliest = std::numeric_limits<SubCycle>::max();
  const auto slot = static_cast<std::size_t>(ready.busiest);
  for (std::uint32_t p = 0; p < count_; ++p) {
    if ((ready.partitions >> p & 1U) != 0) earliest = std::min(earliest, free_[p * kSlotCount + slot]);
  }
  return earliest;
}

SubCycle WarpSchedulers::opens() const {
  SubCycle earliest = std::numeric_limits<SubCycle>::max();
  for (const Ready& ready : waiting_) earliest = std::min(earliest, opens(ready));
  return earliest;
}

// Round robin begins behind who went last and goes round.
bool WarpSchedulers::before(const Ready& a, const Ready& b) const {
  if (policy_ == WarpPolicy::round_robin) return a.age - last_ - 1 < b.age - last_ - 1;
  if (a.age == last_ || b.age == last_) return a.age == last_;
  return a.age < b.age;
}

std::optional<WarpSchedulers::Ready> WarpSchedulers::pick(SubCycle now) {
  std::size_t best = waiting_.size();
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    if (best != waiting_.size() && before(waiting_[best], waiting_[i])) continue;
    if (opens(waiting_[i]) <= now) best = i;
  }
  if (best == waiting_.size()) return std::nullopt;
  const Ready ready = waiting_[best];
  waiting_[best] = waiting_.back();
  waiting_.pop_back();
  last_ = ready.age;
  return ready;
}

WarpSchedulers::Booked WarpSchedulers::book(const Ready& ready, const Phase& phase, Stretch stretch,
                                            bool communication) {
  const auto busiest = static_cast<std::size_t>(ready.busiest);
  Booked booked{std::numeric_limits<SubCycle>::max(), std::numeric_limits<SubCycle>::max(), 0, 0};
  for (std::uint32_t p = 0; p < count_; ++p) {
    if ((ready.partitions >> p & 1U) == 0) continue;
    for (std::size_t slot = 0; slot < kSlotCount; ++slot) {
      const SubCycle full_clock = slot == busiest ? phase.compute : phase.beside[slot];
      if (full_clock == 0) continue;
      const SubCycle time = stretch(full_clock);
      const SubCycle start = std::max(free(p, slot), ready.since);
      free(p, slot) = start + time;
      booked.done = std::max(booked.done, start + time);
      if (slot != busiest) continue;
      booked.start = std::min(booked.start, start);
      booked.free = std::min(booked.free, start + time);
    }
  }
  Communication& others = communication_[busiest];
  booked.held_by_communication =
      std::clamp<SubCycle>(others.taken - ready.communication_before, 0, booked.start - ready.since);
  if (communication) {
    others.taken += stretch(phase.compute);
    others.until = std::max(others.until, booked.free);
  }
  return booked;
}

}  // namespace weft
