// A GPU as a configuration describes it: "gpu" of a system.
#pragma once

#include "cli/config/spec_fields.h"
#include "gpu_model/gpu_spec.h"

namespace weft {

void gpu_fields(FieldReader& fields, GpuSpec& gpu);
void gpu_fields(FieldWriter& fields, GpuSpec& gpu);

}  // namespace weft
