// Configurations in which several GPUs share one sample: attention and distributed products, and how they are split.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/spec_fields.h"
#include "cli/system_config.h"

namespace weft {

[[nodiscard]] const EnumNames<SampleScheme>& scheme_table();
[[nodiscard]] std::string describe(SampleScheme scheme);

// The workloads that such a scheme can take, by the name of their model.
[[nodiscard]] bool is_sample_model(const std::string& model);
[[nodiscard]] bool is_sample_workload(const RunConfig& config);
void workload_fields(FieldReader& fields, AttentionWorkload& workload);
void workload_fields(FieldWriter& fields, AttentionWorkload& workload);
void workload_fields(FieldReader& fields, ProductWorkload& workload);
void workload_fields(FieldWriter& fields, ProductWorkload& workload);
// The keys of "scheme" that belong to these workloads.
void sample_fields(FieldReader& fields, SchemeConfig& scheme);
void sample_fields(FieldWriter& fields, SchemeConfig& scheme);

// Fills in what the system decides, and throws InputError (file, path) for what a scheme cannot take.
void check_sample(RunConfig& config, const std::string& file);

// How GPU `gpu` of the run shares its sample.
[[nodiscard]] SampleSplit sample_split(const RunConfig& config, std::uint32_t gpu);
[[nodiscard]] AttentionGeometry geometry_of(const AttentionWorkload& workload);
[[nodiscard]] std::vector<Program> sample_programs(const RunConfig& config);

}  // namespace weft
