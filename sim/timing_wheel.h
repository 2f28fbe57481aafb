// The event queue of one chip: events by tick of the chip's own clock, handled in the order (tick, insertion). Pushing
// and popping append to recycled chunks: no sorting, and nothing is allocated once the pool has grown to the peak.
// `kSlots` ticks (a power of two, at least 64) are kept in the wheel, what is further away in a heap.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "sim/error.h"

namespace weft {

template <class Event, std::int64_t kSlots = 4096>
class TimingWheel {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::int64_t now() const { return now_; }

  // An event at or after now(); a tick in the past is an error of the caller.
  void push(std::int64_t tick, const Event& event) {
    WEFT_CHECK(tick >= now_, "event in the past");
    ++size_;
    if (tick - now_ >= kSlots) {
      far_.push(Far{tick, sequence_++, event});
    } else {
      append(tick, event);
    }
  }

  // The tick of the next event; kNever when there is none.
  [[nodiscard]] std::int64_t next() const {
    const std::int64_t near = next_near();
    return far_.empty() || far_.top().tick > near ? near : far_.top().tick;
  }

  // Handles all events before `end` in order, those that handlers push included, and moves now() to `end`. `announce`
  // sees each event a few events earlier, to prefetch what its handler will touch: state is larger than the host's
  // nearer caches, and events of one tick lie all over it.
  template <class Handler, class Announce>
  void run_until(std::int64_t end, Handler&& handle, Announce&& announce) {
    while (size_ != 0) {
      const std::int64_t tick = next();
      if (tick >= end) break;
      now_ = tick;
      admit_far();
      drain(tick, handle, announce);
    }
    if (end > now_) {
      now_ = end;
      admit_far();
    }
  }

  template <class Handler>
  void run_until(std::int64_t end, Handler&& handle) {
    run_until(end, std::forward<Handler>(handle), [](const Event&) {});
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint32_t kPerChunk = 16;
  static constexpr std::uint32_t kAhead = 6;  // events between an announcement and its handling

  // Whole cache lines of events; the links stand apart, so that a push touches its slot and the place of its event
  // only.
  struct alignas(64) Chunk {
    std::array<Event, kPerChunk> events;
  };
  struct Slot {
    std::uint32_t head = kNone;
    std::uint32_t tail = kNone;
    std::uint32_t count = 0;  // events in the tail chunk; all others are full
  };
  struct Far {
    std::int64_t tick;
    std::uint64_t sequence;
    Event event;
    bool operator<(const Far& other) const {
      return tick != other.tick ? tick > other.tick : sequence > other.sequence;
    }
  };

  static std::size_t slot_of(std::int64_t tick) { return static_cast<std::size_t>(tick & (kSlots - 1)); }

  void append(std::int64_t tick, const Event& event) {
    const std::size_t index = slot_of(tick);
    Slot& slot = slots_[index];
    if (slot.head == kNone || slot.count == kPerChunk) [[unlikely]] {
      extend(index);
    }
    pool_[slot.tail].events[slot.count++] = event;
  }

  // Another chunk for a slot that has none, or a full one.
  void extend(std::size_t index) {
    const std::uint32_t fresh = take_chunk();
    Slot& slot = slots_[index];
    if (slot.head == kNone) {
      slot.head = fresh;
      occupied_[index / 64] |= std::uint64_t{1} << (index % 64);
    } else {
      links_[slot.tail] = fresh;
    }
    slot.tail = fresh;
    slot.count = 0;
  }

  template <class Handler, class Announce>
  void drain(std::int64_t tick, Handler& handle, Announce& announce) {
    const std::size_t index = slot_of(tick);
    prefetch(slots_[(index + 1) % kSlots].head);
    std::uint32_t at = slots_[index].head;
    for (;;) {
      // Handlers may append to this very slot, and move the pool.
      const auto filled = [&] { return at == slots_[index].tail ? slots_[index].count : kPerChunk; };
      prefetch(links_[at]);
      for (std::uint32_t i = 0; i < std::min(filled(), kAhead); ++i) announce(pool_[at].events[i]);
      std::uint32_t i = 0;
      for (; i < filled(); ++i) {
        if (i + kAhead < filled()) announce(pool_[at].events[i + kAhead]);
        const Event event = pool_[at].events[i];
        handle(event);
      }
      size_ -= i;
      const bool last = at == slots_[index].tail;
      const std::uint32_t next_chunk = links_[at];
      links_[at] = free_;
      free_ = at;
      if (last) break;
      at = next_chunk;
    }
    slots_[index] = Slot{};
    occupied_[index / 64] &= ~(std::uint64_t{1} << (index % 64));
  }

  void prefetch(std::uint32_t chunk) const {
    if (chunk == kNone) return;
    const auto* bytes = reinterpret_cast<const std::byte*>(&pool_[chunk]);
    for (std::size_t offset = 0; offset < sizeof(Chunk); offset += 64) __builtin_prefetch(bytes + offset);
  }

  std::uint32_t take_chunk() {
    if (free_ == kNone) {
      pool_.emplace_back();
      links_.push_back(kNone);
      return static_cast<std::uint32_t>(pool_.size() - 1);
    }
    const std::uint32_t chunk = free_;
    free_ = links_[chunk];
    links_[chunk] = kNone;
    return chunk;
  }

  void admit_far() {
    while (!far_.empty() && far_.top().tick - now_ < kSlots) {
      append(far_.top().tick, far_.top().event);
      far_.pop();
    }
  }

  [[nodiscard]] std::int64_t next_near() const {
    if (size_ == far_.size()) return kNever;
    const std::size_t first = slot_of(now_);
    for (std::size_t step = 0; step <= kSlots / 64; ++step) {
      const std::size_t word = (first / 64 + step) % (kSlots / 64);
      std::uint64_t bits = occupied_[word];
      if (step == 0) bits &= ~std::uint64_t{0} << (first % 64);
      if (step == kSlots / 64) bits &= ~(~std::uint64_t{0} << (first % 64));
      if (bits == 0) continue;
      const std::size_t slot = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      return now_ + static_cast<std::int64_t>((slot + kSlots - first) & (kSlots - 1));
    }
    return kNever;
  }

  std::array<Slot, kSlots> slots_{};
  std::array<std::uint64_t, kSlots / 64> occupied_{};
  std::vector<Chunk> pool_;
  std::vector<std::uint32_t> links_;  // by chunk: the next of its slot, or of the free ones
  std::uint32_t free_ = kNone;
  std::priority_queue<Far> far_;
  std::int64_t now_ = 0;
  std::uint64_t sequence_ = 0;
  std::size_t size_ = 0;
};

}  // namespace weft
