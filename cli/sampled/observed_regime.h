// What a machine did in a stretch, as a regime remembers it.
#pragma once

#include "cli/run/machine.h"
#include "cli/sampled/regime.h"

namespace weft {

// Operations of `program` from where it was to `end`, as GPUs had them in the mean, and who waits for the last GPU.
enum class Waits {
  each_collective,  // is over when the last GPU is through: the next one waits for it
  at_the_end,       // all were quiet at once then
  never,            // they stay apart (Regime::apart)
};
// `of_first`: kernels of the others only took their time, so it is then the first GPU's operations that count, not the
// mean. Loads of links and switches with what was left out.
[[nodiscard]] Regime observed_regime(const Machine& machine, const Program& program, const HostState& from,
                                     std::uint32_t end, Waits waits = Waits::each_collective, bool of_first = false);

// What an operation took on average: some GPUs of a node send to others, and their kernels meet that.
[[nodiscard]] SubCycle mean_duration(const Machine& machine, std::uint32_t op);

}  // namespace weft
