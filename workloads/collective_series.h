// Collectives without a training step around them: the same one several times, in one group or in several at once.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program.h"

namespace weft {

struct CollectiveSeries {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;  // as CollectiveDemand::bytes
  DataType type = DataType::fp32;
  std::uint32_t root = 0;  // place in each group
  std::uint32_t gpus = 0;
  std::uint32_t iterations = 1;
  std::vector<std::vector<std::uint32_t>> groups = {};  // GPUs of those that run at the same time; empty: one of all
  std::vector<double> start_delay_us = {};              // by GPU, how late it comes to each collective; may be shorter
};

// Throws InputError, with the path in a configuration, for groups of fewer than two, of unknown GPUs or of one that is
// in two of them, a root outside of a group, no iterations, delays of GPUs that are not there, and bytes that are no
// multiple of the element's size or, but for a barrier, not positive.
void validate(const CollectiveSeries& series);

// A program a GPU: `iterations` collectives one after another, in place, on one stream; none on a GPU of no group.
// Validates.
[[nodiscard]] std::vector<Program> collective_series(const CollectiveSeries& series);

}  // namespace weft
