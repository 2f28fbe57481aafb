// Like PyTorch's for rows of up to 1024 (aten/src/ATen/native/cuda/PersistentSoftmax.cuh): a warp keeps a row in its
// registers. Names and template arguments are those that tell the row's length.
#include <stdexcept>

#include "bench/gpu/device/check.h"
#include "bench/gpu/victims/arena.h"
#include "bench/gpu/victims/vector.cuh"
#include "bench/gpu/victims/work.h"

namespace weft::gpu_probe {
namespace {

constexpr int kThreads = 128;

template <class T, int kLog2Columns>
struct Row {
  static constexpr int kVectors = (1 << kLog2Columns) / kPerVector<T> / 32;  // of a lane
  __device__ explicit Row(const T* row) {
    const auto* vectors = reinterpret_cast<const Vector<T>*>(row);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const Vector<T> loaded = vectors[v * 32 + threadIdx.x % 32];
#pragma unroll
      for (int i = 0; i < kPerVector<T>; ++i) values[v * kPerVector<T> + i] = to_float(loaded.values[i]);
    }
  }
  __device__ void store(T* row) const {
    auto* vectors = reinterpret_cast<Vector<T>*>(row);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      Vector<T> out;
#pragma unroll
      for (int i = 0; i < kPerVector<T>; ++i) out.values[i] = from_float<T>(values[v * kPerVector<T> + i]);
      vectors[v * 32 + threadIdx.x % 32] = out;
    }
  }
  static constexpr int kCount = kVectors * kPerVector<T>;
  float values[kCount];
};

template <class T, int kLog2Columns>
__global__ void softmax_warp_forward(T* out, const T* in, long long rows) {
  const long long row = static_cast<long long>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  Row<T, kLog2Columns> x(in + (row << kLog2Columns));
  float most = x.values[0];
#pragma unroll
  for (const float value : x.values) most = fmaxf(most, value);
  most = warp_max(most);
  float sum = 0;
#pragma unroll
  for (float& value : x.values) {
    value = expf(value - most);
    sum += value;
  }
  const float scale = 1.0f / warp_sum(sum);
#pragma unroll
  for (float& value : x.values) value *= scale;
  x.store(out + (row << kLog2Columns));
}

template <class T, int kLog2Columns>
__global__ void softmax_warp_backward(T* out, const T* gradient, const T* output, long long rows) {
  const long long row = static_cast<long long>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  Row<T, kLog2Columns> g(gradient + (row << kLog2Columns));
  const Row<T, kLog2Columns> y(output + (row << kLog2Columns));
  float sum = 0;
#pragma unroll
  for (int i = 0; i < g.kCount; ++i) {
    g.values[i] *= y.values[i];
    sum += g.values[i];
  }
  sum = warp_sum(sum);
#pragma unroll
  for (int i = 0; i < g.kCount; ++i) g.values[i] -= y.values[i] * sum;
  g.store(out + (row << kLog2Columns));
}

template <class T, int kLog2Columns>
class SoftmaxWork : public Work {
 public:
  SoftmaxWork(const Step& step, const Workshop& workshop)
      : rows_(std::get<Matrix>(step.shape).rows), backward_(step.kind == StepKind::softmax_backward) {
    const auto take = [&] { return workshop.arena.take(rows_ << kLog2Columns, step.element, workshop.copies); };
    out_ = take();
    in_ = take();
    if (backward_) output_ = take();
  }

  void launch(cudaStream_t stream, unsigned turn) override {
    const auto grid = static_cast<unsigned>((rows_ + kThreads / 32 - 1) / (kThreads / 32));
    T* const out = out_.at<T>(turn);
    if (backward_) {
      softmax_warp_backward<T, kLog2Columns>
          <<<grid, kThreads, 0, stream>>>(out, in_.at<T>(turn), output_.at<T>(turn), rows_);
    } else {
      softmax_warp_forward<T, kLog2Columns><<<grid, kThreads, 0, stream>>>(out, in_.at<T>(turn), rows_);
    }
    check_launch("softmax_warp");
  }

 private:
  long long rows_;
  bool backward_;
  Buffers out_, in_, output_;
};

}  // namespace

std::unique_ptr<Work> make_softmax(const Step& step, const Workshop& workshop) {
  return with_type(step.element, [&](auto zero) -> std::unique_ptr<Work> {
    using T = decltype(zero);
    switch (std::get<Matrix>(step.shape).columns) {
      case 512:
        return std::make_unique<SoftmaxWork<T, 9>>(step, workshop);
      case 1024:
        return std::make_unique<SoftmaxWork<T, 10>>(step, workshop);
      default:
        throw std::logic_error("a softmax over other rows than those of 512 and 1024");
    }
  });
}

}  // namespace weft::gpu_probe
