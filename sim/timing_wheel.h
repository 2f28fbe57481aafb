// The event queue of one chip: events by tick of the chip's own clock, handled in the order (tick, insertion). Each
// tick has a list of its events; nothing is sorted, and nothing is allocated once the pool has grown to the peak.
// `kSlots` ticks (a power of two, 64 to 4096) are kept in the wheel, what is further away in a heap. A slot is four
// bytes: a run has thousands of chips, and wheels that fit the host's caches together are worth more than a longer
// reach.
#pragma once

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

template <class Event, std::int64_t kSlots = 2048>
class TimingWheel {
  static_assert(kSlots >= 64 && kSlots <= 4096 && std::has_single_bit(static_cast<std::uint64_t>(kSlots)));

 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::int64_t now() const { return now_; }

  // An event at or after now(); a tick in the past is an error of the caller. Inlined, so that an event is written to
  // its place field by field: copied from where it was just put together, the copy waits for the stores.
  [[gnu::always_inline]] void push(std::int64_t tick, const Event& event) {
    if (static_cast<std::uint64_t>(tick - now_) < kSlots) [[likely]] {
      ++size_;
      append(tick, event);
    } else {
      push_far(tick, event);
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
  static constexpr std::uint32_t kAhead = 6;  // events between an announcement and its handling
  static constexpr std::size_t kWords = kSlots / 64;

  struct Node {
    Event event;
    std::uint32_t next;  // of its tick, the last one's is the first; or of the free ones
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

  [[gnu::noinline]] void push_far(std::int64_t tick, Event event) {
    WEFT_CHECK(tick >= now_, "event in the past");
    ++size_;
    far_.push(Far{tick, sequence_++, event});
  }

  [[gnu::always_inline]] void append(std::int64_t tick, const Event& event) {
    if (free_ == kNone) [[unlikely]] more_nodes();
    const std::uint32_t fresh = free_;
    const std::size_t index = slot_of(tick);
    std::uint32_t& last = last_[index];
    Node& node = pool_[fresh];
    free_ = node.next;
    node.event = event;
    if (last == kNone) {
      node.next = fresh;
      occupied_[index / 64] |= std::uint64_t{1} << (index % 64);
      words_ |= std::uint64_t{1} << (index / 64);
    } else {
      node.next = pool_[last].next;
      pool_[last].next = fresh;
    }
    last = fresh;
  }

  template <class Handler, class Announce>
  void drain(std::int64_t tick, Handler& handle, Announce& announce) {
    const std::size_t index = slot_of(tick);
    while (last_[index] != kNone) {  // handlers may push into this very tick, and move the pool
      const std::uint32_t last = std::exchange(last_[index], kNone);
      std::uint32_t at = pool_[last].next;
      std::uint32_t ahead = at;
      bool announced_all = false;
      const auto announce_next = [&] {
        if (announced_all) return;
        announce(pool_[ahead].event);
        announced_all = ahead == last;
        ahead = pool_[ahead].next;
      };
      for (std::uint32_t i = 0; i < kAhead; ++i) announce_next();
      for (bool more = true; more;) {
        announce_next();
        const Node node = pool_[at];
        pool_[at].next = free_;
        free_ = at;
        --size_;
        more = at != last;
        at = node.next;
        handle(node.event);
      }
    }
    occupied_[index / 64] &= ~(std::uint64_t{1} << (index % 64));
    if (occupied_[index / 64] == 0) words_ &= ~(std::uint64_t{1} << (index / 64));
  }

  [[gnu::noinline]] void more_nodes() {
    free_ = static_cast<std::uint32_t>(pool_.size());
    pool_.emplace_back().next = kNone;
  }

  void admit_far() {
    while (!far_.empty() && far_.top().tick - now_ < kSlots) {
      append(far_.top().tick, far_.top().event);
      far_.pop();
    }
  }

  [[nodiscard]] std::int64_t next_near() const {
    if (words_ == 0) return kNever;
    const std::size_t first = slot_of(now_);
    const std::size_t word = first / 64;
    const std::uint64_t here = occupied_[word] & ~std::uint64_t{0} << (first % 64);
    std::size_t slot = 0;
    if (here != 0) {
      slot = word * 64 + static_cast<std::size_t>(std::countr_zero(here));
    } else {
      // Words behind it, then those from the beginning on, at last what it has before `first`.
      const std::uint64_t behind = words_ & ~((std::uint64_t{2} << word) - 1);
      const auto found = static_cast<std::size_t>(std::countr_zero(behind != 0 ? behind : words_));
      slot = found * 64 + static_cast<std::size_t>(std::countr_zero(occupied_[found]));
    }
    return now_ + static_cast<std::int64_t>((slot - first) & (kSlots - 1));
  }

  // What every push and every step reads comes first.
  std::int64_t now_ = 0;
  std::size_t size_ = 0;
  std::uint64_t words_ = 0;  // of occupied_, those that are not 0
  std::vector<Node> pool_;
  std::uint32_t free_ = kNone;
  std::priority_queue<Far> far_;
  std::uint64_t sequence_ = 0;
  std::array<std::uint64_t, kWords> occupied_{};
  std::array<std::uint32_t, kSlots> last_ = [] {
    std::array<std::uint32_t, kSlots> none;
    none.fill(kNone);
    return none;
  }();
};

}  // namespace weft
