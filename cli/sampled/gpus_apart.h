// How far GPUs that are simulated one by one have drifted apart: from one stretch of their programs to the next.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "cli/run/machine.h"
#include "cli/sampled/regime.h"

namespace weft {

// Regime::apart after the operations of a regime, which begins with operation `first`.
[[nodiscard]] std::vector<SubCycle> apart_after(const Machine& machine, const Regime& regime, std::uint32_t first);

[[nodiscard]] SubCycle first_of(const std::vector<SubCycle>& apart);
[[nodiscard]] SubCycle last_of(const std::vector<SubCycle>& apart);

// `state` as each GPU has it, from the moment on at which the first one is there. Their hosts go on together.
[[nodiscard]] std::vector<HostState> states_of(const HostState& state, const std::vector<SubCycle>& apart);

// How GPUs began stretches of a program, so that not every time counts as another one.
class KnownBeginnings {
 public:
  // What to simulate the stretch of this name with in place of `apart`: the same, or the nearest to it that is known.
  const std::vector<SubCycle>& like(const std::string& stretch, const std::vector<SubCycle>& apart);

 private:
  std::map<std::string, std::deque<std::vector<SubCycle>>> known_;  // by name
};

}  // namespace weft
