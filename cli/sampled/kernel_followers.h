// GPUs that run the first one's program, but are not worth it in the network: their kernels take as long as the first
// one's, and nothing of the GPU. So of kernels one GPU is simulated, of collectives all.
#pragma once

#include "cli/machine.h"

namespace weft {

// Between two windows: kernels of other GPUs than the first one (GpuWork::kernels_timed) end, as soon as the first
// one's have and it is known how long those took. Later than that by a window at most, or where theirs began before. A
// GPU waits for the first one's kernel only where the program has it wait for its own, so none waits in a circle.
void follow_first(Machine& machine, Time now);

}  // namespace weft
