// The end of a training step: unscaling under mixed precision and the update, as multi-tensor kernels.
#pragma once

#include "workloads/training_step.h"

namespace weft {

// torch.optim.SGD with momentum and weight decay, foreach form: four passes of multi_tensor_apply_kernel.
void sgd_with_momentum(TrainingStep& step);
// apex.optimizers.FusedLAMB: gradient norm, stage 1 (moments and update, kept in the gradients' buffer), norms of
// parameters and updates, stage 2.
void fused_lamb(TrainingStep& step);
// torch.optim.AdamW, fused form: one pass over parameters, gradients and both moments.
void fused_adam(TrainingStep& step);

}  // namespace weft
