#include "traces/measured_demand.h"

#include <gmock/gmock.h>

#include "traces/kernel_demand.h"

namespace weft {
namespace {

LaunchShape grid(std::uint32_t x, std::uint32_t y, std::uint32_t threads) {
  return {{x, y, 1}, {threads, 1, 1}, 32, 0};
}

KernelGuess guess(const char* name, const LaunchShape& shape, const KernelCounters& counters) {
  return guess_kernel_demand(name, shape, {.counters = &counters});
}
double touched(const std::vector<TensorUse>& uses, const LaunchShape& shape) {
  double bytes = 0;
  for (const TensorUse& use : uses) bytes += static_cast<double>(use.bytes_per_block * shape.blocks());
  return bytes;
}
double flops(const KernelGuess& guess, Pipe pipe) { return guess.node.flops[static_cast<std::size_t>(pipe)]; }

constexpr const char* kAdd =
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> "
    ">(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)";
constexpr const char* kProduct = "ampere_sgemm_128x64_nn";

TEST(MeasuredDemand, HasTheBytesOfL2AndTheOperationsOfItsPipes) {
  KernelCounters counters;
  counters[KernelCounter::l2_read_bytes] = 3'000'000;
  counters[KernelCounter::l2_written_bytes] = 1'500'000;
  counters[KernelCounter::fp32_ops] = 700;
  counters[KernelCounter::fp16_ops] = 100;
  const KernelGuess add = guess(kAdd, grid(1000, 1, 128), counters);
  EXPECT_EQ(touched(add.node.reads, add.node.shape), 3e6);
  EXPECT_EQ(touched(add.node.writes, add.node.shape), 1.5e6);
  EXPECT_EQ(add.node.reads.size(), 2u);  // the structure is as guessed
  EXPECT_EQ(add.tensors, (std::vector<Bytes>{Bytes(1'500'000), Bytes(1'500'000), Bytes(1'500'000)}));
  EXPECT_EQ(flops(add, Pipe::fp32), 750);
  EXPECT_EQ(add.node.origin, DemandOrigin::counters);
}

TEST(MeasuredDemand, OfOperationsAloneIsStillGuessed) {
  KernelCounters counters;
  counters[KernelCounter::fp32_ops] = 700;
  const KernelGuess add = guess(kAdd, grid(1000, 1, 128), counters);
  EXPECT_EQ(flops(add, Pipe::fp32), 700);
  EXPECT_EQ(touched(add.node.reads, add.node.shape), 2 * 1000 * 512 * 4);
  EXPECT_EQ(add.node.origin, DemandOrigin::name);
}

TEST(MeasuredDemand, NarrowTypesTakeLessOfTheTensorPipe) {
  KernelCounters counters;
  counters[KernelCounter::tensor_fp16_ops] = 1000;
  counters[KernelCounter::tensor_8bit_ops] = 400;
  counters[KernelCounter::tensor_4bit_ops] = 80;
  const auto operations = pipe_operations(counters);
  EXPECT_EQ(operations[static_cast<std::size_t>(Pipe::tensor_fp16)], 1220);
  EXPECT_EQ(operations[static_cast<std::size_t>(Pipe::tensor_tf32)], std::nullopt);
}

// K of a product is no longer a matter of its time.
TEST(MeasuredDemand, AProductIsAsDeepAsItsOperations) {
  KernelCounters counters;
  counters[KernelCounter::fp32_ops] = 2LL * 128 * 64 * 320 * 30;
  const KernelGuess product = guess(kProduct, grid(6, 5, 128), counters);
  const KernelGuess guessed = guess_kernel_demand(kProduct, grid(6, 5, 128));
  EXPECT_EQ(product.node.iterations * guessed.node.flops[static_cast<std::size_t>(Pipe::fp32)],
            guessed.node.iterations * flops(product, Pipe::fp32));
  EXPECT_EQ(flops(product, Pipe::fp32), 2.0 * 128 * 64 * 320 * 30);
}

TEST(MeasuredDemand, LargeFootprintsAreWhatHbmReads) {
  KernelCounters counters;
  counters[KernelCounter::l2_read_bytes] = 2'000'000'000;
  counters[KernelCounter::hbm_read_bytes] = 500'000'000;
  const KernelGuess add = guess(kAdd, grid(10'000, 1, 128), counters);
  EXPECT_EQ(touched(add.node.reads, add.node.shape), 2e9);
  EXPECT_EQ(add.node.reads[0].modulo, 2500u);
  EXPECT_EQ(add.tensors[0].count() + add.tensors[1].count(), 500'000'000);
}

TEST(MeasuredDemand, OfWhatFitsInACacheHbmTellsNothing) {
  KernelCounters counters;
  counters[KernelCounter::l2_read_bytes] = 40'000'000;
  counters[KernelCounter::hbm_read_bytes] = 0;
  const KernelGuess add = guess(kAdd, grid(10'000, 1, 128), counters);
  EXPECT_EQ(add.node.reads[0].modulo, 0u);
  EXPECT_EQ(touched(add.node.reads, add.node.shape), 4e7);
}

TEST(MeasuredDemand, WithoutL2HbmTellsTheFootprint) {
  KernelCounters counters;
  counters[KernelCounter::hbm_read_bytes] = 6'000'000;
  counters[KernelCounter::hbm_written_bytes] = 0;
  const KernelGuess add = guess(kAdd, grid(1000, 1, 128), counters);
  EXPECT_EQ(touched(add.node.reads, add.node.shape), 6e6);
  EXPECT_TRUE(add.node.writes.empty());
}

TEST(MeasuredDemand, OfUnknownKernelsTheBytesNeedNoTime) {
  KernelCounters counters;
  counters[KernelCounter::l2_read_bytes] = 8'000'000;
  counters[KernelCounter::l2_written_bytes] = 4'000'000;
  const KernelGuess unknown = guess("mystery", grid(1000, 1, 128), counters);
  EXPECT_EQ(touched(unknown.node.reads, unknown.node.shape), 8e6);
  EXPECT_EQ(touched(unknown.node.writes, unknown.node.shape), 4e6);
  EXPECT_EQ(unknown.node.iterations, 2u);  // of 16 B a thread: 4000 B of each tensor a block
}

TEST(MeasuredDemand, AbsurdCountersStayWithinBounds) {
  KernelCounters counters;
  for (auto& value : counters.values) value = kMostCounted;
  for (const char* name : {kAdd, kProduct, "mystery"}) {
    const KernelGuess absurd = guess(name, grid(3, 5, 128), counters);
    for (const Bytes bytes : absurd.tensors) EXPECT_LE(bytes.count(), 4'000'000'000);
  }
}

}  // namespace
}  // namespace weft
