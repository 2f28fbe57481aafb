// The events of each tick of a timing wheel, in the order of insertion. Whether a tick has any is the wheel's to know.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/prefetch.h"

namespace weft {

// Lists of events, each named by its last node, whose `next` is the first.
template <class Event>
class EventRings {
 public:
  [[nodiscard, gnu::always_inline]] std::uint32_t alone(const Event& event) {
    const std::uint32_t fresh = node(event);
    pool_[fresh].next = fresh;
    return fresh;
  }
  // Returns the new last one.
  [[nodiscard, gnu::always_inline]] std::uint32_t behind(std::uint32_t last, const Event& event) {
    const std::uint32_t fresh = node(event);
    pool_[fresh].next = pool_[last].next;
    pool_[last].next = fresh;
    return fresh;
  }
  [[nodiscard]] std::uint32_t first(std::uint32_t last) const { return pool_[last].next; }

  // Frees the node `at` and moves on to the next.
  [[nodiscard]] Event take_one(std::uint32_t& at) {
    const Node node = pool_[at];
    free_.push_back(at);
    at = node.next;
    return node.event;
  }

  // Hints to the host's own caches that the list will be taken soon.
  void prefetch(std::uint32_t last) const { prefetch_line(&pool_[last]); }

  // Shows all of a list.
  template <class Announce>
  void announce(std::uint32_t last, Announce& announce) const {
    for (std::uint32_t at = pool_[last].next;; at = pool_[at].next) {
      announce(pool_[at].event);
      if (at == last) return;
    }
  }

 private:
  struct Node {
    Event event;
    std::uint32_t next;
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
    if (pool_.size() == pool_.capacity()) {  // no twice as many: a run has thousands of pools
      pool_.reserve(pool_.size() + pool_.size() / 4 + 16);
      free_.reserve(pool_.capacity());
    }
    free_.push_back(static_cast<std::uint32_t>(pool_.size()));
    pool_.emplace_back();
  }

  std::vector<Node> pool_;
  std::vector<std::uint32_t> free_;  // apart: a list through them would wait for each to come from the host's memory
};

// Many a tick: a list of them.
template <class Event, std::int64_t kSlots>
class ManyTickEvents {
 public:
  [[gnu::always_inline]] void put_first(std::size_t tick, const Event& event) { last_[tick] = rings_.alone(event); }
  [[gnu::always_inline]] void put_behind(std::size_t tick, const Event& event) {
    last_[tick] = rings_.behind(last_[tick], event);
  }

  // Handles all that a tick has; `handle` may put others there, which are first again.
  template <class Handler>
  void take(std::size_t tick, Handler& handle) {
    const std::uint32_t last = last_[tick];
    std::uint32_t at = rings_.first(last);
    for (bool more = true; more;) {
      more = at != last;
      handle(rings_.take_one(at));
    }
  }

  void prefetch(std::size_t tick) const { rings_.prefetch(last_[tick]); }
  template <class Announce>
  void announce(std::size_t tick, Announce& announce) const {
    rings_.announce(last_[tick], announce);
  }

 private:
  EventRings<Event> rings_;
  std::array<std::uint32_t, kSlots> last_{};  // of ticks that have events
};

// One a tick, mostly, and as small as the name of a list: an event that is alone is in place, several are in a list.
template <class Event, std::int64_t kSlots>
class FewTickEvents {
  static_assert(sizeof(Event) == sizeof(std::uint32_t));

 public:
  [[gnu::always_inline]] void put_first(std::size_t tick, const Event& event) {
    places_[tick] = std::bit_cast<std::uint32_t>(event);
  }
  void put_behind(std::size_t tick, const Event& event) {
    std::uint32_t& place = places_[tick];
    if (!crowded(tick)) {
      crowded_[tick / 64] |= std::uint64_t{1} << (tick % 64);
      place = rings_.alone(std::bit_cast<Event>(place));
    }
    place = rings_.behind(place, event);
  }

  template <class Handler>
  [[gnu::always_inline]] void take(std::size_t tick, Handler& handle) {
    const std::uint32_t last = places_[tick];
    Event event = std::bit_cast<Event>(last);
    std::uint32_t at = 0;
    bool more = crowded(tick);
    if (more) {
      crowded_[tick / 64] &= ~(std::uint64_t{1} << (tick % 64));
      at = rings_.first(last);
      event = rings_.take_one(at);
    }
    for (;;) {
      handle(event);
      if (!more) return;
      more = at != last;
      event = rings_.take_one(at);
    }
  }

  void prefetch(std::size_t tick) const {
    if (crowded(tick)) rings_.prefetch(places_[tick]);
  }
  template <class Announce>
  void announce(std::size_t tick, Announce& announce) const {
    if (crowded(tick)) {
      rings_.announce(places_[tick], announce);
    } else {
      announce(std::bit_cast<Event>(places_[tick]));
    }
  }

 private:
  [[nodiscard]] bool crowded(std::size_t tick) const { return (crowded_[tick / 64] >> (tick % 64) & 1) != 0; }

  std::array<std::uint64_t, kSlots / 64> crowded_{};  // ticks that have several
  std::array<std::uint32_t, kSlots> places_{};        // an event, or the last one of a list
  EventRings<Event> rings_;
};

}  // namespace weft
