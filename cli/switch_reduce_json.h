// The reducing hardware of switches as a configuration describes it: "switch_reduce".
#pragma once

#include "cli/spec_fields.h"
#include "switch_reduce/reduce_spec.h"

namespace weft {

void reduce_fields(FieldReader& fields, ReduceSpec& reduce);
void reduce_fields(FieldWriter& fields, ReduceSpec& reduce);

}  // namespace weft
