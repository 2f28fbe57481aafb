#include "gpu_model/convoys.h"

#include <cmath>

namespace weft {

double Convoys::Pace::apart(const Pace& others) const { return std::abs(rounds - time * others.rate()) / blocks; }

Convoys::Pace& Convoys::Pace::operator+=(const Pace& more) {
  rounds += more.rounds;
  time += more.time;
  blocks += more.blocks;
  return *this;
}

void Convoys::add(const Place& block, double rounds, double time) {
  for (const Place& place : {block, Place{block.crowd, block.older, kAnyLines}}) {
    paces_[place] += {rounds, time, 1};
  }
}

Convoys::Pace Convoys::as_old(const Place& block) const {
  Pace alike;
  for (std::uint32_t older = 0;; ++older) {
    const auto next = paces_.find({block.crowd, older, kAnyLines});
    const bool ends = next == paces_.end();
    if (ends || (alike.blocks > 0 && next->second.apart(alike) >= kAheadByAge)) {
      if (ends || older > block.older) return alike;
      alike = {};
    }
    alike += next->second;
  }
}

double Convoys::rate(const Place& block) const {
  const Pace others = as_old(block);
  const Pace& convoy = paces_.at(block);
  return convoy.blocks >= kFewestBlocks && convoy.apart(others) >= kAhead ? convoy.rate() : others.rate();
}

}  // namespace weft
