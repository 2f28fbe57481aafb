// What a machine did in a stretch, as a regime remembers it.
#pragma once

#include "cli/machine.h"
#include "cli/sampled/regime.h"

namespace weft {

// Operations from `first` to `end`, as the first GPU had them; loads of links and switches with what was left out.
[[nodiscard]] Regime observed_regime(const Machine& machine, std::uint32_t first, std::uint32_t end);

}  // namespace weft
