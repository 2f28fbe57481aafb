// What ranges of NVTX mark: iterations, phases, layers, operators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/capture/capture_import.h"
#include "tests/capture/capture_records.h"

namespace weft {
namespace {

using capture::TestProcess;
using testing::CaptureImport;

constexpr std::int64_t kUs = 1'000'000'000;  // fs

TEST_F(CaptureImport, RangesMarkIterationsPhasesAndLayers) {
  TestProcess p(folder.file("a.weftcap"));
  p.session();
  for (std::uint32_t i = 0; i < 2; ++i) {
    const double t = i * 100.0;
    const std::uint32_t n = i * 10 + 1;
    p.range(n, ("iteration " + std::to_string(i)).c_str(), t, t + 90);
    p.range(n + 1, "forward", t + 1, t + 20);
    p.range(n + 2, "layer: encoder.0", t + 2, t + 19);
    p.launch("gemm", t + 3, t + 10, t + 20, 7, n);
    p.range(n + 3, "backward", t + 21, t + 60);
    // Autograd launches from a thread of its own, which marks nothing.
    p.launch("gemm_backward", t + 25, t + 30, t + 40, 7, n + 1, 2);
    p.range(n + 4, "optimizer step", t + 61, t + 80);
    p.launch("adam", t + 62, t + 65, t + 70, 7, n + 2);
  }
  p.end();
  const Trace trace = import();
  const TraceRank& rank = trace.ranks[0];
  ASSERT_EQ(rank.iterations.size(), 2u);
  EXPECT_EQ(rank.iterations[1].name, "ProfilerStep#1");
  EXPECT_EQ(rank.iterations[1].start.count(), 100 * kUs);
  EXPECT_EQ(op(trace, "gemm").phase, TrainingPhase::forward);
  EXPECT_EQ(op(trace, "gemm").layer, "encoder.0");
  EXPECT_EQ(op(trace, "gemm_backward").phase, TrainingPhase::backward);
  EXPECT_EQ(op(trace, "adam").phase, TrainingPhase::optimizer);
  EXPECT_EQ(rank.ops.back().iteration, 1u);
}

// Steps of a gradient that is accumulated.
TEST_F(CaptureImport, OfNestedIterationsTheOutermostCount) {
  TestProcess p(folder.file("a.weftcap"));
  p.session();
  for (std::uint32_t i = 0; i < 2; ++i) {
    const double t = i * 100.0;
    const std::uint32_t n = i * 10 + 1;
    p.range(n, ("step " + std::to_string(2 * i)).c_str(), t + 1, t + 40);  // ends first, so is recorded first
    p.range(n + 1, ("step " + std::to_string(2 * i + 1)).c_str(), t + 41, t + 80);
    p.range(n + 2, ("iteration " + std::to_string(i)).c_str(), t, t + 90);
    p.launch("gemm", t + 3, t + 10, t + 20, 7, n);
    p.launch("relu", t + 43, t + 50, t + 60, 7, n + 1);
  }
  p.end();
  const Trace trace = import();
  const TraceRank& rank = trace.ranks[0];
  ASSERT_EQ(rank.iterations.size(), 2u);
  EXPECT_EQ(rank.iterations[1].name, "ProfilerStep#1");
  EXPECT_EQ(rank.iterations[1].end.count(), 190 * kUs);
  EXPECT_EQ(rank.ops[1].iteration, 0u);
  EXPECT_EQ(rank.ops[3].iteration, 1u);
}

// As DeepSpeed has them: the ranges of a ZeRO optimizer's methods lie within backward, on autograd's thread, and are
// more than those of the thread that called it.
TEST_F(CaptureImport, HooksOnAutogradsThreadLeaveItBackward) {
  TestProcess p(folder.file("a.weftcap"));
  p.session();
  p.range(1, "DeepSpeedEngine.forward", 0, 20);
  p.launch("gemm", 3, 10, 20, 7, 1);
  p.range(2, "DeepSpeedEngine.backward", 21, 60);
  p.launch("gemm_backward", 25, 30, 40, 7, 2, 2);
  p.range(3, "DeepSpeedZeRoOffload.pre_sub_module_backward_function", 27, 28, 2);
  p.range(4, "DeepSpeedZeRoOffload.pre_sub_module_forward_function", 29, 32, 2);
  p.launch("gather", 30, 40, 45, 8, 3, 2);
  p.range(5, "DeepSpeedZeroOptimizer_Stage3.reduce_independent_p_g_buckets", 40, 50, 2);
  p.launch("reduce", 42, 50, 55, 8, 4, 2);
  p.launch("gemm_backward_2", 52, 55, 59, 7, 5, 2);
  p.range(6, "DeepSpeedZeroOptimizer_Stage3.step", 61, 80);
  p.launch("adam", 62, 65, 70, 7, 6);
  p.end();
  const Trace trace = import();
  EXPECT_EQ(op(trace, "gemm").phase, TrainingPhase::forward);
  for (const char* name : {"gemm_backward", "gather", "reduce", "gemm_backward_2"})
    EXPECT_EQ(op(trace, name).phase, TrainingPhase::backward) << name;
  EXPECT_EQ(op(trace, "adam").phase, TrainingPhase::optimizer);
  EXPECT_EQ(trace.ranks[0].iterations.size(), 1u);
  EXPECT_EQ(trace.ranks[0].iterations[0].end.count(), 80 * kUs);
}

TEST_F(CaptureImport, AThreadThatTrainsOnItsOwnKeepsItsPhases) {
  TestProcess p(folder.file("a.weftcap"));
  p.session();
  p.range(1, "forward", 0, 20);
  p.launch("gemm", 3, 10, 20, 7, 1);
  p.range(2, "backward", 21, 60);
  p.launch("gemm_backward", 25, 30, 40, 7, 2);
  p.range(3, "forward", 10, 30, 2);
  p.range(4, "backward", 31, 45, 2);
  p.launch("other", 28, 31, 33, 8, 3, 2);
  p.end();
  EXPECT_EQ(op(import(), "other").phase, TrainingPhase::forward);
}

// As in a loop that no one numbers; the libraries that its kernels come from mark ranges of their own, in domains.
TEST_F(CaptureImport, PhasesTellTheIterations) {
  TestProcess p(folder.file("a.weftcap"));
  p.session();
  p.launch("initialize", 0, 10, 20, 7, 1);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const double t = 100 + i * 100.0;
    const std::uint32_t n = i * 10 + 10;
    p.range(n, "forward", t, t + 20);
    p.launch("gemm", t + 3, t + 10, t + 20, 7, n);
    p.range(n + 1, "backward", t + 21, t + 60);
    p.range(n + 2, "cub::DeviceScan", t + 24, t + 29, 2, "CCCL");
    p.range(n + 3, "bucket 1", t + 24, t + 29, 2);
    p.launch("gemm_backward", t + 25, t + 30, t + 40, 7, n + 1, 2);
    p.range(n + 4, "optimizer", t + 61, t + 80);
    p.launch("adam", t + 62, t + 65, t + 70, 7, n + 2);
  }
  p.end();
  const Trace trace = import();
  const TraceRank& rank = trace.ranks[0];
  ASSERT_EQ(rank.iterations.size(), 2u);
  EXPECT_EQ(rank.iterations[0].start.count(), 100 * kUs);
  EXPECT_EQ(rank.iterations[0].end.count(), 180 * kUs);
  EXPECT_EQ(op(trace, "initialize").iteration, std::nullopt);
  EXPECT_EQ(op(trace, "gemm_backward").phase, TrainingPhase::backward);
  EXPECT_EQ(op(trace, "gemm_backward").op, "");
  EXPECT_EQ(rank.ops.back().iteration, 1u);
}

TEST_F(CaptureImport, RangesOfEmitNvtxAreOperators) {
  TestProcess p(folder.file("a.weftcap"));
  p.session();
  p.range(1, "aten::conv2d, seq = 12, op_id = 3", 0, 10);
  p.launch("conv", 1, 10, 20, 7, 1);
  p.range(2, "autograd::engine::evaluate_function: ConvolutionBackward0, op_id = 9", 30, 40, 2);
  p.launch("conv_backward", 31, 40, 50, 7, 2, 2);
  p.end();
  const Trace trace = import();
  EXPECT_EQ(op(trace, "conv").op, "aten::conv2d");
  EXPECT_EQ(op(trace, "conv").phase, TrainingPhase::forward);
  EXPECT_EQ(op(trace, "conv_backward").op, "ConvolutionBackward0");
  EXPECT_EQ(op(trace, "conv_backward").phase, TrainingPhase::backward);
}

}  // namespace
}  // namespace weft
