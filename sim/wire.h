// One direction of a connection between two chips. What is sent in one window of the engine is read in a later one, so
// sender and receiver never touch the same buffer at the same time and may run on different threads. A wire on which
// nothing is sent costs nothing: senders note the wires they used, receivers are told which ones have something.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/prefetch.h"
#include "sim/units.h"

namespace weft {

// The wires that have something for a chip, by the slots it gave them.
class Inbox {
 public:
  void announce(std::uint32_t slot, const void* wire, const void* messages) {
    ready_.push_back({slot, wire, messages});
  }
  // Calls `handle(slot)` for each, ascending, and forgets them.
  template <class Handler>
  void drain(Handler&& handle) {
    if (ready_.empty()) return;
    for (const Ready& ready : ready_) {  // of thousands of chips, each finds them far from the host's caches
      prefetch_line(ready.wire);
      for (std::size_t line = 0; line < 4; ++line) {
        prefetch_line(static_cast<const std::byte*>(ready.messages) + 64 * line);
      }
    }
    if (!std::is_sorted(ready_.begin(), ready_.end())) std::sort(ready_.begin(), ready_.end());
    for (const Ready& ready : ready_) handle(ready.slot);
    ready_.clear();
  }

 private:
  struct Ready {
    std::uint32_t slot;
    const void* wire;  // its receiver's part
    const void* messages;
    bool operator<(const Ready& other) const { return slot < other.slot; }
  };
  std::vector<Ready> ready_;
};

class WireBase {
 public:
  virtual ~WireBase() = default;
  // Between windows, by the engine: hands over what was sent. Returns the earliest arrival not read yet, or
  // Time::max().
  virtual Time flip() = 0;

  // To the host's own caches, for a flip().
  void prefetch() const {
    prefetch_line(this);
    prefetch_line(reinterpret_cast<const std::byte*>(this) + 64);
  }

  // The receiver reads this wire when `inbox` names `slot`.
  void announce_to(Inbox& inbox, std::uint32_t slot) {
    inbox_ = &inbox;
    slot_ = slot;
  }
  // By the engine: where the sender notes that it used this wire, and the receiver's number.
  void note_in(std::vector<WireBase*>& used, std::uint32_t receiver) {
    used_ = &used;
    receiver_ = receiver;
  }
  [[nodiscard]] std::uint32_t receiver() const { return receiver_; }

 protected:
  void note_use() {
    if (used_ != nullptr) used_->push_back(this);
  }
  void announce(const void* receivers_part, const void* messages) const {
    if (inbox_ != nullptr) inbox_->announce(slot_, receivers_part, messages);
  }

 private:
  std::vector<WireBase*>* used_ = nullptr;
  Inbox* inbox_ = nullptr;
  std::uint32_t slot_ = 0;
  std::uint32_t receiver_ = 0;
};

// Message has a member `Time when`: its arrival, at least the wire's latency after it was sent.
template <class Message>
class Wire final : public WireBase {
 public:
  // Arrives at `when`, not at the message's own. Returns what is on its way, for the sender to write all else to until
  // it sends the next one.
  Message& send(const Message& message, Time when) {
    if (sent_.empty()) note_use();
    Message& sent = sent_.emplace_back(message);
    sent.when = when;
    earliest_sent_ = earlier(earliest_sent_, when);
    return sent;
  }
  Message& send(const Message& message) { return send(message, message.when); }

  // By the receiver: all that has been handed over, in the order of sending; it empties the wire.
  template <class Handler>
  void receive(Handler&& handle) {
    for (const Message& message : arrived_) handle(message);
    arrived_.clear();
    earliest_ = Time::max();
  }

  Time flip() override {
    if (sent_.empty()) return earliest_;
    earliest_ = earlier(earliest_, std::exchange(earliest_sent_, Time::max()));
    if (arrived_.empty()) {
      std::swap(arrived_, sent_);
      announce(&arrived_, arrived_.data());
    } else {
      arrived_.insert(arrived_.end(), sent_.begin(), sent_.end());
      sent_.clear();
    }
    return earliest_;
  }

 private:
  std::vector<Message> sent_;
  Time earliest_sent_ = Time::max();
  // A cache line of the host for each end: what the one touches is not the other's.
  alignas(64) std::vector<Message> arrived_;
  Time earliest_ = Time::max();
};

}  // namespace weft
