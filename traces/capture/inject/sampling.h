// What GPUs move over time, in the pass of a capture that records times: which GPUs are sampled, and by which thread.
//
// All of it runs on the writer's thread. The program's threads only say that a context was created on a device, and a
// program without contexts is not touched.
#pragma once

#include <cupti.h>

#include "traces/capture/inject/record_file.h"

namespace weft::capture {

// kSamplingVariable is set.
[[nodiscard]] bool sampling_asked();

// Whether CUPTI can; tells the user when it cannot.
[[nodiscard]] bool can_sample();

// From now on the device of the context is sampled.
void sample_device_of(CUcontext context);

// The writer's thread: starts what was asked for since the last call, and writes what there is. `last`: stops.
void write_samples(RecordFile& file, bool last);

}  // namespace weft::capture
