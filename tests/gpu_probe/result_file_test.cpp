#include "bench/gpu/plan/result_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "bench/gpu/plan/library_paths.h"
#include "bench/gpu/plan/statistics.h"

namespace weft::gpu_probe {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class GpuProbeResultFile : public testing::Test {
 protected:
  GpuProbeResultFile() : folder_(fs::temp_directory_path() / ("weft_gpu_probe_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~GpuProbeResultFile() override { fs::remove_all(folder_); }

  json read() const {
    std::ifstream in(folder_ / "out.json");
    return json::parse(in);
  }

  fs::path folder_;
};

TEST_F(GpuProbeResultFile, GoesOnWhereItWasInterrupted) {
  const json keys{{"victim", "v"}, {"aggressor", "a"}};
  {
    ResultFile file(folder_ / "out.json", false);
    file.put("pairs", keys, {{"sm_clock_MHz", 1800}});
    file.save();
  }
  ResultFile file(folder_ / "out.json", true);
  ASSERT_NE(file.find("pairs", keys), nullptr);
  EXPECT_EQ(file.find("pairs", {{"victim", "v"}, {"aggressor", "b"}}), nullptr);
  file.put("pairs", keys, {{"power_W", 300}});
  file.save();
  const json document = read();
  EXPECT_EQ(document["schema"], "weft-overlap/1");
  ASSERT_EQ(document["pairs"].size(), 1u);
  EXPECT_EQ(document["pairs"][0],
            (json{{"victim", "v"}, {"aggressor", "a"}, {"sm_clock_MHz", 1800}, {"power_W", 300}}));
}

TEST_F(GpuProbeResultFile, BeginsAnewWithoutResume) {
  {
    ResultFile file(folder_ / "out.json", false);
    file.put("units", {{"name", "x"}}, {});
    file.save();
  }
  ResultFile file(folder_ / "out.json", false);
  file.save();
  EXPECT_TRUE(read()["units"].empty());
}

TEST_F(GpuProbeResultFile, RefusesWhatIsNotItsOwn) {
  std::ofstream(folder_ / "out.json") << R"({"schema": "other/1"})";
  EXPECT_THROW(ResultFile(folder_ / "out.json", true), std::runtime_error);
  std::ofstream(folder_ / "out.json") << "{";
  EXPECT_THROW(ResultFile(folder_ / "out.json", true), std::runtime_error);
}

TEST_F(GpuProbeResultFile, LeavesNoHalfWrittenFile) {
  ResultFile file(folder_ / "out.json", false);
  file.save();
  EXPECT_TRUE(fs::exists(folder_ / "out.json"));
  EXPECT_FALSE(fs::exists(folder_ / "out.json.new"));
}

TEST_F(GpuProbeResultFile, LibrariesAreFoundInWheelsAndByName) {
  fs::create_directories(folder_ / "cu13" / "lib");
  std::ofstream(folder_ / "cu13" / "lib" / "libcublas.so.13") << "";
  const auto found = library_candidates({folder_, "/nowhere"}, "libcublas.so.13");
  EXPECT_EQ(found,
            (std::vector<std::string>{(folder_ / "cu13" / "lib" / "libcublas.so.13").string(), "libcublas.so.13"}));
}

TEST(GpuProbeStatistics, QuartilesLieBetweenNeighbours) {
  const Summary s = summarize({4, 1, 3, 2});
  EXPECT_EQ(s.n, 4u);
  EXPECT_DOUBLE_EQ(s.median, 2.5);
  EXPECT_DOUBLE_EQ(s.q1, 1.75);
  EXPECT_DOUBLE_EQ(s.q3, 3.25);
  EXPECT_DOUBLE_EQ(s.min, 1);
  EXPECT_EQ(summarize({}).n, 0u);
}

}  // namespace
}  // namespace weft::gpu_probe
