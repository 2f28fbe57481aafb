// Which slots of a resource in the near future are taken, a bit a slot, over a window that slides with time. A request
// takes the first free slots from when it can use them, so one that must wait leaves room for others that need not:
// the order of service of a first-ready scheduler, without a queue that is searched or an event a slot.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace weft {

template <std::uint32_t kWords>
class SlotCalendar {
 public:
  static constexpr std::int64_t kWindow = std::int64_t{kWords} * 64;

  // Forgets the slots before the word of `slot`; true when the window went on.
  bool advance(std::int64_t slot) {
    const std::int64_t word = slot >> 6;
    if (word <= base_word_) return false;
    const std::int64_t gone = std::min<std::int64_t>(word - base_word_, kWords);
    for (std::int64_t w = 0; w < gone; ++w) {
      const std::size_t at = index(base_word_ + w);
      outstanding_ -= taken_[at];
      busy_[at] = taken_[at] = 0;
    }
    const std::int64_t seen = window_end();
    base_word_ = word;
    full_ = std::max(full_, word << 6);
    close(seen, tail_);  // what was taken beyond the window
    return true;
  }

  // Takes `count` free slots from `slot` on and returns the last one. Beyond the window slots are taken in the order of
  // the requests: what must wait that long lets nobody pass.
  std::int64_t take(std::int64_t slot, std::uint32_t count) {
    const bool from_first_free = slot <= full_;
    std::int64_t last = std::max(slot, full_);
    std::uint64_t open = ~std::uint64_t{0} << (last & 63);
    for (std::int64_t word = last >> 6; word < base_word_ + kWords; ++word, open = ~std::uint64_t{0}) {
      const std::size_t at = index(word);
      std::uint64_t free = ~busy_[at] & open;
      while (free != 0) {  // a run of free slots at a time
        const int begin = std::countr_zero(free);
        const auto run = static_cast<std::uint32_t>(std::countr_one(free >> begin));
        const std::uint32_t n = std::min({run, count, 63U});
        const std::uint64_t slots = ((std::uint64_t{1} << n) - 1) << begin;
        busy_[at] |= slots;
        free &= ~slots;
        taken_[at] = static_cast<std::uint8_t>(taken_[at] + n);
        outstanding_ += n;
        count -= n;
        if (count == 0) {
          last = word * 64 + begin + n - 1;
          if (from_first_free) full_ = last + 1;
          return tail(last);
        }
      }
      last = (word + 1) * 64;
    }
    if (from_first_free) full_ = std::max(full_, window_end());
    last = std::max(last, tail_);
    return tail(last + count - 1);
  }

  // The first free slot from `slot` on.
  [[nodiscard]] std::int64_t first_free(std::int64_t slot) const {
    slot = std::max(slot, full_);
    for (std::int64_t word = slot >> 6; word < base_word_ + kWords; ++word) {
      std::uint64_t free = ~busy_[index(word)];
      if (word == slot >> 6) free &= ~std::uint64_t{0} << (slot & 63);
      if (free != 0) return word * 64 + std::countr_zero(free);
    }
    return std::max(slot, (base_word_ + kWords) * 64);
  }

  // Closes the slots [begin, end) to everybody, as far as they lie in the window, or opens them again.
  void close(std::int64_t begin, std::int64_t end) {
    for_words(begin, end, [this](std::size_t word, std::uint64_t slots) { busy_[word] |= slots; });
  }
  void reopen(std::int64_t begin, std::int64_t end) {
    full_ = std::clamp(begin, base_word_ << 6, full_);
    for_words(begin, end, [this](std::size_t word, std::uint64_t slots) { busy_[word] &= ~slots; });
  }

  [[nodiscard]] std::int64_t window_end() const { return (base_word_ + kWords) * 64; }
  // The slot after the last one taken so far.
  [[nodiscard]] std::int64_t tail() const { return tail_; }
  // When all that was taken would be through without a gap, if it began with the word of now.
  [[nodiscard]] std::int64_t work_end() const { return base_word_ * 64 + outstanding_; }

 private:
  template <class Change>
  void for_words(std::int64_t begin, std::int64_t end, Change change) {
    begin = std::max(begin, base_word_ << 6);
    end = std::min(end, window_end());
    for (std::int64_t word = begin >> 6; word * 64 < end; ++word) {
      std::uint64_t slots = ~std::uint64_t{0};
      if (word == begin >> 6) slots &= ~std::uint64_t{0} << (begin & 63);
      if (word == end >> 6) slots &= ~(~std::uint64_t{0} << (end & 63));
      change(index(word), slots);
    }
  }
  static std::size_t index(std::int64_t word) { return static_cast<std::size_t>(word) % kWords; }
  std::int64_t tail(std::int64_t last) {
    tail_ = std::max(tail_, last + 1);
    return last;
  }

  // What every request reads comes first.
  std::int64_t base_word_ = 0;
  std::int64_t tail_ = 0;
  std::int64_t full_ = 0;                     // no slot before it is free
  std::uint32_t outstanding_ = 0;             // sum of taken_
  std::array<std::uint8_t, kWords> taken_{};  // slots of the word that requests took, not those that are closed
  std::array<std::uint64_t, kWords> busy_{};
};

}  // namespace weft
