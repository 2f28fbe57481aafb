#include "cli/report/report_folder.h"

#include <gmock/gmock.h>

#include "cli/output/counters_csv.h"
#include "cli/output/result_json.h"
#include "cli/output/result_writer.h"
#include "cli/report/report_sweep.h"
#include "sim/config_file.h"
#include "sim/error.h"
#include "tests/cli/run_weft.h"
#include "tests/cli/sample_result.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using weft::testing::sample_result;

constexpr const char* kTable =
    "point,gpus,all_reduce.algorithm,seed,repetition,status,reason,time_s,busbw_GBps,asked\n"
    "0,2,ring,1,0,ok,,0.002,100,7\n"
    "1,8,ring,1,0,ok,,0.004,80,\n"
    "2,8,\"in,switch\",1,0,failed,no switch,,,\n";
constexpr const char* kManifest =
    R"({"metrics": [{"name": "asked"}], "points": [{"key": "aa"}, {"key": "bb"}, {"key": null}]})";

TEST(ReportFolder, MakesThePageThatTheRunWrote) {
  const TemporaryFolder folder;
  write_run_directory(sample_result(), folder.path() / "run");
  EXPECT_EQ(folder_kind(folder.path() / "run"), FolderKind::run);
  EXPECT_TRUE(folder_report_html(folder.path() / "run", folder.path()) ==
              read_file(folder.path() / "run" / "report.html"));
}

TEST(ReportFolder, MakesThePageOfAComparisonWithLinksFromWhereItLies) {
  const TemporaryFolder folder;
  const Json row = {{"label", "ring"}, {"result", result_to_json(sample_result())}};
  folder.write("compared/comparison.json", json_text({{"rows", {row, row}}}));
  EXPECT_THAT(folder_report_html(folder.path() / "compared", folder.path()),
              HasSubstr(R"("compared/ring/report.html")"));
}

TEST(ReportFolder, NamesWhatItExpects) {
  const TemporaryFolder folder;
  EXPECT_THROW(static_cast<void>(folder_kind(folder.path() / "none")), MissingInput);
  const Ran ran = weft("report .", folder);
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.errors, HasSubstr("comparison.json"));
}

TEST(ReportFolder, TheCommandWritesThePageWhereItIsTold) {
  const TemporaryFolder folder;
  folder.write("sweep/results.csv", kTable);
  EXPECT_EQ(weft("report sweep -o page.html", folder).output, "page.html\n");
  EXPECT_THAT(read_file(folder.path() / "page.html"), HasSubstr("sweep over gpus, all_reduce.algorithm"));
  EXPECT_EQ(weft("report sweep", folder).output, "sweep/report.html\n");
}

TEST(SweepReport, SeparatesParametersFromMetricsAndNumbersFromText) {
  const TemporaryFolder folder;
  folder.write("results.csv", kTable);
  folder.write("manifest.json", kManifest);
  const Json data = sweep_report_data(folder.path(), folder.path());
  ASSERT_EQ(data["parameters"].size(), 4U);
  EXPECT_EQ(data["parameters"][0]["values"], Json::array({2.0, 8.0, 8.0}));
  EXPECT_EQ(data["parameters"][1]["values"], Json::array({"ring", "ring", "in,switch"}));
  ASSERT_EQ(data["metrics"].size(), 3U);
  EXPECT_EQ(data["metrics"][0]["name"], "asked");  // by the sweep file
  EXPECT_EQ(data["metrics"][0]["values"], Json::array({7.0, nullptr, nullptr}));
  EXPECT_EQ(data["metrics"][1]["better"], -1);
  EXPECT_EQ(data["metrics"][2]["better"], 1);
  EXPECT_EQ(data["points"]["reason"][2], "no switch");
}

TEST(SweepReport, LinksPointsToThePagesThatAreThere) {
  const TemporaryFolder folder;
  folder.write("sweep/results.csv", kTable);
  folder.write("sweep/manifest.json", kManifest);
  folder.write("sweep/points/aa/report.html", "");
  folder.write("sweep/points/bb/result.json", "{}");
  const Json links = sweep_report_data(folder.path() / "sweep", folder.path())["points"]["link"];
  EXPECT_EQ(links, Json::array({"sweep/points/aa/report.html", "sweep/points/bb/result.json", nullptr}));
}

TEST(SweepReport, SaysWhichPointIsBest) {
  const TemporaryFolder folder;
  folder.write("results.csv", kTable);
  EXPECT_EQ(sweep_report_data(folder.path(), folder.path())["verdict"],
            "3 points, 2 of them finished. The best time_s is 2.00 ms, with gpus 2, all_reduce.algorithm ring; the "
            "worst 4.00 ms, with gpus 8, all_reduce.algorithm ring.");
}

TEST(SweepReport, RefusesATableOfSomethingElse) {
  const TemporaryFolder folder;
  folder.write("results.csv", "a,b\n1,2\n");
  EXPECT_THROW(static_cast<void>(sweep_report_data(folder.path(), folder.path())), InputError);
}

TEST(CountersCsv, ReadsBackWhatItWrote) {
  const TemporaryFolder folder;
  RunResult result;
  result.counters = {{"HBM, read", "GB/s", 1e-5, {0, 0.1, 1e300}, 3, CounterKind::link, 100.0},
                     {"system", "", 0.5, {}, std::nullopt, CounterKind::memory}};
  folder.write("counters.csv", counters_csv(result));
  const auto read = read_counters_csv(folder.path() / "counters.csv");
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].name, "HBM, read");
  EXPECT_EQ(read[0].unit, "GB/s");
  EXPECT_EQ(read[0].period_s, 1e-5);
  EXPECT_EQ(read[0].values, (std::vector<double>{0, 0.1, 1e300}));
  EXPECT_EQ(read[0].gpu, 3U);
  EXPECT_EQ(read[0].kind, CounterKind::link);
  EXPECT_EQ(read[0].limit, 100.0);
  EXPECT_EQ(read[1].kind, CounterKind::memory);
  EXPECT_FALSE(read[1].limit);
  EXPECT_TRUE(read[1].values.empty());
  EXPECT_FALSE(read[1].gpu);
}

}  // namespace
}  // namespace weft
