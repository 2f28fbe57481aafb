#include "cli/output/result_writer.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/output/kernels_csv.h"
#include "cli/output/result_json.h"
#include "sim/atomic_file.h"
#include "sim/error.h"
#include "tests/cli/sample_result.h"

namespace weft {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using weft::testing::sample_result;

class ResultFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(::testing::TempDir()) / ("weft_result_files_" + std::to_string(::getpid()));
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  static std::string read(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  static std::set<std::string> names(const fs::path& folder) {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder)) found.insert(entry.path().filename().string());
    return found;
  }

  fs::path dir_;
};

TEST_F(ResultFiles, ARunDirectoryHoldsAllSixFilesAndNothingElse) {
  const RunResult result = sample_result();
  write_run_directory(result, dir_ / "new" / "run");
  EXPECT_EQ(names(dir_ / "new" / "run"), (std::set<std::string>{"config.json", "counters.csv", "kernels.csv",
                                                                "report.html", "result.json", "timeline.pftrace"}));
  EXPECT_EQ(read(dir_ / "new" / "run" / "result.json"), json_text(result_to_json(result)));
  EXPECT_EQ(Json::parse(read(dir_ / "new" / "run" / "config.json")), result.config);
}

TEST_F(ResultFiles, WritingTwiceReplacesTheFiles) {
  RunResult result = sample_result();
  write_run_directory(result, dir_);
  result.config_sha256 = "another";
  write_run_directory(result, dir_);
  EXPECT_EQ(names(dir_).size(), 6U);
  EXPECT_EQ(Json::parse(read(dir_ / "result.json"))["config_sha256"], "another");
}

TEST_F(ResultFiles, AFailureInTheMiddleLeavesNothing) {
  // A folder that is not empty cannot be replaced by a file, whoever runs the test.
  fs::create_directories(dir_ / "timeline.pftrace" / "in the way");
  try {
    write_run_directory(sample_result(), dir_);
    FAIL() << "expected an InputError";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("timeline.pftrace: expected a file that can be written, got: "));
  }
  EXPECT_EQ(names(dir_), std::set<std::string>{"timeline.pftrace"});
}

TEST_F(ResultFiles, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(dir_ / "file") << "not a folder";
  EXPECT_THROW(write_run_directory(sample_result(), dir_ / "file" / "run"), InputError);
  EXPECT_EQ(names(dir_), std::set<std::string>{"file"});
}

TEST_F(ResultFiles, AnAtomicWriteThatFailsKeepsTheOldFile) {
  write_file_atomically(dir_ / "a", "old");
  write_file_atomically(dir_ / "a", std::string_view("new\0bytes", 9));
  EXPECT_EQ(read(dir_ / "a"), std::string("new\0bytes", 9));
  EXPECT_THROW(write_file_atomically(dir_ / "missing" / "a", "x"), InputError);
  fs::create_directories(dir_ / "b" / "c");
  EXPECT_THROW(write_file_atomically(dir_ / "b", "x"), InputError);
  EXPECT_EQ(names(dir_), (std::set<std::string>{"a", "b"}));
}

TEST(KernelsCsv, QuotesAsRfc4180) {
  EXPECT_EQ(csv_field("plain name"), "plain name");
  EXPECT_EQ(csv_field("gemm<128,64>"), "\"gemm<128,64>\"");
  EXPECT_EQ(csv_field("a \"b\" c"), "\"a \"\"b\"\" c\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_field(""), "");
}

TEST(KernelsCsv, HasOneRowAnOperationInOrderOfGpuAndStart) {
  RunResult result;
  OperationRecord late, early, other;
  late.name = "b,c";
  late.phase = TrainingPhase::backward;
  late.op = 7;
  late.iteration = 1;
  late.start_s = 0.5;
  late.end_s = 1.25;
  late.isolated_s = 0.5;
  late.causes = {0.125, 0.0625, 0.0625, 0};
  late.beside_waiting_s = 0.5;
  late.beside_moving_s = 0.25;
  early.name = "all_reduce";
  early.stream = 1;
  early.communication = true;
  early.end_s = 1e-6;
  other.gpu = 1;
  other.name = "x";
  other.end_s = 0.25;
  result.operations = {other, late, early};
  EXPECT_EQ(kernels_csv(result),
            "gpu,stream,name,phase,start_s,end_s,isolated_s,slowdown,iteration,op,kind,cause_compute_units_s,"
            "cause_hbm_s,cause_cache_s,cause_links_s,beside_waiting_s,beside_moving_s\n"
            "0,1,all_reduce,other,0,1e-06,,,0,0,communication,0,0,0,0,0,0\n"
            "0,0,\"b,c\",backward,0.5,1.25,0.5,1.5,1,7,compute,0.125,0.0625,0.0625,0,0.5,0.25\n"
            "1,0,x,other,0,0.25,,,0,0,compute,0,0,0,0,0,0\n");
}

TEST(KernelsCsv, AKernelThatTakesNoTimeAloneHasNoSlowdown) {
  RunResult result;
  OperationRecord op;
  op.name = "empty";
  op.end_s = 1;
  op.isolated_s = 0;
  result.operations = {op};
  EXPECT_THAT(kernels_csv(result), HasSubstr("\n0,0,empty,other,0,1,0,,"));
}

}  // namespace
}  // namespace weft
