// Short operations beside an aggressor that writes: what their ends wait for.
#pragma once

#include "bench/gpu/suites/session.h"

namespace weft::gpu_probe {

class KernelRecorder;

// The same operations as run_drain, by CUPTI's times.
void record_drain(Session& session, KernelRecorder& recorder);

}  // namespace weft::gpu_probe
