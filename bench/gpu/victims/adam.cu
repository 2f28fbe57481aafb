// A fused Adam step as PyTorch's multi_tensor_apply launches it (aten/src/ATen/native/cuda/MultiTensorApply.cuh): a
// block of 512 threads takes a chunk of 65536 elements.
#include "bench/gpu/device/check.h"
#include "bench/gpu/victims/arena.h"
#include "bench/gpu/victims/vector.cuh"
#include "bench/gpu/victims/work.h"

namespace weft::gpu_probe {
namespace {

constexpr int kThreads = 512;
constexpr long long kChunk = 65536;

template <int kLists>
struct TensorListMetadata {  // named as PyTorch's: the name of the kernel tells how many lists there are
  float* addresses[kLists];
  long long elements;
};

struct FusedAdamMathFunctor {
  float rate = 1e-3f, beta1 = 0.9f, beta2 = 0.999f;
  __device__ void operator()(float gradient, float& parameter, float& first, float& second) const {
    first = beta1 * first + (1 - beta1) * gradient;
    second = beta2 * second + (1 - beta2) * gradient * gradient;
    parameter -= rate * first / (sqrtf(fabsf(second)) + 1e-8f);
  }
};

template <class Metadata, class Functor>
__global__ void multi_tensor_apply_kernel(Metadata lists, Functor f) {
  using V = Vector<float>;
  const long long first = blockIdx.x * kChunk / 4;
  const long long last = min(first + kChunk / 4, lists.elements / 4);
  for (long long at = first + threadIdx.x; at < last; at += kThreads) {
    const V gradient = reinterpret_cast<const V*>(lists.addresses[0])[at];
    V parameter = reinterpret_cast<const V*>(lists.addresses[1])[at];
    V moment = reinterpret_cast<const V*>(lists.addresses[2])[at];
    V variance = reinterpret_cast<const V*>(lists.addresses[3])[at];
#pragma unroll
    for (int i = 0; i < 4; ++i) f(gradient.values[i], parameter.values[i], moment.values[i], variance.values[i]);
    reinterpret_cast<V*>(lists.addresses[1])[at] = parameter;
    reinterpret_cast<V*>(lists.addresses[2])[at] = moment;
    reinterpret_cast<V*>(lists.addresses[3])[at] = variance;
  }
}

class AdamWork : public Work {
 public:
  AdamWork(const Step& step, const Workshop& workshop) : elements_(std::get<Matrix>(step.shape).elements()) {
    for (Buffers& buffers : lists_) buffers = workshop.arena.take(elements_, Element::fp32, workshop.copies);
  }

  void launch(cudaStream_t stream, unsigned turn) override {
    TensorListMetadata<4> lists{};
    for (int i = 0; i < 4; ++i) lists.addresses[i] = lists_[i].at<float>(turn);
    lists.elements = elements_;
    const auto grid = static_cast<unsigned>((elements_ + kChunk - 1) / kChunk);
    multi_tensor_apply_kernel<<<grid, kThreads, 0, stream>>>(lists, FusedAdamMathFunctor{});
    check_launch("multi_tensor_apply_kernel");
  }

 private:
  long long elements_;
  Buffers lists_[4];
};

}  // namespace

std::unique_ptr<Work> make_adam(const Step& step, const Workshop& workshop) {
  return std::make_unique<AdamWork>(step, workshop);
}

}  // namespace weft::gpu_probe
