// What the HBM moved over time, by the bins of a run.
#include <algorithm>

#include "gpu_model/gpu.h"

namespace weft {

void Gpu::next_bin(std::int64_t tick) {
  add_open_bin(binned_.over_time);
  binned_.before = hbm_bytes();
  binned_.bin = clock_.to_time(cycles(tick)) / kShortestTimeBin;
  binned_.end = std::max(tick + 1, tick_at_or_after(clock_.to_subcycles(kShortestTimeBin * (binned_.bin + 1))));
}

void Gpu::add_open_bin(HbmOverTime& over_time) const {
  const HbmBytes now = hbm_bytes();
  over_time.read.add(binned_.bin, now.read - binned_.before.read);
  over_time.written.add(binned_.bin, now.written - binned_.before.written);
  over_time.communication.add(binned_.bin, now.communication - binned_.before.communication);
}

HbmBytes Gpu::hbm_bytes() const {
  const HbmStatistics hbm = l2_.hbm_statistics();
  return {hbm.read_bytes, hbm.write_bytes,
          statistics_.communication_fetched_bytes + l2_.communication_write_back_bytes()};
}

HbmOverTime Gpu::hbm_over_time() const {
  HbmOverTime all = binned_.over_time;
  add_open_bin(all);
  return all;
}

}  // namespace weft
