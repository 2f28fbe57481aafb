#include "bench/gpu/device/check.h"
#include "bench/gpu/victims/arena.h"
#include "bench/gpu/victims/vector.cuh"
#include "bench/gpu/victims/work.h"

namespace weft::gpu_probe {
namespace {

constexpr int kThreads = 512;
constexpr int kRows = kThreads / 32;  // of a block: a warp a row

template <int kBlock, class T>
__global__ void reduce_kernel(const T* in, T* out, long long rows, long long columns) {
  const long long row = static_cast<long long>(blockIdx.x) * (kBlock / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  const auto* vectors = reinterpret_cast<const Vector<T>*>(in + row * columns);
  const unsigned lane = threadIdx.x % 32;
  float sum = 0;
#pragma unroll 4
  for (long long at = lane; at < columns / kPerVector<T>; at += 32) {
    const Vector<T> v = vectors[at];
#pragma unroll
    for (int i = 0; i < kPerVector<T>; ++i) sum += to_float(v.values[i]);
  }
  sum = warp_sum(sum);
  if (lane == 0) out[row] = from_float<T>(sum);
}

template <class T>
class RowSumWork : public Work {
 public:
  RowSumWork(const Step& step, const Workshop& workshop)
      : shape_(std::get<Matrix>(step.shape)),
        in_(workshop.arena.take(shape_.elements(), step.element, workshop.copies)),
        out_(workshop.arena.take(shape_.rows, step.element, 1)) {}

  void launch(cudaStream_t stream, unsigned turn) override {
    const auto grid = static_cast<unsigned>((shape_.rows + kRows - 1) / kRows);
    reduce_kernel<kThreads, T>
        <<<grid, kThreads, 0, stream>>>(in_.at<T>(turn), out_.at<T>(turn), shape_.rows, shape_.columns);
    check_launch("reduce_kernel");
  }

 private:
  Matrix shape_;
  Buffers in_, out_;
};

}  // namespace

std::unique_ptr<Work> make_row_sum(const Step& step, const Workshop& workshop) {
  return with_type(step.element, [&](auto zero) -> std::unique_ptr<Work> {
    return std::make_unique<RowSumWork<decltype(zero)>>(step, workshop);
  });
}

}  // namespace weft::gpu_probe
