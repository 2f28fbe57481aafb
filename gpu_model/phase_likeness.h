// Whether phases of two ranks are the same but for addresses, flags and whom they name.
#pragma once

#include "gpu_model/phase.h"
#include "gpu_model/rank_symmetry.h"

namespace weft {

inline bool talks(Target target) { return target == Target::remote; }

// Whether a rank does what another one does, all that it talks to being renamed.
class Likeness {
 public:
  explicit Likeness(const Renaming& renaming) : renaming_(&renaming) {}

  [[nodiscard]] bool of(const Phase& own, const Phase& other) const {
    if (own.load_count != other.load_count || own.store_count != other.store_count ||
        own.wait_count != other.wait_count || own.post_count != other.post_count || own.rounds != other.rounds ||
        own.stages != other.stages || own.compute != other.compute || own.fence != other.fence ||
        own.delay != other.delay || own.fenced != other.fenced || own.post_delay != other.post_delay ||
        own.post_delay_phases != other.post_delay_phases || own.proxied_posts != other.proxied_posts ||
        own.proxy_delay != other.proxy_delay) {
      return false;
    }
    for (std::size_t i = 0; i < own.load_count; ++i) {
      if (!streams(own.loads.at(i), other.loads.at(i))) return false;
    }
    for (std::size_t i = 0; i < own.store_count; ++i) {
      if (!streams(own.stores.at(i), other.stores.at(i))) return false;
    }
    for (std::size_t i = 0; i < own.wait_count; ++i) {
      if (own.waits.at(i).value != other.waits.at(i).value) return false;
    }
    for (std::size_t i = 0; i < own.post_count; ++i) {
      const FlagPost& a = own.posts.at(i);
      const FlagPost& b = other.posts.at(i);
      if (a.target != b.target || !peers(a.target, a.gpu, b.gpu)) return false;
      if (a.target == Target::launch) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] bool peers(Target target, std::uint16_t own, std::uint16_t other) const {
    return !talks(target) || renaming_->rank(own) == other;
  }
  [[nodiscard]] bool streams(const LineStream& own, const LineStream& other) const {
    return own.lines == other.lines && own.target == other.target && own.adds == other.adds &&
           own.first_sectors == other.first_sectors && own.last_sectors == other.last_sectors &&
           own.arrived_before == other.arrived_before && own.target != Target::tree &&
           (own.arrival_flag == kNoFlag) == (other.arrival_flag == kNoFlag) && peers(own.target, own.gpu, other.gpu);
  }

  const Renaming* renaming_;
};

}  // namespace weft
