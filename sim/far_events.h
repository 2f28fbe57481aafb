// What a timing wheel does not reach yet: buckets of `kSpan` ticks each, in the order of insertion, and behind them a
// heap. Stores that wait for HBM are far by thousands; sorted one by one they took a quarter of the time of a
// kernel that writes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <queue>

#include "sim/tick_events.h"

namespace weft {

template <class Event, std::int64_t kSpan>
class FarEvents {
  static_assert(std::has_single_bit(static_cast<std::uint64_t>(kSpan)));

 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // `begin`: the first tick that is far, a multiple of kSpan.
  explicit FarEvents(std::int64_t begin) : begin_(begin) {}

  [[nodiscard]] std::int64_t next() const { return next_; }  // tick of the first event

  void push(std::int64_t tick, const Event& event) {
    next_ = std::min(next_, tick);
    if (tick - begin_ < kBuckets * kSpan) {
      put(tick, event);
    } else {
      beyond_.push(Beyond{tick, sequence_++, event});
    }
  }

  // Hands over all events before `begin`, a multiple of kSpan: by their ticks in the order of insertion.
  template <class Take>
  void admit(std::int64_t begin, Take&& take) {
    while (next_ < begin) {
      begin_ = next_ & ~(kSpan - 1);
      bring_near();
      hand_over(bucket_of(begin_), take);
      begin_ += kSpan;
      bring_near();
      next_ = first();
    }
    begin_ = begin;
    bring_near();
  }

 private:
  static constexpr std::int64_t kBuckets = 64;  // a bit each
  struct Bucketed {
    std::int64_t tick;
    Event event;
  };
  struct Beyond {
    std::int64_t tick;
    std::uint64_t sequence;
    Event event;
    bool operator<(const Beyond& other) const {
      return tick != other.tick ? tick > other.tick : sequence > other.sequence;
    }
  };

  static std::size_t bucket_of(std::int64_t tick) { return static_cast<std::size_t>(tick / kSpan % kBuckets); }

  void put(std::int64_t tick, const Event& event) {
    const std::size_t bucket = bucket_of(tick);
    const std::uint64_t bit = std::uint64_t{1} << bucket;
    if ((occupied_ & bit) == 0) {
      occupied_ |= bit;
      buckets_.put_first(bucket, Bucketed{tick, event});
    } else {
      buckets_.put_behind(bucket, Bucketed{tick, event});
    }
  }

  template <class Take>
  void hand_over(std::size_t bucket, Take& take) {
    occupied_ &= ~(std::uint64_t{1} << bucket);
    const auto handle = [&](const Bucketed& one) { take(one.tick, one.event); };
    buckets_.take(bucket, handle);
  }

  // As soon as buckets reach them, before others are put into those.
  void bring_near() {
    for (; !beyond_.empty() && beyond_.top().tick - begin_ < kBuckets * kSpan; beyond_.pop()) {
      put(beyond_.top().tick, beyond_.top().event);
    }
  }

  [[nodiscard]] std::int64_t first() const {
    if (occupied_ == 0) return beyond_.empty() ? kNever : beyond_.top().tick;
    const std::size_t here = bucket_of(begin_);
    const int ahead = std::countr_zero(std::rotr(occupied_, static_cast<int>(here)));
    std::int64_t tick = kNever;
    const auto look = [&](const Bucketed& one) { tick = std::min(tick, one.tick); };
    buckets_.announce((here + static_cast<std::size_t>(ahead)) % kBuckets, look);
    return tick;
  }

  std::int64_t begin_;  // of the first bucket
  std::int64_t next_ = kNever;
  std::uint64_t occupied_ = 0;  // buckets that have events
  ManyTickEvents<Bucketed, kBuckets> buckets_;
  std::priority_queue<Beyond> beyond_;
  std::uint64_t sequence_ = 0;
};

}  // namespace weft
