// Rows of neighbours in time.
#pragma once

#include "workloads/single_sample/convolution_math.h"
#include "workloads/single_sample/time_convolution.h"

namespace weft {

// A rank's own rows of a matrix along time, and those that it got from ranks before and behind it.
struct HaloedRows {
  Matrix own;
  std::vector<TimeRows> parts;  // by place, the own ones included
};

// Brings `before` places from the ranks in front and `after` from those behind, as far as there are any: a shift by n
// ranks for the part that lies n ranks away. All ranks send alike, so that the last rank's rows also come to the first
// one, who does not look at them.
[[nodiscard]] HaloedRows exchange_halos(TrainingStep& step, const TimeAxis& axis, const Matrix& own,
                                        std::int64_t before, std::int64_t after);

}  // namespace weft
