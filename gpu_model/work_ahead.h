// Whose work a first-come first-served server has ahead: what a request waits is booked to those who are served
// meanwhile.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft {

// The part of one kind, communication's or its own waits, in what a server has ahead, in any unit of time. What is
// ahead is taken to be done evenly, so sums are right, not every single request. A server without any costs a
// comparison.
class WorkAhead {
 public:
  [[nodiscard]] bool has_any() const { return work_ > 0; }  // as last looked at
  // Of what is ahead at `now`, done at `free` if nothing more comes: the share of that kind, 0 to 1.
  [[nodiscard]] double share(std::int64_t now, std::int64_t free) {
    if (work_ <= 0) return 0;
    if (free <= now) {
      work_ = 0;
      return 0;
    }
    if (now > at_) {
      work_ *= static_cast<double>(free - now) / static_cast<double>(free - at_);
      at_ = now;
    }
    return std::min(1.0, work_ / static_cast<double>(free - at_));
  }
  // `work` of that kind comes at `now` to a server that is busy until `free`.
  void add(std::int64_t now, std::int64_t free, std::int64_t work) {
    static_cast<void>(share(now, free));
    if (work_ <= 0) at_ = now;
    work_ += static_cast<double>(work);
  }

 private:
  double work_ = 0;
  std::int64_t at_ = 0;  // when it was so much
};

}  // namespace weft
