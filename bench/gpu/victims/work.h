// A step of a victim on the device: its buffers, and how to launch it.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "bench/gpu/plan/step.h"

namespace weft::gpu_probe {

class Arena;
class CublasLibrary;
class CudnnLibrary;

class Work {
 public:
  virtual ~Work() = default;
  // `turn` grows from launch to launch; it picks the buffers. Only launches: no allocation, no waiting.
  virtual void launch(cudaStream_t stream, unsigned turn) = 0;
};

struct Workshop {
  Arena& arena;
  CublasLibrary* cublas = nullptr;  // absent: not found
  CudnnLibrary* cudnn = nullptr;
  unsigned copies = 1;  // of the buffers that take turns
};

// May launch, to try. Throws MissingLibrary where the step needs an absent one.
[[nodiscard]] std::unique_ptr<Work> make_work(const Step& step, const Workshop& workshop);

// The kinds of steps, one a file.
[[nodiscard]] std::unique_ptr<Work> make_product(const Step& step, const Workshop& workshop);
[[nodiscard]] std::unique_ptr<Work> make_convolution(const Step& step, const Workshop& workshop);
[[nodiscard]] std::unique_ptr<Work> make_elementwise(const Step& step, const Workshop& workshop);
[[nodiscard]] std::unique_ptr<Work> make_row_sum(const Step& step, const Workshop& workshop);
[[nodiscard]] std::unique_ptr<Work> make_layer_norm(const Step& step, const Workshop& workshop);
[[nodiscard]] std::unique_ptr<Work> make_layer_norm_backward(const Step& step, const Workshop& workshop);
[[nodiscard]] std::unique_ptr<Work> make_softmax(const Step& step, const Workshop& workshop);
[[nodiscard]] std::unique_ptr<Work> make_attention(const Step& step, const Workshop& workshop);
[[nodiscard]] std::unique_ptr<Work> make_adam(const Step& step, const Workshop& workshop);
[[nodiscard]] std::unique_ptr<Work> make_timed_blocks(const Step& step, const Workshop& workshop);

}  // namespace weft::gpu_probe
