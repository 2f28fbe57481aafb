// How fast blocks of a kernel go, of which only a few rounds were seen. Those that share a unit with as many others are
// a crowd and go equally fast but for chance. Those of it that stream the same lines wait for them together, and of
// those on a unit the oldest may come first: a convoy, as the blocks of one head of attention, has its own pace.
#pragma once

#include <boost/container/flat_map.hpp>
#include <compare>
#include <cstdint>

#include "gpu_model/phase.h"

namespace weft {

class Convoys {
 public:
  static constexpr std::uint32_t kAnyAge = ~std::uint32_t{0};
  static constexpr LineAddress kAnyLines = ~LineAddress{0};
  struct Place {
    std::uint32_t crowd = 0;
    std::uint32_t older = 0;  // blocks on the same unit
    LineAddress stream = 0;   // where its lines begin

    auto operator<=>(const Place&) const = default;
  };

  // To such a block so many lines came in so many subcycles, in so many rounds.
  void add(const Place& block, double lines, double time, double rounds);
  // Lines a subcycle, of each such block: of its convoy, if that is ahead of its crowd or behind by more than chance.
  [[nodiscard]] double rate(const Place& block) const;

  // Of fewer blocks that stream the same lines, or rounds by which they are ahead, one cannot say.
  static constexpr double kFewestBlocks = 8, kAhead = 2;

 private:
  struct Pace {
    double lines = 0, time = 0, rounds = 0, blocks = 0;

    [[nodiscard]] double rate() const { return lines / time; }
    // This one, of some of the blocks of `all`, says more than that.
    [[nodiscard]] bool differs_from(const Pace& all) const;
  };
  boost::container::flat_map<Place, Pace> paces_;  // of convoys, of those as old (no stream), of crowds (neither)
};

}  // namespace weft
