// Configurations in which several GPUs share one sample: attention, distributed products and convolutions along time,
// and how they are split.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/config/spec_fields.h"
#include "cli/config/system_config.h"

namespace weft {

[[nodiscard]] const EnumNames<SampleScheme>& scheme_table();
[[nodiscard]] std::string describe(SampleScheme scheme);

// The workloads that such a scheme can take.
[[nodiscard]] bool is_sample_workload(const RunConfig& config);
[[nodiscard]] bool is_temporal(const RunConfig& config);  // convolutions along time
void workload_fields(FieldReader& fields, AttentionWorkload& workload);
void workload_fields(FieldWriter& fields, AttentionWorkload& workload);
void workload_fields(FieldReader& fields, ProductWorkload& workload);
void workload_fields(FieldWriter& fields, ProductWorkload& workload);
void workload_fields(FieldReader& fields, TemporalWorkload& workload);
void workload_fields(FieldWriter& fields, TemporalWorkload& workload);
// The keys of "scheme" that belong to the workload.
void sample_fields(FieldReader& fields, RunConfig& config);
void sample_fields(FieldWriter& fields, RunConfig& config);

// Fills in what the system decides, and throws InputError (file, path) for what a scheme cannot take.
void check_sample(RunConfig& config, const std::string& file);

// How GPU `gpu` of the run shares its sample.
[[nodiscard]] SampleSplit sample_split(const RunConfig& config, std::uint32_t gpu);
[[nodiscard]] AttentionGeometry geometry_of(const AttentionWorkload& workload);
[[nodiscard]] TimeAxis time_axis(const RunConfig& config, std::uint32_t gpu);  // of convolutions along time
// `notes`: of faults that keep kernels from being fused.
[[nodiscard]] std::vector<Program> sample_programs(const RunConfig& config, std::vector<std::string>* notes = nullptr);

}  // namespace weft
