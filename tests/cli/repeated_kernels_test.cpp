// Traces in which the same kernels come again, each time with a little noise in their times.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/cli/run_weft.h"
#include "tests/sim/temporary_folder.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

constexpr int kKernels = 60;

// Three kernels of one GPU again and again, whose times differ by up to 0.6 %.
Trace repeating() {
  Trace trace;
  trace.source = "test";
  trace.world_size = 1;
  TraceRank rank;
  rank.iterations = {{"step", Time(0), microseconds(100 * kKernels)}};
  for (int i = 0; i < kKernels; ++i) {
    TraceOp kernel;
    kernel.name = "vectorized_elementwise_kernel";
    kernel.iteration = 0;
    kernel.stream = 7;
    kernel.issued = microseconds(100 * i);
    kernel.start = microseconds(100 * i + 10);
    kernel.duration = microseconds((20 + 4 * (i % 3)) * (1 + 0.001 * (i % 7)));
    kernel.shape = LaunchShape{{static_cast<std::uint32_t>(108 * (1 + i % 3)), 1, 1}, {256, 1, 1}, 32, 0};
    rank.ops.push_back(kernel);
  }
  trace.ranks.push_back(rank);
  return trace;
}

TEST(RepeatedKernels, ShareRegimesInSampled) {
  setenv("WEFT_REGIMES", "", 1);  // what other runs have left would not be simulated
  const TemporaryFolder folder;
  write_trace(repeating(), folder.path() / "t.json");
  folder.write("e.json",
               R"({"system": "dgx-a100", "gpus": 1, "fidelity": "sampled", "workload": {"trace": "t.json"}})");
  // Of an L2 that holds what two or three kernels touched.
  const Ran ran = weft("run e.json -o out --json --set gpu.l2.bytes=2621440", folder);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  const Json result = parse_json(ran.output, "stdout");
  int simulated = 0;
  int calibrated = 0;
  int missed = 0;
  for (const Json& note : result.at("notes")) {
    const std::string text = note.get<std::string>();
    static_cast<void>(std::sscanf(text.c_str(), "Sampled: %d stretches", &simulated));
    static_cast<void>(std::sscanf(text.c_str(), "%d kernels calibrated to their time alone, %d", &calibrated, &missed));
  }
  EXPECT_EQ(calibrated, kKernels);
  EXPECT_EQ(missed, 0);
  EXPECT_GT(simulated, 0);
  EXPECT_LE(simulated, kKernels / 3);
}

}  // namespace
}  // namespace weft
