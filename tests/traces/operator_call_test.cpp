// What the sizes of an operator's inputs tell of the kernels it launches, checked against the usual formulas.
#include "traces/operator_call.h"

#include <gtest/gtest.h>

#include "traces/kernel_demand.h"

namespace weft {
namespace {

OperatorCall call(const std::string& name, std::vector<std::vector<std::int64_t>> sizes) {
  OperatorCall out;
  out.name = name;
  for (auto& s : sizes) out.inputs.push_back({4, std::move(s)});
  return out;
}

constexpr double kAny = 1e18;

double flops(const OperatorCall& c, const char* kernel = "k", double most_outputs = kAny) {
  const auto work = product_work(c, kernel, most_outputs);
  return work ? work->flops : 0;
}

TEST(OperatorCallFormula, MatrixProducts) {
  const double expected = 2.0 * 64 * 128 * 256;
  EXPECT_EQ(flops(call("aten::mm", {{64, 256}, {256, 128}})), expected);
  EXPECT_EQ(flops(call("aten::addmm", {{128}, {64, 256}, {256, 128}})), expected);
  EXPECT_EQ(flops(call("aten::linear", {{8, 8, 256}, {128, 256}, {128}})), expected);
  EXPECT_EQ(flops(call("aten::bmm", {{6, 64, 256}, {6, 256, 128}})), 6 * expected);
  EXPECT_EQ(flops(call("aten::baddbmm", {{6, 64, 128}, {6, 64, 256}, {6, 256, 128}})), 6 * expected);
}

TEST(OperatorCallFormula, Convolutions) {
  // 64 outputs of 28 x 28 from 32 channels through 3 x 3.
  const double outputs = 8.0 * 64 * 28 * 28;
  const double expected = 2 * outputs * 32 * 9;
  const OperatorCall forward = call("aten::cudnn_convolution", {{8, 32, 28, 28}, {64, 32, 3, 3}});
  EXPECT_EQ(flops(forward), expected);
  EXPECT_EQ(flops(forward, "k", outputs / 4), expected / 4);  // a stride of two, told by the grid
  EXPECT_EQ(product_work(forward, "k", kAny)->taps, 9);
  const OperatorCall backward =
      call("aten::convolution_backward", {{8, 64, 28, 28}, {8, 32, 28, 28}, {64, 32, 3, 3}, {}});
  EXPECT_EQ(flops(backward, "dgrad"), expected);
  EXPECT_EQ(flops(backward, "wgrad"), expected);
  EXPECT_EQ(flops(backward, "winograd_dgrad"), 0);
}

TEST(OperatorCallFormula, Attention) {
  // Two products of 128 x 64 x 128 a head.
  const double expected = 2 * 4 * 2 * (2.0 * 128 * 128 * 64);
  EXPECT_EQ(flops(call("aten::_flash_attention_forward", {{2, 128, 4, 64}, {2, 128, 4, 64}, {2, 128, 4, 64}})),
            expected);
  EXPECT_EQ(flops(call("aten::_scaled_dot_product_flash_attention", {{2, 4, 128, 64}, {2, 4, 128, 64}})), expected);
  EXPECT_EQ(flops(call("aten::_flash_attention_backward", {{2, 128, 4, 64}, {2, 128, 4, 64}, {2, 128, 4, 64}})),
            2.5 * expected);
}

TEST(OperatorCall, OfUnexpectedFormTellsNothing) {
  EXPECT_EQ(flops(call("aten::mm", {{64, 256}, {255, 128}})), 0);
  EXPECT_EQ(flops(call("aten::mm", {{64}})), 0);
  EXPECT_EQ(flops(call("aten::conv2d", {{8, 32}, {}})), 0);
  EXPECT_EQ(flops(call("aten::add", {{8, 32}, {8, 32}})), 0);
  EXPECT_FALSE(streamed_bytes(call("aten::mm", {{64, 256}}), 4).has_value());
  EXPECT_FALSE(streamed_bytes(call("aten::add", {{}, {}}), 4).has_value());
}

TEST(OperatorCall, StreamsItsLargestInputOrAllThatItJoins) {
  OperatorCall add = call("aten::add", {{100, 10}, {10}});
  EXPECT_EQ(streamed_bytes(add, 2), 4000);
  add.inputs[0].element_bytes = 0;
  EXPECT_EQ(streamed_bytes(add, 2), 2000);
  EXPECT_EQ(streamed_bytes(call("aten::cat", {{100, 10}, {50, 10}}), 4), 6000);
}

// The demand of a kernel whose operator is known.

LaunchShape grid(std::uint32_t x, std::uint32_t y, std::uint32_t threads) {
  LaunchShape shape;
  shape.grid = {x, y, 1};
  shape.block = {threads, 1, 1};
  return shape;
}

KernelNode demand(const std::string& kernel, const LaunchShape& shape, const OperatorCall& c) {
  return guess_kernel_demand(kernel, shape, {.alone = MeasuredAlone{microseconds(100), 108}, .call = &c}).node;
}

TEST(KernelDemandFromShapes, ProductsDoTheOperatorsWork) {
  // 1024 x 1024 x 4096 in tiles of 128 x 64, split in four over K: 1024 deep each.
  const OperatorCall mm = call("aten::mm", {{1024, 4096}, {4096, 1024}});
  LaunchShape shape = grid(8, 16, 256);
  shape.grid[2] = 4;
  const KernelNode node = demand("ampere_sgemm_128x64_nn", shape, mm);
  EXPECT_EQ(node.origin, DemandOrigin::shapes);
  EXPECT_DOUBLE_EQ(node.flops[static_cast<std::size_t>(Pipe::fp32)], 2.0 * 1024 * 1024 * 4096);
  EXPECT_EQ(node.iterations, 1024U / 8);
  EXPECT_EQ(node.reads[0].bytes_per_block, 128U * 1024 * 4);
}

TEST(KernelDemandFromShapes, NormsReadWhatTheOperatorGot) {
  const OperatorCall norm = call("aten::cudnn_batch_norm", {{16, 64, 56, 56}, {64}, {64}});
  const KernelNode node = demand("void cudnn::bn_fw_tr_1C11_singleread<float>()", grid(64, 1, 512), norm);
  EXPECT_EQ(node.origin, DemandOrigin::shapes);
  EXPECT_EQ(node.reads[0].bytes_per_block, 16U * 56 * 56 * 4);
  EXPECT_EQ(node.writes[0].bytes_per_block, 16U * 56 * 56 * 4);
}

TEST(KernelDemandFromShapes, ElementwiseKernelsFillTheirLastBlockInPart) {
  const std::string name = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, x>()";
  const OperatorCall fits = call("aten::add", {{1900}, {1900}});
  EXPECT_EQ(demand(name, grid(4, 1, 128), fits).origin, DemandOrigin::shapes);
  EXPECT_EQ(demand(name, grid(4, 1, 128), fits).reads[0].bytes_per_block, 1900U);
  const OperatorCall other = call("aten::add", {{10}, {10}});  // of another kernel of the operator
  EXPECT_EQ(demand(name, grid(4, 1, 128), other).origin, DemandOrigin::name);
  EXPECT_EQ(demand(name, grid(4, 1, 128), other).reads[0].bytes_per_block, 2048U);
}

TEST(KernelDemandFromShapes, TablesDoNotCountAsRead) {
  const OperatorCall embedding = call("aten::index_select", {{1000000, 64}, {}, {10}});
  EXPECT_EQ(demand("indexSelectLargeIndex<float>", grid(4, 1, 128), embedding).origin, DemandOrigin::name);
}

TEST(KernelDemandFromShapes, SizesThatAreNoneGiveNoTiles) {
  const char* kernel =
      "sm90_xmma_dgrad_implicit_gemm_indexed_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x64x64_kernel";
  const LaunchShape launched = grid(132, 1, 384);
  for (const std::int64_t channels : {0, -32}) {
    const OperatorCall backward =
        call("aten::convolution_backward", {{8, 64, 28, 28}, {8, channels, 28, 28}, {64, 32, 3, 3}, {}});
    const KernelNode node = demand(kernel, launched, backward);
    EXPECT_EQ(node.pieces, 0U) << channels;
  }
  // More parts of the sum than numbers for them.
  const OperatorCall product = call("aten::mm", {{128, 64}, {64, 64}});
  const char* split = "nvjet_sm90_tst_128x64_64x8_1x1_v_bz_splitK_NTN";
  EXPECT_EQ(demand(split, grid(1, 8, 384), product).reads[0].modulo, 8U);
  EXPECT_GE(demand(split, grid(65'536, 65'536, 384), product).reads[0].modulo, 1U);
  const OperatorCall backward =
      call("aten::convolution_backward", {{8, 64, 28, 28}, {8, 32, 28, 28}, {64, 32, 3, 3}, {}});
  EXPECT_EQ(demand(kernel, launched, backward).pieces, 49U)
      << "6272 positions in tiles of 128, 32 channels in one of 64";
}

}  // namespace
}  // namespace weft
