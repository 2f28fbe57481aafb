// The event queue of one chip: events by tick of the chip's own clock, handled in the order (tick, insertion). Each
// tick has its events in that order; nothing is sorted, and nothing is allocated once the pool has grown to the peak.
// The wheel has `kSlots` ticks (a power of two, 512 to 4096) and reaches from the eighth of them it is in to the end of
// the seven behind; what is further away waits in FarEvents. A slot is four bytes: a run has thousands of chips, and
// wheels that fit the host's caches together are worth more than a longer reach.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "sim/error.h"
#include "sim/far_events.h"
#include "sim/tick_events.h"

namespace weft {

template <class Event, std::int64_t kSlots = 2048>
class TimingWheel {
  static_assert(kSlots >= 512 && kSlots <= 4096 && std::has_single_bit(static_cast<std::uint64_t>(kSlots)));

 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] bool empty() const { return next() == kNever; }
  [[nodiscard]] std::int64_t now() const { return now_; }

  // An event at or after now(); a tick in the past is an error of the caller. Inlined, so that an event is written to
  // its place field by field: copied from where it was just put together, the copy waits for the stores.
  [[gnu::always_inline]] void push(std::int64_t tick, const Event& event) {
    if (static_cast<std::uint64_t>(tick - now_) < static_cast<std::uint64_t>(reach_ - now_)) [[likely]] {
      append(tick, event);
    } else {
      push_far(tick, event);
    }
  }

  // The tick of the next event; kNever when there is none.
  [[nodiscard]] std::int64_t next() const {
    const std::int64_t near = next_near(now_, reach_);
    return near < reach_ ? near : far_.next();  // what is far is further than all that is near
  }

  // Handles all events before `end` in order, those that handlers push included, and moves now() to `end`.
  template <class Handler>
  void run_until(std::int64_t end, Handler&& handle) {
    for (;;) {
      const std::int64_t tick = end <= reach_ ? next_near(now_, end) : next();
      if (tick >= end) break;
      move_to(tick);
      // The ticks of its word, read again after each: handlers may push into them, this very one included.
      const std::int64_t base = tick & ~std::int64_t{63};
      const std::uint64_t before_end = end - base >= 64 ? ~std::uint64_t{0} : ~(~std::uint64_t{0} << (end - base));
      std::uint64_t& word = occupied_[slot_of(tick) / 64];
      for (std::uint64_t bits = word & before_end; bits != 0; bits = word & before_end) {
        word &= ~(bits & -bits);
        now_ = base + std::countr_zero(bits);
        events_.take(slot_of(now_), handle);
      }
    }
    if (end > now_) move_to(end);
  }

  // Shows events before `end`, those near enough for the wheel, to who prefetches what their handlers will touch: of
  // thousands of chips, each finds nothing of its state in the host's caches when its turn comes.
  template <class Announce>
  void announce_until(std::int64_t end, Announce&& announce) const {
    for_ticks(end, [this](std::size_t tick) { events_.prefetch(tick); });
    for_ticks(end, [&](std::size_t tick) { events_.announce(tick, announce); });
  }

 private:
  static constexpr std::size_t kWords = kSlots / 64;
  static constexpr std::int64_t kStep = kSlots / 8;

  static std::size_t slot_of(std::int64_t tick) { return static_cast<std::size_t>(tick & (kSlots - 1)); }

  [[gnu::noinline]] void push_far(std::int64_t tick, Event event) {
    WEFT_CHECK(tick >= now_, "event in the past");
    far_.push(tick, event);
  }

  [[gnu::always_inline]] void append(std::int64_t tick, const Event& event) {
    const std::size_t index = slot_of(tick);
    std::uint64_t& word = occupied_[index / 64];
    const std::uint64_t bit = std::uint64_t{1} << (tick % 64);
    if ((word & bit) == 0) {
      word |= bit;
      events_.put_first(index, event);
    } else {
      events_.put_behind(index, event);
    }
  }

  // What comes within reach is put into the wheel before others that are pushed for the same ticks.
  [[gnu::always_inline]] void move_to(std::int64_t tick) {
    now_ = tick;
    if (tick >= reach_ - kSlots + kStep) [[unlikely]]
      reach_further();
  }
  [[gnu::noinline]] void reach_further() {
    reach_ = (now_ & ~(kStep - 1)) + kSlots;
    far_.admit(reach_, [this](std::int64_t tick, const Event& event) { append(tick, event); });
  }

  // The first tick of [from, end) that has events; at least `end`, which the wheel reaches, when none has.
  [[nodiscard]] std::int64_t next_near(std::int64_t from, std::int64_t end) const {
    for (std::int64_t tick = from; tick < end; tick = (tick | 63) + 1) {
      const std::uint64_t here = occupied_[slot_of(tick) / 64] >> (tick % 64);
      if (here != 0) return tick + std::countr_zero(here);
    }
    return end;
  }

  template <class Visit>
  void for_ticks(std::int64_t end, Visit visit) const {
    const std::int64_t reach = std::min(end, reach_);
    for (std::int64_t tick = next_near(now_, reach); tick < reach; tick = next_near(tick + 1, reach)) {
      visit(slot_of(tick));
    }
  }

  std::int64_t now_ = 0;
  std::array<std::uint64_t, kWords> occupied_{};  // ticks that have events
  std::int64_t reach_ = kSlots;                   // the first tick that is far
  FarEvents<Event, kStep> far_{kSlots};
  std::conditional_t<sizeof(Event) == sizeof(std::uint32_t), FewTickEvents<Event, kSlots>,
                     ManyTickEvents<Event, kSlots>>
      events_;
};

}  // namespace weft
