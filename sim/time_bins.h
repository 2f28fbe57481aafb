// Amounts by when in a run they came. The bins double in width when the run outgrows them, so a series takes bounded
// memory, however long the run, and nothing is allocated but as it grows.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/units.h"

namespace weft {

inline constexpr Time kShortestTimeBin =
    Time(312'500'000);  // 312.5 ns, 1/32 of 10 us: a tenth of a millisecond has 320
inline constexpr std::int64_t kMostTimeBins = 1024;

// How often the shortest bin doubles until a run up to `end` fits.
[[nodiscard]] constexpr int time_bin_doublings(Time end) {
  int doublings = 0;
  while (kShortestTimeBin * (kMostTimeBins << doublings) < end) ++doublings;
  return doublings;
}

class TimeBins {
 public:
  // In the `bin`-th kShortestTimeBin of the run.
  void add(std::int64_t bin, std::int64_t amount) {
    while (bin >> doublings_ >= kMostTimeBins) widen();
    const auto at = static_cast<std::size_t>(bin >> doublings_);
    if (at >= amounts_.size()) amounts_.resize(at + 1);
    amounts_[at] += amount;
  }

  // By bins that are at least as wide as these; as many as something came in.
  [[nodiscard]] std::vector<std::int64_t> amounts(int doublings) const {
    TimeBins wide = *this;
    while (wide.doublings_ < doublings) wide.widen();
    return std::move(wide.amounts_);
  }

 private:
  void widen() {
    const std::size_t pairs = (amounts_.size() + 1) / 2;
    for (std::size_t i = 0; i < pairs; ++i) {
      amounts_[i] = amounts_[2 * i] + (2 * i + 1 < amounts_.size() ? amounts_[2 * i + 1] : 0);
    }
    amounts_.resize(pairs);
    ++doublings_;
  }

  std::vector<std::int64_t> amounts_;
  int doublings_ = 0;
};

}  // namespace weft
