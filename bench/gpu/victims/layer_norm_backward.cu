// Like PyTorch's (aten/src/ATen/native/cuda/layer_norm_kernel.cu): one kernel with a block a row for the gradient of
// the data, one with a block for 32 columns of a stretch of rows for those of scale and shift.
#include "bench/gpu/device/check.h"
#include "bench/gpu/victims/arena.h"
#include "bench/gpu/victims/vector.cuh"
#include "bench/gpu/victims/work.h"

namespace weft::gpu_probe {
namespace {

constexpr int kThreads = 128;
constexpr int kColumns = 32, kLines = 16, kStretch = 512;

template <class T>
struct Tensors {
  const T* gradient;
  const T* x;
  const float* mean;
  const float* rstd;
  const float* scale;
  T* data_gradient;
  float* scale_gradient;
  float* shift_gradient;
  long long rows, columns;
};

template <class T>
__global__ void layer_norm_grad_input_kernel(Tensors<T> t) {
  constexpr int kN = kPerVector<T>;
  const long long row = blockIdx.x;
  const auto* gradient = reinterpret_cast<const Vector<T>*>(t.gradient + row * t.columns);
  const auto* x = reinterpret_cast<const Vector<T>*>(t.x + row * t.columns);
  auto* out = reinterpret_cast<Vector<T>*>(t.data_gradient + row * t.columns);
  const float mean = t.mean[row], rstd = t.rstd[row];
  const long long vectors = t.columns / kN;
  float plain = 0, weighted = 0;
  for (long long at = threadIdx.x; at < vectors; at += kThreads) {
    const Vector<T> g = gradient[at], v = x[at];
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const float scaled = to_float(g.values[i]) * t.scale[at * kN + i];
      plain += scaled;
      weighted += scaled * (to_float(v.values[i]) - mean) * rstd;
    }
  }
  const auto columns = static_cast<float>(t.columns);
  plain = block_sum(plain) / columns;
  weighted = block_sum(weighted) / columns;
  for (long long at = threadIdx.x; at < vectors; at += kThreads) {
    const Vector<T> g = gradient[at], v = x[at];
    Vector<T> result;
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const float normalised = (to_float(v.values[i]) - mean) * rstd;
      const float scaled = to_float(g.values[i]) * t.scale[at * kN + i];
      result.values[i] = from_float<T>(rstd * (scaled - plain - normalised * weighted));
    }
    out[at] = result;
  }
}

template <class T>
__global__ void GammaBetaBackwardCUDAKernel(Tensors<T> t) {
  __shared__ float scales[kLines][kColumns + 1], shifts[kLines][kColumns + 1];
  const long long column = blockIdx.x * kColumns + threadIdx.x;
  const long long first = static_cast<long long>(blockIdx.y) * kStretch;
  const long long last = min(first + kStretch, t.rows);
  float scale = 0, shift = 0;
#pragma unroll 4
  for (long long row = first + threadIdx.y; row < last; row += kLines) {
    const float gradient = to_float(t.gradient[row * t.columns + column]);
    shift += gradient;
    scale += gradient * (to_float(t.x[row * t.columns + column]) - t.mean[row]) * t.rstd[row];
  }
  scales[threadIdx.y][threadIdx.x] = scale;
  shifts[threadIdx.y][threadIdx.x] = shift;
  __syncthreads();
  if (threadIdx.y != 0) return;
  for (int line = 1; line < kLines; ++line) {
    scale += scales[line][threadIdx.x];
    shift += shifts[line][threadIdx.x];
  }
  atomicAdd(t.scale_gradient + column, scale);
  atomicAdd(t.shift_gradient + column, shift);
}

template <class T>
class LayerNormBackwardWork : public Work {
 public:
  LayerNormBackwardWork(const Step& step, const Workshop& workshop)
      : shape_(std::get<Matrix>(step.shape)),
        gradient_(workshop.arena.take(shape_.elements(), step.element, workshop.copies)),
        x_(workshop.arena.take(shape_.elements(), step.element, workshop.copies)),
        out_(workshop.arena.take(shape_.elements(), step.element, workshop.copies)),
        statistics_(workshop.arena.take(2 * shape_.rows, Element::fp32, 1)),
        parameters_(workshop.arena.take(3 * shape_.columns, Element::fp32, 1)) {}

  void launch(cudaStream_t stream, unsigned turn) override {
    auto* const mean = statistics_.at<float>(0);
    auto* const scale = parameters_.at<float>(0);
    const Tensors<T> tensors{gradient_.at<T>(turn),
                             x_.at<T>(turn),
                             mean,
                             mean + shape_.rows,
                             scale,
                             out_.at<T>(turn),
                             scale + shape_.columns,
                             scale + 2 * shape_.columns,
                             shape_.rows,
                             shape_.columns};
    layer_norm_grad_input_kernel<T><<<static_cast<unsigned>(shape_.rows), kThreads, 0, stream>>>(tensors);
    check_launch("layer_norm_grad_input_kernel");
    const dim3 grid(static_cast<unsigned>(shape_.columns / kColumns),
                    static_cast<unsigned>((shape_.rows + kStretch - 1) / kStretch));
    GammaBetaBackwardCUDAKernel<T><<<grid, dim3(kColumns, kLines), 0, stream>>>(tensors);
    check_launch("GammaBetaBackwardCUDAKernel");
  }

 private:
  Matrix shape_;
  Buffers gradient_, x_, out_, statistics_, parameters_;
};

}  // namespace

std::unique_ptr<Work> make_layer_norm_backward(const Step& step, const Workshop& workshop) {
  return with_type(step.element, [&](auto zero) -> std::unique_ptr<Work> {
    return std::make_unique<LayerNormBackwardWork<decltype(zero)>>(step, workshop);
  });
}

}  // namespace weft::gpu_probe
