// Attention forward in one kernel: a block has 64 queries and goes over the keys 64 at a time, keeping the running
// maximum and sum of each row. Tensor cores through WMMA; simple, so slower than a library's.
#include <mma.h>

#include <stdexcept>

#include "bench/gpu/device/check.h"
#include "bench/gpu/victims/arena.h"
#include "bench/gpu/victims/vector.cuh"
#include "bench/gpu/victims/work.h"

namespace weft::gpu_probe {
namespace {

using namespace nvcuda;

constexpr int kTile = 64, kWidth = 64, kThreads = 128;
constexpr int kHalfStride = kWidth + 8, kFloatStride = kWidth + 4;  // against bank conflicts
constexpr int kHalfTile = kTile * kHalfStride, kFloatTile = kTile * kFloatStride;
constexpr int kSharedBytes = 4 * kHalfTile * 2 + 2 * kFloatTile * 4;

struct Tensors {
  const __nv_bfloat16* q;
  const __nv_bfloat16* k;
  const __nv_bfloat16* v;
  __nv_bfloat16* out;
  long long length, heads;
};

// 64 positions of one head into shared memory; a position's heads lie side by side in memory.
__device__ void load_tile(__nv_bfloat16* to, const __nv_bfloat16* from, long long stride) {
  constexpr int kPerRow = kWidth / 8;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kPerRow; i += kThreads) {
    const int row = i / kPerRow, part = i % kPerRow;
    *reinterpret_cast<uint4*>(to + row * kHalfStride + part * 8) =
        *reinterpret_cast<const uint4*>(from + row * stride + part * 8);
  }
}

using Left = wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major>;
using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// c[16, 64] = or += a[16, 64] b, of a warp; b is a tile of keys (column major) or values (row major).
template <class Layout>
__device__ void multiply(float* c, const __nv_bfloat16* a, const __nv_bfloat16* b, bool adds) {
  constexpr bool kColumns = std::is_same_v<Layout, wmma::col_major>;
#pragma unroll
  for (int n = 0; n < kTile; n += 16) {
    Sum sum;
    if (adds)
      wmma::load_matrix_sync(sum, c + n, kFloatStride, wmma::mem_row_major);
    else
      wmma::fill_fragment(sum, 0.0f);
#pragma unroll
    for (int k = 0; k < kWidth; k += 16) {
      Left left;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, Layout> right;
      wmma::load_matrix_sync(left, a + k, kHalfStride);
      wmma::load_matrix_sync(right, b + (kColumns ? n * kHalfStride + k : k * kHalfStride + n), kHalfStride);
      wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c + n, sum, kFloatStride, wmma::mem_row_major);
  }
}

// Each lane has half a row of the warp's 16.
struct RunningRow {
  float most = -1e30f, sum = 0;
  __device__ void take(const float* scores, __nv_bfloat16* weights, float* out) {
    constexpr float kScale = 0.125f;  // 1 / sqrt(width)
    float tile_most = most;
    for (int i = 0; i < kTile / 2; ++i) tile_most = fmaxf(tile_most, scores[i] * kScale);
    tile_most = fmaxf(tile_most, __shfl_xor_sync(0xffffffffu, tile_most, 1));
    const float shrink = __expf(most - tile_most);
    float tile_sum = 0;
    for (int i = 0; i < kTile / 2; ++i) {
      const float weight = __expf(scores[i] * kScale - tile_most);
      weights[i] = __float2bfloat16(weight);
      tile_sum += weight;
      out[i] *= shrink;
    }
    tile_sum += __shfl_xor_sync(0xffffffffu, tile_sum, 1);
    sum = sum * shrink + tile_sum;
    most = tile_most;
  }
};

__global__ void __launch_bounds__(kThreads) flash_fwd_kernel(Tensors t) {
  extern __shared__ __align__(128) unsigned char shared[];
  auto* const q = reinterpret_cast<__nv_bfloat16*>(shared);
  auto* const k = q + kHalfTile;
  auto* const v = k + kHalfTile;
  auto* const weights = v + kHalfTile;
  auto* const scores = reinterpret_cast<float*>(weights + kHalfTile);
  auto* const out = scores + kFloatTile;

  const long long stride = t.heads * kWidth;
  const long long batch = blockIdx.y / t.heads, head = blockIdx.y % t.heads;
  const long long base = batch * t.length * stride + head * kWidth;
  const long long first = static_cast<long long>(blockIdx.x) * kTile;
  load_tile(q, t.q + base + first * stride, stride);
  for (int i = static_cast<int>(threadIdx.x); i < kFloatTile; i += kThreads) out[i] = 0;

  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp * 16 + lane / 2, half = lane % 2 * (kTile / 2);
  RunningRow running;
  for (long long key = 0; key < t.length; key += kTile) {
    __syncthreads();
    load_tile(k, t.k + base + key * stride, stride);
    load_tile(v, t.v + base + key * stride, stride);
    __syncthreads();
    multiply<wmma::col_major>(scores + warp * 16 * kFloatStride, q + warp * 16 * kHalfStride, k, false);
    __syncwarp();
    running.take(scores + row * kFloatStride + half, weights + row * kHalfStride + half,
                 out + row * kFloatStride + half);
    __syncwarp();
    multiply<wmma::row_major>(out + warp * 16 * kFloatStride, weights + warp * 16 * kHalfStride, v, true);
    __syncwarp();
  }
  const float scale = 1.0f / running.sum;
  __nv_bfloat16* const to = t.out + base + (first + row) * stride + half;
  for (int i = 0; i < kTile / 2; ++i) to[i] = __float2bfloat16(out[row * kFloatStride + half + i] * scale);
}

class AttentionWork : public Work {
 public:
  AttentionWork(const Step& step, const Workshop& workshop) : shape_(std::get<Heads>(step.shape)) {
    if (shape_.width != kWidth || shape_.length % kTile != 0) throw std::logic_error("attention of an unfit shape");
    for (Buffers& buffers : data_)
      buffers =
          workshop.arena.take(shape_.batch * shape_.heads * shape_.length * kWidth, Element::bf16, workshop.copies);
    check(cudaFuncSetAttribute(flash_fwd_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
          "dynamic shared memory of the attention");
  }

  void launch(cudaStream_t stream, unsigned turn) override {
    const auto at = [&](int i) { return data_[i].at<__nv_bfloat16>(turn); };
    const dim3 grid(static_cast<unsigned>(shape_.length / kTile), static_cast<unsigned>(shape_.batch * shape_.heads));
    flash_fwd_kernel<<<grid, kThreads, kSharedBytes, stream>>>(
        {at(0), at(1), at(2), at(3), shape_.length, shape_.heads});
    check_launch("flash_fwd_kernel");
  }

 private:
  Heads shape_;
  Buffers data_[4];
};

}  // namespace

std::unique_ptr<Work> make_attention(const Step& step, const Workshop& workshop) {
  return std::make_unique<AttentionWork>(step, workshop);
}

}  // namespace weft::gpu_probe
