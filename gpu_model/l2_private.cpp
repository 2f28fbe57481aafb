// An L2 and an HBM of communication's own: to tell what sharing them costs.
#include "gpu_model/l2_cache.h"

namespace weft {

void L2Cache::make_private(bool cache, bool hbm) {
  if (cache) {
    own_tags_ = tags_;
    slices_.resize(2 * slices_.size());
    fills_.resize(2 * fills_.size());
  }
  if (hbm) own_hbm_ = hbm_;
}

HbmStatistics L2Cache::hbm_statistics() const {
  HbmStatistics sum = hbm_.statistics();
  if (!own_hbm_) return sum;
  const HbmStatistics& own = own_hbm_->statistics();
  sum.read_bytes += own.read_bytes;
  sum.write_bytes += own.write_bytes;
  sum.row_hits += own.row_hits;
  sum.row_misses += own.row_misses;
  return sum;
}

}  // namespace weft
