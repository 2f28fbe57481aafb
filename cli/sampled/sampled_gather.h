// From sampled timelines to a result.
#pragma once

#include "cli/run/result.h"
#include "cli/run/scripts.h"
#include "cli/sampled/sampled_timeline.h"
#include "gpu_model/alone.h"

namespace weft {

// Operations of more GPUs than this are not listed one by one: they are those of GPU 0.
inline constexpr std::uint32_t kListedGpus = 64;

void gather_sampled(const RunConfig& config, const std::vector<Program>& programs, const Scripts& scripts,
                    const std::vector<DemandFit>& fits, const SampledTimeline& quiet, const SampledTimeline& timeline,
                    RunResult& result);

}  // namespace weft
