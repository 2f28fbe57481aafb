#include "gpu_model/convoys.h"

#include <cmath>

namespace weft {

bool Convoys::Pace::differs_from(const Pace& all) const {
  const double ahead = (rounds - time * all.rounds / all.time) / blocks;
  return std::abs(ahead) >= kAhead;
}

void Convoys::add(const Place& block, double lines, double time, double rounds) {
  for (const Place& place :
       {block, Place{block.crowd, block.older, kAnyLines}, Place{block.crowd, kAnyAge, kAnyLines}}) {
    Pace& pace = paces_[place];
    pace.lines += lines;
    pace.time += time;
    pace.rounds += rounds;
    ++pace.blocks;
  }
}

double Convoys::rate(const Place& block) const {
  const Pace& crowd = paces_.at({block.crowd, kAnyAge, kAnyLines});
  const Pace& as_old = paces_.at({block.crowd, block.older, kAnyLines});
  const Pace& convoy = paces_.at(block);
  const Pace& others = as_old.differs_from(crowd) ? as_old : crowd;
  return convoy.blocks >= kFewestBlocks && convoy.differs_from(others) ? convoy.rate() : others.rate();
}

}  // namespace weft
