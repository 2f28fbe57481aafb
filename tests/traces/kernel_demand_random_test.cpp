// Whatever a trace says of a kernel, its demand is one: readers are fuzzed up to the trace, this goes on from there.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "traces/kernel_demand.h"

namespace weft {
namespace {

constexpr const char* kNames[] = {
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> "
    ">()",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float> > >()",
    "void at::native::batch_norm_collect_statistics_channels_last_kernel<float>()",
    "void cudnn::bn_bw_1C11_singleread<float, 512, true, 1, 2, 0>()",
    "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)0>()",
    "sm90_xmma_dgrad_implicit_gemm_indexed_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x64x64_kernel",
    "sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_kernel",
    "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize256x128x64_cgasize2x1x1_kernel",
    "nvjet_sm90_tst_128x64_64x8_1x1_v_bz_splitK_NTN",
    "nvjet_sm90_tst_256x128_64x4_2x1_v_bz_coopB_TNT",
    "ampere_sgemm_128x64_tn",
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nt_align4>(T1::Params)",
    "void cutlass_cudnn_train::Kernel<cutlass_tensorop_s1688wgrad_optimized_tf32_128x64_16x5_nhwc_align4>()",
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4> >(Flash_fwd_params)",
    "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, 128, 128, 8> >()",
    "void cunn_SoftMaxForward<8, float, float, float>()",
    "void at::native::vectorized_layer_norm_kernel<float, float>()",
    "void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<4>, AdamFunctor>()",
    "void split_embedding_backward_codegen_cta_per_row_kernel_warp_per_row_1<float>() fbgemm_gpu",
    "indexSelectLargeIndex<float>",
    "Memcpy DtoD (Device -> Device)",
    "Memset (Device)",
    "k"};
constexpr const char* kOperators[] = {"aten::mm",
                                      "aten::addmm",
                                      "aten::bmm",
                                      "aten::baddbmm",
                                      "aten::linear",
                                      "aten::_softmax",
                                      "aten::conv2d",
                                      "aten::copy_",
                                      "aten::cudnn_convolution",
                                      "aten::convolution_backward",
                                      "aten::add_",
                                      "aten::cat",
                                      "aten::sum",
                                      "aten::native_layer_norm",
                                      "aten::_flash_attention_forward",
                                      "aten::embedding",
                                      "?",
                                      "aten::_flash_attention_backward",
                                      "aten::_scaled_mm"};

class Anything {
 public:
  template <class List>
  [[nodiscard]] auto one_of(const List& list) {
    return list[static_cast<std::size_t>(below(std::size(list)))];
  }
  [[nodiscard]] std::uint64_t below(std::uint64_t end) { return random_() % end; }

  // Mostly usual sizes, else none, wrong ones, or as many as there may be.
  [[nodiscard]] std::int64_t size() {
    constexpr std::int64_t kUsual[] = {1, 2, 3, 7, 8, 28, 32, 64, 127, 1024, 4096};
    constexpr std::int64_t kOdd[] = {0, -1, -32, INT64_MIN, INT32_MAX, std::int64_t{1} << 32, kMostElements};
    return below(8) > 0 ? one_of(kUsual) : one_of(kOdd);
  }
  [[nodiscard]] std::uint32_t blocks() {
    constexpr std::uint32_t kCounts[] = {1, 2, 3, 8, 108, 132, 1024, 65'535, INT32_MAX};
    return one_of(kCounts);
  }
  [[nodiscard]] OperatorCall call() {
    OperatorCall call;
    call.name = one_of(kOperators);
    for (std::uint64_t i = below(6); i > 0; --i) {
      OperatorInput input;
      input.element_bytes = static_cast<std::uint32_t>(below(9));
      for (std::uint64_t d = below(6); d > 0; --d) input.sizes.push_back(size());
      call.inputs.push_back(input);
    }
    return call;
  }
  [[nodiscard]] LaunchShape launch() {
    LaunchShape shape;
    shape.grid = {blocks(), below(2) > 0 ? 1 : blocks() % 65'536, below(3) > 0 ? 1 : blocks() % 65'536};
    constexpr std::uint32_t kThreads[] = {1, 31, 32, 128, 384, 1024};
    shape.block = {one_of(kThreads), 1, 1};
    shape.cluster_blocks = below(4) > 0 ? 1 : 1U << below(5);
    return shape;
  }

 private:
  std::mt19937_64 random_{37};
};

void expect_demand(const KernelGuess& guess, const std::string& what) {
  for (const double flops : guess.node.flops) {
    ASSERT_TRUE(std::isfinite(flops) && flops >= 0) << flops << " in " << what;
  }
  ASSERT_GE(guess.node.iterations, 1U) << what;
  ASSERT_GE(guess.node.parts(), 1U) << what;
  for (const Bytes bytes : guess.tensors) ASSERT_GE(bytes.count(), 0) << what;
  for (const auto* uses : {&guess.node.reads, &guess.node.writes}) {
    for (const TensorUse& use : *uses) {
      ASSERT_LT(use.tensor.value, guess.tensors.size()) << what;
      ASSERT_GE(use.divisor, 1U) << what;
      ASSERT_GE(use.shared_by, 1U) << what;
      ASSERT_GE(use.shared_divisor, 1U) << what;
      ASSERT_LT(use.bytes_per_block, std::uint64_t{1} << 62U) << what;
    }
  }
}

TEST(KernelDemandFromShapes, AnythingGivesADemand) {
  Anything any;
  for (int i = 0; i < 40'000; ++i) {
    const std::string name = any.one_of(kNames);
    const OperatorCall call = any.call();
    const LaunchShape launch = any.launch();
    const std::optional<Bytes> bytes =
        any.below(3) > 0 ? std::nullopt : std::optional(Bytes(static_cast<std::int64_t>(any.below(1ULL << 40U))));
    std::optional<MeasuredAlone> alone;
    if (any.below(2) > 0)
      alone = {.duration = nanoseconds(static_cast<double>(any.below(1'000'000))), .compute_units = 132};
    const KernelGuess guess =
        guess_kernel_demand(name, launch, {.bytes = bytes, .alone = alone, .call = any.below(4) > 0 ? &call : nullptr});
    std::string what = std::to_string(i) + ": " + name + ", " + call.name;
    for (const OperatorInput& input : call.inputs) {
      what += " [";
      for (const std::int64_t size : input.sizes) what += std::to_string(size) + " ";
      what += "]";
    }
    what += ", blocks " + std::to_string(launch.blocks());
    expect_demand(guess, what);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace weft
