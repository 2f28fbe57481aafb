// The events of each tick of a timing wheel, in the order of insertion. Whether a tick has any is the wheel's to know.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/prefetch.h"

namespace weft {

// Many a tick: a list of them.
template <class Event, std::int64_t kSlots>
class ManyTickEvents {
 public:
  [[gnu::always_inline]] void put_first(std::size_t tick, const Event& event) {
    const std::uint32_t fresh = node(event);
    pool_[fresh].next = fresh;
    last_[tick] = fresh;
  }
  [[gnu::always_inline]] void put_behind(std::size_t tick, const Event& event) {
    const std::uint32_t fresh = node(event);
    std::uint32_t& last = last_[tick];
    pool_[fresh].next = pool_[last].next;
    pool_[last].next = fresh;
    last = fresh;
  }

  // Handles all that a tick has; `handle` may put others there, which are first again, and move the pool. Returns how
  // many they were.
  template <class Handler>
  std::size_t take(std::size_t tick, Handler& handle) {
    const std::uint32_t last = last_[tick];
    std::uint32_t at = pool_[last].next;
    std::size_t count = 0;
    for (bool more = true; more;) {
      ++count;
      more = at != last;
      handle(take_one(at));
    }
    return count;
  }

  // The same one by one: where the first and the last one are, before others are put there, and an event and the next.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> list(std::size_t tick) const {
    return {pool_[last_[tick]].next, last_[tick]};
  }
  [[nodiscard]] Event take_one(std::uint32_t& at) {
    const Node node = pool_[at];
    free_.push_back(at);
    at = node.next;
    return node.event;
  }

  // Hints to the host's own caches that the tick will be taken soon.
  void prefetch(std::size_t tick) const { prefetch_line(&pool_[last_[tick]]); }

  // Shows all that a tick has.
  template <class Announce>
  void announce(std::size_t tick, Announce& announce) const {
    const std::uint32_t last = last_[tick];
    for (std::uint32_t at = pool_[last].next;; at = pool_[at].next) {
      announce(pool_[at].event);
      if (at == last) return;
    }
  }

 private:
  struct Node {
    Event event;
    std::uint32_t next;  // of its tick, the last one's is the first
  };

  [[gnu::always_inline]] std::uint32_t node(const Event& event) {
    if (free_.empty()) [[unlikely]]
      more_nodes();
    const std::uint32_t fresh = free_.back();
    free_.pop_back();
    pool_[fresh].event = event;
    return fresh;
  }
  [[gnu::noinline]] void more_nodes() {
    free_.push_back(static_cast<std::uint32_t>(pool_.size()));
    pool_.emplace_back();
  }

  std::vector<Node> pool_;
  std::vector<std::uint32_t> free_;  // apart: a list through them would wait for each to come from the host's memory
  std::array<std::uint32_t, kSlots> last_{};  // of ticks that have events
};

// One a tick, mostly, and small: the first one is in place, others behind it in a list.
template <class Event, std::int64_t kSlots>
class FewTickEvents {
 public:
  [[gnu::always_inline]] void put_first(std::size_t tick, const Event& event) { first_[tick] = event; }
  void put_behind(std::size_t tick, const Event& event) {
    if (crowded(tick)) {
      others_.put_behind(tick, event);
      return;
    }
    crowded_[tick / 64] |= std::uint64_t{1} << (tick % 64);
    others_.put_first(tick, event);
  }

  template <class Handler>
  [[gnu::always_inline]] std::size_t take(std::size_t tick, Handler& handle) {
    Event event = first_[tick];
    std::uint32_t at = 0;
    std::uint32_t last = 0;
    bool more = crowded(tick);
    if (more) {
      std::tie(at, last) = others_.list(tick);
      crowded_[tick / 64] &= ~(std::uint64_t{1} << (tick % 64));
    }
    for (std::size_t count = 1;; ++count) {
      handle(event);
      if (!more) return count;
      more = at != last;
      event = others_.take_one(at);
    }
  }

  void prefetch(std::size_t tick) const {
    if (crowded(tick)) others_.prefetch(tick);
  }
  template <class Announce>
  void announce(std::size_t tick, Announce& announce) const {
    announce(first_[tick]);
    if (crowded(tick)) others_.announce(tick, announce);
  }

 private:
  [[nodiscard]] bool crowded(std::size_t tick) const { return (crowded_[tick / 64] >> (tick % 64) & 1) != 0; }

  std::array<std::uint64_t, kSlots / 64> crowded_{};  // ticks with others
  std::array<Event, kSlots> first_{};
  ManyTickEvents<Event, kSlots> others_;
};

}  // namespace weft
