// How fast blocks of a kernel go, of which only a few rounds were seen. Those that share a unit with as many others are
// a crowd. Of those on a unit the oldest may come first: two that keep its pipes busy leave nothing to a third, and go
// side by side. Those as old go equally fast but for chance, but those that stream the same lines wait for them
// together: a convoy, as the blocks of one head of attention, has its own pace.
#pragma once

#include <boost/container/flat_map.hpp>
#include <compare>
#include <cstdint>

#include "gpu_model/phase.h"

namespace weft {

class Convoys {
 public:
  static constexpr LineAddress kAnyLines = ~LineAddress{0};
  struct Place {
    std::uint32_t crowd = 0;
    std::uint32_t older = 0;  // blocks on the same unit
    LineAddress stream = 0;   // where its lines begin

    auto operator<=>(const Place&) const = default;
  };

  // Such a block was through with so many rounds in so many subcycles.
  void add(const Place& block, double rounds, double time);
  // Rounds a subcycle, of each such block: of its convoy, if that is ahead of those as old or behind by more than
  // chance.
  [[nodiscard]] double rate(const Place& block) const;

  // Of fewer blocks that stream the same lines, or rounds by which they are ahead, one cannot say. Of those as old
  // there is one on each unit of a crowd: they are as old as those next to them, if these are not so many rounds ahead.
  static constexpr double kFewestBlocks = 8, kAhead = 2, kAheadByAge = 1;

 private:
  struct Pace {
    double rounds = 0, time = 0, blocks = 0;

    [[nodiscard]] double rate() const { return rounds / time; }
    // So many rounds a block is this one ahead of `others`, or behind.
    [[nodiscard]] double apart(const Pace& others) const;
    Pace& operator+=(const Pace& more);
  };
  // Of the blocks of the crowd that are as old, and those older and younger that go alike.
  [[nodiscard]] Pace as_old(const Place& block) const;

  boost::container::flat_map<Place, Pace> paces_;  // of convoys, and of those as old (no stream)
};

}  // namespace weft
