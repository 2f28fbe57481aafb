// What the HBM moved over time, by the bins of a run.
#include <algorithm>

#include "gpu_model/gpu.h"

namespace weft {

void Gpu::next_bin(std::int64_t tick) {
  add_open_bin(over_time_);
  before_bin_ = hbm_bytes();
  bin_ = clock_.to_time(cycles(tick)) / kShortestTimeBin;
  bin_end_ = std::max(tick + 1, tick_at_or_after(clock_.to_subcycles(kShortestTimeBin * (bin_ + 1))));
}

void Gpu::add_open_bin(HbmOverTime& over_time) const {
  const HbmBytes now = hbm_bytes();
  over_time.read.add(bin_, now.read - before_bin_.read);
  over_time.written.add(bin_, now.written - before_bin_.written);
  over_time.communication.add(bin_, now.communication - before_bin_.communication);
}

HbmBytes Gpu::hbm_bytes() const {
  const HbmStatistics hbm = l2_.hbm_statistics();
  return {hbm.read_bytes, hbm.write_bytes,
          statistics_.communication_fetched_bytes + l2_.communication_write_back_bytes()};
}

HbmOverTime Gpu::hbm_over_time() const {
  HbmOverTime all = over_time_;
  add_open_bin(all);
  return all;
}

}  // namespace weft
