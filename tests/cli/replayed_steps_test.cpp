// How long the iterations of a replay are, beside the recorded ones.
#include <gtest/gtest.h>

#include "tests/cli/run_weft.h"
#include "tests/cli/small_trace.h"
#include "tests/sim/temporary_folder.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

// A kernel of 5 us, launched at 2 us, in each of two steps of `step_us`, started `lag_us` later.
Trace steps(double step_us, double lag_us) {
  Trace trace = small_trace();
  trace.world_size = 1;
  TraceRank& rank = trace.ranks.front();
  const TraceOp kernel = rank.ops.front();
  rank.ops.clear();
  rank.iterations.clear();
  for (std::uint32_t i = 0; i < 2; ++i) {
    const Time begin = microseconds(step_us * i);
    rank.iterations.push_back({"step", begin, begin + microseconds(step_us)});
    TraceOp& op = rank.ops.emplace_back(kernel);
    op.iteration = i;
    op.issued = begin + microseconds(2);
    op.start = op.issued + microseconds(lag_us);
  }
  return trace;
}

// Of the run, in us; the recorded ones are those of the steps.
std::vector<double> replayed_us(const Trace& trace, double recorded_us, const std::string& fidelity) {
  const TemporaryFolder folder;
  write_trace(trace, folder.path() / "t.json");
  folder.write("e.json", R"({"system": "dgx-a100", "gpus": 1, "iterations": 2, "workload": {"trace": "t.json"}})");
  const Ran ran = weft("run e.json -o out --json --fidelity " + fidelity, folder);
  EXPECT_EQ(ran.code, 0) << ran.errors;
  const Ran compared = weft("trace compare t.json out --json", folder);
  EXPECT_EQ(compared.code, 0) << compared.errors;
  const Json recorded = parse_json(compared.output, "stdout").at("steps");
  for (const Json& s : recorded.at("recorded_s")) EXPECT_NEAR(s.get<double>(), recorded_us * 1e-6, 1e-9) << fidelity;
  std::vector<double> us;
  const Json result = parse_json(ran.output, "stdout");
  for (const Json& s : result.at("iteration").at("per_iteration")) us.push_back(s.get<double>() * 1e6);
  return us;
}

TEST(ReplayedSteps, LastAsLongAsRecordedWhereTheHostDoesSomethingBehindItsLastOperation) {
  for (const char* fidelity : {"cycle", "sampled"}) {
    const std::vector<double> us = replayed_us(steps(100, 6), 100, fidelity);
    ASSERT_EQ(us.size(), 2U);
    // What is behind the kernel is 87 us of each; launching it takes the simulated machine less.
    EXPECT_NEAR(us[0], 100, 4) << fidelity;
    EXPECT_NEAR(us[1], 100, 4) << fidelity;
  }
}

TEST(ReplayedSteps, DoNotCountWhatTheDeviceWasAtBefore) {
  for (const char* fidelity : {"cycle", "sampled"}) {
    Trace trace = steps(50, 500);  // far behind the host, at the end as at the beginning
    trace.ranks.front().ops[0].duration = trace.ranks.front().ops[1].duration = microseconds(50);
    const std::vector<double> us = replayed_us(trace, 50, fidelity);
    ASSERT_EQ(us.size(), 2U);
    EXPECT_NEAR(us[0], 50, 3) << fidelity;
    EXPECT_NEAR(us[1], 50, 3) << fidelity;
  }
}

}  // namespace
}  // namespace weft
