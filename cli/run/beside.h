// "beside": blocks that stand on every GPU next to the workload (gpu_model/resident_blocks.h), in the configuration,
// as kernels and in results.
#pragma once

#include <string>
#include <vector>

#include "cli/config/spec_fields.h"
#include "cli/config/system_config.h"
#include "cli/run/result.h"

namespace weft {

void beside_fields(FieldReader& fields, std::vector<ResidentSpec>& beside);
void beside_fields(FieldWriter& fields, std::vector<ResidentSpec>& beside);

// Throws InputError for blocks that no compute unit has room for, that have no chunk of their buffer, or that do not
// all fit at once; `file` names the configuration.
void check_beside(const RunConfig& config, const std::string& file);

// Their buffers on one GPU.
[[nodiscard]] std::int64_t beside_bytes(const RunConfig& config);

// One kernel each; `stop_flag` as in GpuWork. Buffers lie in front of the communication library's.
[[nodiscard]] std::vector<ScriptedKernel> beside_kernels(const RunConfig& config, std::uint32_t stop_flag);

// What they moved on one GPU.
[[nodiscard]] std::vector<BesideResult> beside_results(const RunConfig& config,
                                                       const std::vector<ResidentTraffic>& traffic);
// For people; nothing where there are none.
void note_beside(const RunConfig& config, RunResult& result);

}  // namespace weft
