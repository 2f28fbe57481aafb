#include "traces/kernel_demand.h"

#include <gmock/gmock.h>

#include "traces/copy_shape.h"

namespace weft {
namespace {

LaunchShape shape(std::uint32_t x, std::uint32_t y, std::uint32_t z, std::uint32_t threads, std::uint32_t shared = 0) {
  return {{x, y, z}, {threads, 1, 1}, 32, shared};
}
std::uint64_t bytes_of(const KernelGuess& guess, const TensorUse& use) {
  return use.bytes_per_block * guess.node.shape.blocks();
}

const char* const kAdd =
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> "
    ">(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)";

TEST(KernelDemand, KnowsTheBytesOfElementwiseKernels) {
  const KernelGuess add = guess_kernel_demand(kAdd, shape(12544, 1, 1, 128));
  EXPECT_EQ(add.kernel_class, KernelClass::elementwise);
  ASSERT_EQ(add.node.reads.size(), 2u);
  ASSERT_EQ(add.node.writes.size(), 1u);
  EXPECT_EQ(bytes_of(add, add.node.reads[0]), 12544u * 512 * 4);
  EXPECT_EQ(bytes_of(add, add.node.writes[0]), 12544u * 512 * 4);
  EXPECT_EQ(add.tensors.size(), 3u);
  EXPECT_EQ(add.node.origin, DemandOrigin::name);

  const KernelGuess half = guess_kernel_demand(
      "void at::native::elementwise_kernel<128, 4, "
      "at::native::gpu_kernel_impl_nocast<at::native::BUnaryFunctor<c10::Half, "
      "c10::Half, c10::Half, at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&)",
      shape(10, 1, 1, 128));
  EXPECT_EQ(half.node.reads.size(), 1u);
  EXPECT_EQ(half.node.reads[0].bytes_per_block, 128u * 4 * 2);
}

TEST(KernelDemand, AFillReadsNothing) {
  const KernelGuess fill = guess_kernel_demand(
      "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1> "
      ">(int)",
      shape(50176, 1, 1, 128));
  EXPECT_TRUE(fill.node.reads.empty());
  EXPECT_EQ(bytes_of(fill, fill.node.writes[0]), 50176u * 512 * 4);
}

TEST(KernelDemand, TakesTilesFromTheNamesOfLibraries) {
  struct Case {
    const char* name;
    std::uint32_t m, n, k, stages;
    Pipe pipe;
  };
  const std::vector<Case> cases = {
      {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(P)", 256, 64, 16, 4,
       Pipe::tensor_tf32},
      {"void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_64x128_32x3_nhwc_align4>(P)", 64,
       128, 32, 3, Pipe::tensor_tf32},
      {"sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x128x32_stage5_warpsize2x2x1_g1_"
       "tensor16x8x8_execute_kernel_cudnn_infer",
       64, 128, 32, 5, Pipe::tensor_tf32},
      {"ampere_fp16_s16816gemm_fp16_128x256_ldg8_f2f_stages_64x3_tn", 128, 256, 64, 3, Pipe::tensor_fp16},
      {"volta_sgemm_32x128_tn", 32, 128, 8, 2, Pipe::fp32},
      {"ampere_sgemm_128x64_nn", 128, 64, 8, 2, Pipe::fp32},
      {"void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(P)", 128, 32, 8, 5, Pipe::fp32},
      {"_ZN19cutlass_cudnn_train6KernelINS_4gemm9GemmShapeILi64ELi128ELi32EEENS_12tfloat32_tE", 64, 128, 32, 2,
       Pipe::tensor_tf32},
      {"igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt64x128x32_wt32x32x8_ws1x1", 64, 128, 32, 2, Pipe::tensor_fp16},
      {"Cijk_Ailk_Bljk_BBS_BH_MT64x32x64_MI16x16x16x1_SN", 64, 32, 64, 2, Pipe::tensor_fp16},
  };
  for (const Case& c : cases) {
    const GemmTile tile = gemm_tile(c.name, shape(1, 1, 1, 128));
    EXPECT_EQ(tile.m, c.m) << c.name;
    EXPECT_EQ(tile.n, c.n) << c.name;
    EXPECT_EQ(tile.k, c.k) << c.name;
    EXPECT_EQ(tile.stages, c.stages) << c.name;
    EXPECT_EQ(tile.pipe, c.pipe) << c.name;
  }
}

TEST(KernelDemand, KnowsTheNamesOfCublasOnHopper) {
  const LaunchShape grid = shape(2, 66, 1, 384);
  const GemmTile tile = gemm_tile("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", grid);
  EXPECT_EQ(tile.m * tile.n, 256u * 128);
  EXPECT_EQ(tile.k, 64u);
  EXPECT_EQ(tile.stages, 4u);
  EXPECT_EQ(tile.pipe, Pipe::tensor_fp16);
  EXPECT_EQ(gemm_tile("nvjet_hsh_128x64_64x8_1x2_h_bz_NTT", grid).pipe, Pipe::tensor_fp16);
  EXPECT_EQ(gemm_tile("nvjet_sm90_sss_128x64_32x8_1x2_h_bz_NTT", grid).pipe, Pipe::tensor_tf32);
  EXPECT_EQ(named_cluster("nvjet_sm90_tst_256x128_64x4_4x2_h_bz_coopA_TNT"), (std::array{4u, 2u}));
  EXPECT_EQ(named_cluster("nvjet_sm90_tst_64x128_64x8_2x1_v_bz_splitK_NTN"), (std::array{2u, 1u}));
  EXPECT_EQ(named_cluster("cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_void_bf16_128x128x64_2x1x1_0_tnn"),
            (std::array{2u, 1u}));
  EXPECT_EQ(gemm_tile("cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_void_bf16_128x256x64_2x1x1_0_tnn", grid).n,
            256u);
  EXPECT_EQ(named_cluster("ampere_fp16_s16816gemm_fp16_128x256_ldg8_f2f_stages_64x3_tn"), (std::array{1u, 1u}));
  EXPECT_EQ(persistent_product("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"), PieceOrder::claim);
  EXPECT_EQ(persistent_product("nvjet_sm90_hsh_256x128_64x4_1x2_h_ssched_bz_coopA_NNT"), PieceOrder::stride);
  EXPECT_FALSE(persistent_product("nvjet_sm90_tst_64x128_64x8_2x1_v_bz_splitK_NTN"));
  EXPECT_FALSE(persistent_product("ampere_sgemm_128x64_nn"));
}

// 4096 x 4096 in tiles of 256 x 128, on 132 blocks in clusters of two.
TEST(KernelDemand, APersistentProductHasATileForEachPieceOfWork) {
  const OperatorCall call{"aten::mm", {{2, {4096, 1024}}, {2, {1024, 4096}}}};
  const auto guess = [&](const char* name, std::uint32_t blocks) {
    return guess_kernel_demand(name, shape(2, blocks / 2, 1, 384), {.call = &call}).node;
  };
  const KernelNode node = guess("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", 132);
  EXPECT_EQ(node.pieces, 512u);
  EXPECT_EQ(node.piece_order, PieceOrder::claim);
  EXPECT_EQ(node.shape.cluster_blocks, 2u);
  EXPECT_EQ(node.iterations, 1024u / 64);
  EXPECT_EQ(node.reads[0].shared_by, 2u) << "1x2: the rows of A";
  EXPECT_EQ(node.reads[1].shared_by, 1u);
  EXPECT_TRUE(node.bulk_loads);
  EXPECT_EQ(node.writes[0].bytes_per_block, 256u * 128 * 2);
  EXPECT_EQ(guess("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", 512).pieces, 0u) << "as many blocks as tiles";
  // xmma launches the whole GPU, and blocks behind the last tile have nothing to do.
  const char* xmma = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize256x256x64_warpgroupsize2x1x1_kernel";
  EXPECT_EQ(guess(xmma, 1024).pieces, 256u);
  EXPECT_EQ(guess(xmma, 1024).piece_order, PieceOrder::stride);
}

TEST(KernelDemand, AProductSharesTilesBetweenBlocksAndWritesAtTheEnd) {
  const KernelGuess gemm = guess_kernel_demand("ampere_sgemm_128x64_nn", shape(6, 5, 2, 128));
  EXPECT_EQ(gemm.kernel_class, KernelClass::gemm);
  ASSERT_EQ(gemm.node.reads.size(), 2u);
  const TensorUse& a = gemm.node.reads[0];
  const TensorUse& b = gemm.node.reads[1];
  EXPECT_EQ(a.divisor, 1u);
  EXPECT_EQ(a.modulo, 6u);
  EXPECT_EQ(b.divisor, 6u);
  EXPECT_EQ(b.modulo, 0u);
  const std::uint64_t k = gemm.node.iterations * 8;
  EXPECT_EQ(a.bytes_per_block, 128 * k * 4);
  EXPECT_EQ(b.bytes_per_block, 64 * k * 4);
  EXPECT_EQ(gemm.tensors[a.tensor.value], Bytes(static_cast<std::int64_t>(6 * a.bytes_per_block)));
  EXPECT_EQ(gemm.tensors[b.tensor.value], Bytes(static_cast<std::int64_t>(10 * b.bytes_per_block)));
  EXPECT_EQ(gemm.node.writes[0].bytes_per_block, 128u * 64 * 4);
  EXPECT_TRUE(gemm.node.write_at_end);
  EXPECT_DOUBLE_EQ(gemm.node.flops[static_cast<std::size_t>(Pipe::fp32)], 2.0 * 128 * 64 * static_cast<double>(k) * 60);
}

TEST(KernelDemand, LongerProductsAreDeeperInSteps) {
  const std::string name = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(P)";
  const auto rounds = [&](double us) {
    return guess_kernel_demand(name, shape(8, 1, 32, 128), {.alone = MeasuredAlone{microseconds(us), 108}})
        .node.iterations;
  };
  EXPECT_LT(rounds(50), rounds(100));
  EXPECT_EQ(rounds(80), rounds(80.4));
}

TEST(KernelDemand, NeverAsksMoreThanHardwareDoesInTheTimeAlone) {
  const double time = 100e-6;
  for (const char* name :
       {"ampere_sgemm_128x64_nn", "cutlass_80_tensorop_s1688gemm_256x64_16x4_nn", "bn_fw_tr_1C11_kernel",
        "bn_bw_1C11_kernel_new", "some_unknown_kernel", "reduce_kernel<512, 1>"}) {
    const KernelGuess guess =
        guess_kernel_demand(name, shape(108, 1, 1, 256), {.alone = MeasuredAlone{seconds(time), 108}});
    double bytes = 0;
    for (const Bytes tensor : guess.tensors) bytes += static_cast<double>(tensor.count());
    double flops = 0;
    for (const double f : guess.node.flops) flops += f;
    EXPECT_LT(bytes / time, 1555e9) << name;  // A100's HBM
    EXPECT_LT(flops / time, 156e12) << name;  // A100's TF32
    EXPECT_GT(bytes, 0) << name;
  }
}

TEST(KernelDemand, IsTheSameForTimesThatDifferByNoise) {
  for (const char* name : {"some_unknown_kernel", "bn_fw_tr_1C11_kernel", "reduce_kernel<512, 1>",
                           "nchwToNhwcKernel<float, float, float, true, false>"}) {
    const auto bytes_in = [&](double us) {
      const KernelGuess guess =
          guess_kernel_demand(name, shape(640, 1, 1, 256), {.alone = MeasuredAlone{microseconds(us), 108}});
      return guess.tensors.front().count();
    };
    EXPECT_EQ(bytes_in(31.0), bytes_in(31.3)) << name;
    EXPECT_EQ(bytes_in(31.0), bytes_in(30.7)) << name;
    EXPECT_LT(bytes_in(5.0), bytes_in(31.0)) << name;
  }
}

// By the name rows fill three quarters of 2^log2 elements; the operator knows.
TEST(KernelDemand, SoftmaxHasTheBytesOfItsOperator) {
  const std::string name = "void softmax_warp_backward<float, float, float, 10, false, false>";
  const OperatorCall call{"aten::_softmax_backward_data", {{4, {8192, 1024}}, {4, {8192, 1024}}}};
  const auto bytes = [&](const OperatorCall* of) {
    return guess_kernel_demand(name, shape(2048, 1, 1, 128), {.call = of}).node.reads.at(0).bytes_per_block;
  };
  EXPECT_EQ(bytes(&call), 4U * 1024 * 4);
  EXPECT_EQ(bytes(nullptr), 3U * 1024 * 4);
}

// Shape.cu: a thread loads an element, or a vector, and stores it before the next one.
TEST(KernelDemand, ConcatenationsHaveOneLoadAThreadUnderWay) {
  const OperatorCall cat{"aten::cat", {{4, {1024, 1024}}, {4, {1024, 1024}}}};
  const auto node = [&](const std::string& name) {
    return guess_kernel_demand(name, shape(160, 2, 1, 512), {.call = &cat}).node;
  };
  const KernelNode scalar = node("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2>");
  const double bytes = 2.0 * 1024 * 1024 * 4 / 320;  // of a block
  EXPECT_EQ(scalar.reads.at(0).bytes_per_block, std::ceil(bytes));
  EXPECT_EQ(scalar.iterations, std::ceil(bytes / (512 * 4)));
  EXPECT_EQ(scalar.stages, 1U);
  const KernelNode vectors = node("CatArrayBatchedCopy_aligned16_contig<OpaqueType<4>, unsigned int, 2, 128, 1>");
  EXPECT_EQ(vectors.iterations, std::ceil(bytes / (512 * 16)));
  EXPECT_EQ(vectors.stages, 1U);
}

TEST(KernelDemand, BatchNormReadsItsInputTwiceUnlessItKeepsIt) {
  const MeasuredAlone alone{microseconds(100), 108};
  const KernelGuess twice = guess_kernel_demand("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 128, true>",
                                                shape(64, 1, 1, 512), {.alone = alone});
  ASSERT_EQ(twice.node.reads.size(), 2u);
  EXPECT_EQ(twice.node.reads[0].tensor, twice.node.reads[1].tensor);
  const KernelGuess backward = guess_kernel_demand("void cudnn::bn_bw_1C11_singleread<float, 512, true, 1, 2, 0>",
                                                   shape(512, 1, 1, 512), {.alone = alone});
  EXPECT_EQ(backward.kernel_class, KernelClass::batch_norm_backward);
  ASSERT_EQ(backward.node.reads.size(), 2u);
  EXPECT_NE(backward.node.reads[0].tensor, backward.node.reads[1].tensor);
}

TEST(KernelDemand, CopiesMoveTheirBytesInAndOut) {
  const Bytes bytes(1'000'000);
  const LaunchShape launch = copy_shape(bytes);
  EXPECT_EQ(launch.blocks(), 123u);
  const KernelGuess copy = guess_kernel_demand("Memcpy DtoD (Device -> Device)", launch, {.bytes = bytes});
  ASSERT_EQ(copy.node.reads.size(), 1u);
  ASSERT_EQ(copy.node.writes.size(), 1u);
  EXPECT_NEAR(static_cast<double>(bytes_of(copy, copy.node.reads[0])), 1e6, 123);
  const KernelGuess fill = guess_kernel_demand("Memset (Device)", launch, {.bytes = bytes});
  EXPECT_TRUE(fill.node.reads.empty());
  EXPECT_NEAR(static_cast<double>(bytes_of(fill, fill.node.writes[0])), 1e6, 123);
}

TEST(KernelDemand, TellsClassesApart) {
  const std::vector<std::pair<const char*, KernelClass>> cases = {
      {"void cublasLt::splitKreduce_kernel<32, 16, int>", KernelClass::reduction},
      {"void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>", KernelClass::transpose},
      {"batched_transpose_16x32_half", KernelClass::transpose},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<X>", KernelClass::multi_tensor},
      {"void (anonymous namespace)::softmax_warp_backward<float, float, float, 10, true, false>",
       KernelClass::softmax_backward},
      {"void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>", KernelClass::pooling_forward},
      {"void fbgemm_gpu::permute_2D_lengths_kernel<int>", KernelClass::copy},
      {"void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>",
       KernelClass::copy},
      {"void cuApplyLayerNorm<c10::Half, float, c10::Half>", KernelClass::batch_norm_forward},
      {"sm80_xmma_wgrad_implicit_gemm_indexed_tf32", KernelClass::convolution},
      {"triton__0d1d2d3de", KernelClass::unknown}};
  for (const auto& [name, expected] : cases) EXPECT_EQ(kernel_class(name), expected) << name;
}

}  // namespace
}  // namespace weft
