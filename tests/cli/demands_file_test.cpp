// Files of fitted demands: what they hold, what they refuse, and that a run with one is the run that calibrates.
#include "cli/run/demands_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/commands/calibration_report.h"
#include "cli/config/run_config.h"
#include "cli/run/programs.h"
#include "gpu_model/alone.h"
#include "sim/config_file.h"
#include "sim/error.h"
#include "tests/sim/temporary_folder.h"
#include "traces/trace_file.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TraceOp kernel(const std::string& name, double start_us, double duration_us, std::uint32_t iteration) {
  TraceOp op;
  op.name = name;
  op.iteration = iteration;
  op.stream = 7;
  op.issued = microseconds(start_us - 5);
  op.start = microseconds(start_us);
  op.duration = microseconds(duration_us);
  op.shape = LaunchShape{{200, 1, 1}, {128, 1, 1}, 32, 0};
  return op;
}

Trace small_trace() {
  Trace trace;
  trace.source = "t.json";
  TraceRank rank;
  rank.compute_units = 108;
  rank.iterations = {{"a", Time(), microseconds(100)}, {"b", microseconds(100), microseconds(200)}};
  for (std::uint32_t i = 0; i < 2; ++i) {
    rank.ops.push_back(kernel("sgemm_128x64", 10 + 100 * i, 30, i));
    rank.ops.push_back(kernel("reduce_kernel", 60 + 100 * i, 8, i));
  }
  trace.ranks.push_back(rank);
  return trace;
}

class Demands : public ::testing::Test {
 protected:
  Demands() {
    write_trace(small_trace(), trace_);
    config_ = config(2, "");
    program_ = program_of(config_);
    std::int64_t transactions = 0;
    fits_ = run_kernels_alone({&program_, 1}, config_.system.gpu, 1, {}, transactions);
    write_demands(file_, origin(config_, program_), {&program_, 1}, fits_);
  }

  [[nodiscard]] RunConfig config(int iterations, const std::string& demands, Json over = Json::object()) const {
    Json document{{"system", "dgx-a100"},
                  {"gpus", 1},
                  {"workload", {{"trace", trace_.string()}, {"demands", demands}}},
                  {"iterations", iterations}};
    document.update(over);
    return read_run_config(document, folder_.path() / "run.json");
  }
  static Program program_of(const RunConfig& config) {
    std::vector<std::string> notes;
    return make_programs(config, notes).front();
  }
  static DemandsOrigin origin(const RunConfig& config, const Program& program) {
    return demands_origin(std::get<TraceWorkload>(config.workload), config.system, {&program, 1});
  }
  [[nodiscard]] std::string refusal(const RunConfig& other) const {
    const Program program = program_of(other);
    try {
      static_cast<void>(read_demands(file_, origin(other, program), {&program, 1}));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  std::filesystem::path trace_ = folder_.path() / "trace.json.gz";
  std::filesystem::path file_ = folder_.path() / "demands.json.gz";
  RunConfig config_;
  Program program_;
  std::vector<std::vector<DemandFit>> fits_;
};

TEST_F(Demands, ComeBackExactly) { EXPECT_EQ(read_demands(file_, origin(config_, program_), {&program_, 1}), fits_); }

TEST_F(Demands, ServeTheFirstIterationsToo) {
  const RunConfig one = config(1, "");
  const Program program = program_of(one);
  const std::vector<DemandFit> first(fits_[0].begin(), fits_[0].begin() + 2);
  EXPECT_EQ(read_demands(file_, origin(one, program), {&program, 1}), std::vector<std::vector<DemandFit>>{first});
}

TEST_F(Demands, OfEachRankComeBackToItsProgram) {
  std::vector<Program> ranks{program_, program_};
  for (ProgramOp& op : ranks[1].ops.edit()) op.measured_alone += microseconds(4);
  std::int64_t transactions = 0;
  const auto fits = run_kernels_alone(ranks, config_.system.gpu, 1, {}, transactions);
  ASSERT_NE(fits[0], fits[1]);
  const auto origin_of = [&](const std::vector<Program>& programs) {
    return demands_origin(std::get<TraceWorkload>(config_.workload), config_.system, programs);
  };
  write_demands(file_, origin_of(ranks), ranks, fits);
  std::vector<Program> first = ranks;
  for (Program& program : first) {
    program.ops.edit().resize(2);
    program.iterations = 1;
  }
  const auto read = read_demands(file_, origin_of(first), first);
  for (std::size_t r = 0; r < 2; ++r)
    EXPECT_EQ(read[r], std::vector<DemandFit>(fits[r].begin(), fits[r].begin() + 2)) << r;
}

TEST_F(Demands, OfAnotherGpuAreRefused) {
  EXPECT_THAT(refusal(config(2, "", {{"gpu", {{"clock_MHz", 1000}}}})),
              HasSubstr("/gpu_sha256: expected demands for the GPU of system dgx-a100"));
}

TEST_F(Demands, OfAnotherTraceAreRefused) {
  Trace other = small_trace();
  other.ranks[0].ops[1].duration = microseconds(9);
  write_trace(other, trace_);
  EXPECT_THAT(refusal(config(2, "")), HasSubstr("/trace_sha256: expected demands of "));
}

TEST_F(Demands, OfOtherGuessesAreRefused) {
  DemandsOrigin later = origin(config_, program_);
  later.guess_sha256[0][1] = "other";
  EXPECT_THROW(static_cast<void>(read_demands(file_, later, {&program_, 1})), InputError);
}

TEST_F(Demands, WithAColumnTooShortAreRefused) {
  Program shorter = program_;
  shorter.ops.edit().pop_back();
  write_demands(file_, origin(config_, program_), {&shorter, 1}, fits_);
  EXPECT_THAT(refusal(config_), HasSubstr("expected an array of at least 4 values"));
}

TEST_F(Demands, AreReportedByWhatIsKnownOfThem) {
  const Json report = calibration_report({&program_, 1}, fits_);
  EXPECT_EQ(report["kernels"], 4);
  EXPECT_EQ(report["guessed"], 4);
  EXPECT_EQ(report["calibrated"], 4);
  EXPECT_EQ(report["off_by_1_percent"], 0);
  EXPECT_EQ(report["classes"][0]["class"], "gemm");
  EXPECT_THAT(calibration_text(report), HasSubstr("4 of 4 kernels fitted to their time alone; 0 more than 1 % off"));
}

// Through the program: a process simulates once.
TEST_F(Demands, GiveTheResultOfCalibratingInTheRunEndToEnd) {
  const auto weft = [&](const std::string& arguments) {
    return std::system(
        ("cd '" + folder_.path().string() + "' && '" + WEFT_BINARY + "' " + arguments + " >/dev/null").c_str());
  };
  folder_.write("run.json", R"({"system": "dgx-a100", "gpus": 1, "workload": {"trace": "trace.json.gz"}})");
  ASSERT_EQ(weft("calibrate trace.json.gz --system dgx-a100 -o fitted.json -j 2"), 0);
  ASSERT_EQ(weft("run run.json -o searched"), 0);
  ASSERT_EQ(weft("run run.json -o read --set workload.demands=fitted.json"), 0);
  EXPECT_EQ(read_file(folder_.path() / "searched" / "kernels.csv"), read_file(folder_.path() / "read" / "kernels.csv"));
  EXPECT_NE(weft("run run.json -o read --set workload.demands=fitted.json --set gpu.clock_MHz=1000 2>/dev/null"), 0);
}

}  // namespace
}  // namespace weft
