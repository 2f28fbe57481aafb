// Whose work a first-come first-served server has ahead: what a request waits is booked to those who are served
// meanwhile.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft {

// The part of communication in a server's work, in any unit of time. Work ahead is taken to be done evenly, so sums are
// right, not every single request. A server that communication does not use costs a comparison.
class WorkAhead {
 public:
  // Of the work ahead at `now`, done at `free` if nothing more comes: the share of communication, 0 to 1.
  [[nodiscard]] double communication(std::int64_t now, std::int64_t free) {
    if (communication_ <= 0) return 0;
    if (free <= now) {
      communication_ = 0;
      return 0;
    }
    if (now > at_) {
      communication_ *= static_cast<double>(free - now) / static_cast<double>(free - at_);
      at_ = now;
    }
    return std::min(1.0, communication_ / static_cast<double>(free - at_));
  }
  // `work` of communication comes at `now` to a server that is busy until `free`.
  void add(std::int64_t now, std::int64_t free, std::int64_t work) {
    static_cast<void>(communication(now, free));
    if (communication_ <= 0) at_ = now;
    communication_ += static_cast<double>(work);
  }

 private:
  double communication_ = 0;
  std::int64_t at_ = 0;  // when it was so much
};

}  // namespace weft
