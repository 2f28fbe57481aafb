// One direction of a connection between two chips. What is sent in one window of the engine is read in a later one, so
// sender and receiver never touch the same buffer at the same time and may run on different threads.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/units.h"

namespace weft {

class WireBase {
 public:
  virtual ~WireBase() = default;
  // Between windows, by the engine: hands over what was sent. Returns the earliest arrival not read yet, or
  // Time::max().
  virtual Time flip() = 0;
};

// Message has a member `Time when`: its arrival, at least the wire's latency after it was sent.
template <class Message>
class Wire final : public WireBase {
 public:
  void send(const Message& message) { sent_.push_back(message); }

  // By the receiver: all that has been handed over, in the order of sending; it empties the wire.
  template <class Handler>
  void receive(Handler&& handle) {
    for (const Message& message : arrived_) handle(message);
    arrived_.clear();
    earliest_ = Time::max();
  }

  Time flip() override {
    if (sent_.empty()) return earliest_;
    for (const Message& message : sent_) earliest_ = std::min(earliest_, message.when);
    if (arrived_.empty()) {
      std::swap(arrived_, sent_);
    } else {
      arrived_.insert(arrived_.end(), sent_.begin(), sent_.end());
      sent_.clear();
    }
    return earliest_;
  }

 private:
  std::vector<Message> sent_;
  std::vector<Message> arrived_;
  Time earliest_ = Time::max();
};

}  // namespace weft
