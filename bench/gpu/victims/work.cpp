#include "bench/gpu/victims/work.h"

#include <stdexcept>

namespace weft::gpu_probe {

std::unique_ptr<Work> make_work(const Step& step, const Workshop& workshop) {
  switch (step.kind) {
    case StepKind::product:
      return make_product(step, workshop);
    case StepKind::conv_forward:
    case StepKind::conv_backward_data:
    case StepKind::conv_backward_filter:
      return make_convolution(step, workshop);
    case StepKind::add:
    case StepKind::gelu:
    case StepKind::gelu_backward:
    case StepKind::dropout_backward:
      return make_elementwise(step, workshop);
    case StepKind::row_sum:
      return make_row_sum(step, workshop);
    case StepKind::layer_norm:
      return make_layer_norm(step, workshop);
    case StepKind::layer_norm_backward:
      return make_layer_norm_backward(step, workshop);
    case StepKind::softmax:
    case StepKind::softmax_backward:
      return make_softmax(step, workshop);
    case StepKind::attention:
      return make_attention(step, workshop);
    case StepKind::adam:
      return make_adam(step, workshop);
    case StepKind::timed_blocks:
      return make_timed_blocks(step, workshop);
  }
  throw std::logic_error("a step of no kind");
}

}  // namespace weft::gpu_probe
