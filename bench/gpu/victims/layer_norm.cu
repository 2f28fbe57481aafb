// Like PyTorch's (aten/src/ATen/native/cuda/layer_norm_kernel.cu): a block a row, which it reads twice, once for the
// statistics and once to normalise; the second time mostly from a cache.
#include "bench/gpu/device/check.h"
#include "bench/gpu/victims/arena.h"
#include "bench/gpu/victims/vector.cuh"
#include "bench/gpu/victims/work.h"

namespace weft::gpu_probe {
namespace {

constexpr int kThreads = 128;

template <class T>
struct Tensors {
  const T* x;
  const float* scale;
  const float* shift;
  T* y;
  float* mean;
  float* rstd;
  long long columns;
};

template <class T>
__global__ void vectorized_layer_norm_kernel(Tensors<T> t) {
  const auto* x = reinterpret_cast<const Vector<T>*>(t.x + blockIdx.x * t.columns);
  auto* y = reinterpret_cast<Vector<T>*>(t.y + blockIdx.x * t.columns);
  constexpr int kN = kPerVector<T>;
  const long long vectors = t.columns / kN;
  float sum = 0, squares = 0;
  for (long long at = threadIdx.x; at < vectors; at += kThreads) {
    const Vector<T> v = x[at];
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const float value = to_float(v.values[i]);
      sum += value;
      squares += value * value;
    }
  }
  const auto columns = static_cast<float>(t.columns);
  const float mean = block_sum(sum) / columns;
  const float rstd = rsqrtf(fmaxf(block_sum(squares) / columns - mean * mean, 0.0f) + 1e-5f);
  for (long long at = threadIdx.x; at < vectors; at += kThreads) {
    const Vector<T> v = x[at];
    Vector<T> out;
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const long long column = at * kN + i;
      out.values[i] = from_float<T>((to_float(v.values[i]) - mean) * rstd * t.scale[column] + t.shift[column]);
    }
    y[at] = out;
  }
  if (threadIdx.x == 0) {
    t.mean[blockIdx.x] = mean;
    t.rstd[blockIdx.x] = rstd;
  }
}

template <class T>
class LayerNormWork : public Work {
 public:
  LayerNormWork(const Step& step, const Workshop& workshop)
      : shape_(std::get<Matrix>(step.shape)),
        x_(workshop.arena.take(shape_.elements(), step.element, workshop.copies)),
        y_(workshop.arena.take(shape_.elements(), step.element, workshop.copies)),
        parameters_(workshop.arena.take(2 * shape_.columns, Element::fp32, 1)),
        statistics_(workshop.arena.take(2 * shape_.rows, Element::fp32, 1)) {}

  void launch(cudaStream_t stream, unsigned turn) override {
    auto* const scale = parameters_.at<float>(0);
    auto* const mean = statistics_.at<float>(0);
    const Tensors<T> tensors{x_.at<T>(turn),     scale,         scale + shape_.columns, y_.at<T>(turn), mean,
                             mean + shape_.rows, shape_.columns};
    vectorized_layer_norm_kernel<T><<<static_cast<unsigned>(shape_.rows), kThreads, 0, stream>>>(tensors);
    check_launch("vectorized_layer_norm_kernel");
  }

 private:
  Matrix shape_;
  Buffers x_, y_, parameters_, statistics_;
};

}  // namespace

std::unique_ptr<Work> make_layer_norm(const Step& step, const Workshop& workshop) {
  return with_type(step.element, [&](auto zero) -> std::unique_ptr<Work> {
    return std::make_unique<LayerNormWork<decltype(zero)>>(step, workshop);
  });
}

}  // namespace weft::gpu_probe
