// Steps of a ring that GPUs go through apart from each other.
#include "cli/sampled/repeated_steps.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

ProgramOp kernel(std::uint64_t base, std::vector<OpId> waits = {}) {
  ProgramOp op;
  op.stream = StreamId{0};
  op.waits = std::move(waits);
  op.kernel.shape = {.grid = {8, 1, 1}, .block = {256, 1, 1}};
  op.kernel.reads = {{.base = base, .bytes_per_block = 4096}};
  return op;
}

ProgramOp shift(std::uint32_t sequence, std::vector<OpId> waits = {}) {
  ProgramOp op;
  op.kind = ProgramOpKind::collective;
  op.stream = StreamId{1};
  op.waits = std::move(waits);
  op.collective = {.kind = CollectiveKind::shift, .bytes = Bytes(65536), .group = GpuGroup::first(4)};
  op.collective.sequence = sequence;
  op.collective.receive_address = 4096;
  return op;
}

// One kernel, then steps of a shift and a kernel that waits for the shift before, then a kernel.
Program ring(std::uint32_t steps) {
  Program program;
  program.priorities = {0, 0};
  program.ops.push_back(kernel(0));
  for (std::uint32_t i = 0; i < steps; ++i) {
    const std::uint32_t at = 1 + 2 * i;
    program.ops.push_back(i == 0 ? shift(i, {OpId{0}}) : shift(i, {OpId{at - 1}}));
    program.ops.push_back(i == 0 ? kernel(8192) : kernel(8192 * (1 + i % 2), {OpId{at - 2}}));
  }
  program.ops.push_back(kernel(0));
  return program;
}

TEST(RepeatedSteps, AreFoundWhateverBuffersTheyUse) {
  // The first step waits for other operations than those behind it.
  EXPECT_EQ(repeated_steps(ring(9), 0), (std::vector<RepeatedSteps>{{.first = 3, .period = 2, .times = 8}}));
  EXPECT_EQ(repeated_steps(ring(9), 7), (std::vector<RepeatedSteps>{{.first = 7, .period = 2, .times = 6}}));
  EXPECT_TRUE(repeated_steps(ring(4), 0).empty());
}

TEST(RepeatedSteps, AreNoneIfKernelsDifferOrNothingIsPassedOn) {
  Program other = ring(9);
  for (std::size_t i = 0; i < other.ops.size(); ++i) other.ops.edit()[i].kernel.flops[0] = static_cast<double>(i);
  EXPECT_TRUE(repeated_steps(other, 0).empty());
  Program alone;
  alone.priorities = {0};
  for (std::uint32_t i = 0; i < 20; ++i) alone.ops.push_back(kernel(0));
  EXPECT_TRUE(repeated_steps(alone, 0).empty());
}

}  // namespace
}  // namespace weft
