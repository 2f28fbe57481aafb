// Grids and loads like those of PyTorch's vectorized_elementwise_kernel (aten/src/ATen/native/cuda/CUDALoops.cuh): 128
// threads a block, one vector of 16 B of each tensor a thread.
#include "bench/gpu/device/check.h"
#include "bench/gpu/victims/arena.h"
#include "bench/gpu/victims/vector.cuh"
#include "bench/gpu/victims/work.h"

namespace weft::gpu_probe {
namespace {

constexpr int kThreads = 128;

template <class T, int kCount>
struct array {  // named as PyTorch's: the name of the kernel tells how many tensors there are
  T data[kCount];
};

struct AddFunctor {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct GeluFunctor {
  __device__ float operator()(float x, float) const { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
};
struct GeluBackwardFunctor {
  __device__ float operator()(float gradient, float x) const {
    const float cdf = 0.5f * (1.0f + erff(x * 0.70710678f));
    return gradient * (cdf + x * 0.39894228f * expf(-0.5f * x * x));
  }
};
struct MaskedScaleFunctor {
  __device__ float operator()(float gradient, float mask) const { return gradient * mask * 1.1111111f; }
};

// data: the output, then the inputs.
template <int kVector, class T, class Functor, int kTensors>
__global__ void vectorized_elementwise_kernel(long long vectors, Functor f, array<char*, kTensors> data) {
  const long long at = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= vectors) return;
  const auto a = reinterpret_cast<const Vector<T>*>(data.data[1])[at];
  const auto b = reinterpret_cast<const Vector<T>*>(data.data[kTensors - 1])[at];
  Vector<T> out;
#pragma unroll
  for (int i = 0; i < kVector; ++i) out.values[i] = from_float<T>(f(to_float(a.values[i]), to_float(b.values[i])));
  reinterpret_cast<Vector<T>*>(data.data[0])[at] = out;
}

template <class T, class Functor, int kTensors>
class ElementwiseWork : public Work {
 public:
  ElementwiseWork(const Step& step, const Workshop& workshop) : elements_(std::get<Matrix>(step.shape).elements()) {
    for (Buffers& buffers : data_) buffers = workshop.arena.take(elements_, step.element, workshop.copies);
  }

  void launch(cudaStream_t stream, unsigned turn) override {
    constexpr int kVector = kPerVector<T>;
    array<char*, kTensors> data;
    for (int i = 0; i < kTensors; ++i) data.data[i] = data_[i].template at<char>(turn);
    const long long vectors = elements_ / kVector;
    const auto grid = static_cast<unsigned>((vectors + kThreads - 1) / kThreads);
    vectorized_elementwise_kernel<kVector, T><<<grid, kThreads, 0, stream>>>(vectors, Functor{}, data);
    check_launch("vectorized_elementwise_kernel");
  }

 private:
  long long elements_;
  Buffers data_[kTensors];
};

}  // namespace

std::unique_ptr<Work> make_elementwise(const Step& step, const Workshop& workshop) {
  return with_type(step.element, [&](auto zero) -> std::unique_ptr<Work> {
    using T = decltype(zero);
    switch (step.kind) {
      case StepKind::gelu:
        return std::make_unique<ElementwiseWork<T, GeluFunctor, 2>>(step, workshop);
      case StepKind::gelu_backward:
        return std::make_unique<ElementwiseWork<T, GeluBackwardFunctor, 3>>(step, workshop);
      case StepKind::dropout_backward:
        return std::make_unique<ElementwiseWork<T, MaskedScaleFunctor, 3>>(step, workshop);
      default:
        return std::make_unique<ElementwiseWork<T, AddFunctor, 3>>(step, workshop);
    }
  });
}

}  // namespace weft::gpu_probe
