// The reducing hardware of switches and routers as a configuration describes it: "switch_reduce", "network_reduce".
#pragma once

#include "cli/config/spec_fields.h"
#include "switch_reduce/aggregation_spec.h"
#include "switch_reduce/reduce_spec.h"

namespace weft {

void reduce_fields(FieldReader& fields, ReduceSpec& reduce);
void reduce_fields(FieldWriter& fields, ReduceSpec& reduce);
void aggregation_fields(FieldReader& fields, AggregationSpec& aggregation);
void aggregation_fields(FieldWriter& fields, AggregationSpec& aggregation);

}  // namespace weft
