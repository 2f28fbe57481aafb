#include <gmock/gmock.h>

#include "cli/output/result_json.h"
#include "cli/report/report_assets.h"
#include "cli/report/report_data.h"
#include "cli/report/report_html.h"
#include "sim/error.h"
#include "tests/cli/sample_result.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using weft::testing::sample_result;

constexpr std::size_t kAll = 1'000'000;

// The document a browser would parse out of the page.
Json embedded(const std::string& html) {
  const std::string open = "<script id=\"data\" type=\"application/json\">";
  const std::size_t begin = html.find(open) + open.size();
  return Json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

std::string page_of(const RunResult& result) { return run_report_html(result_to_json(result), result); }

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(RunReport, CarriesTheResultAndEveryOperation) {
  const RunResult result = sample_result();
  const Json data = embedded(page_of(result));
  EXPECT_EQ(data["result"], result_to_json(result));
  EXPECT_EQ(data["timeline"]["operations"].size(), result.operations.size());
  EXPECT_EQ(data["timeline"]["streams"].size(), 16U);
  EXPECT_EQ(data["timeline"]["gpus_left_out"], 0);
  EXPECT_EQ(data["title"], "resnet50, batch 64 on 8 GPUs of dgx-a100, ring all-reduce");
  EXPECT_NEAR(data["figures"]["backward_slowdown"].get<double>(), *result.iteration.backward_slowdown, 1e-12);
}

TEST(RunReport, NamesCannotBreakOutOfThePage) {
  RunResult result = sample_result();
  const std::string evil = "</script><script>alert(1)</script><!-- & \"'";
  result.operations[0].name = evil;
  result.collectives[0].name = evil;
  result.config["system"] = evil;
  result.notes = {evil};
  const std::string html = page_of(result);
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, Not(HasSubstr("<!--")));
  EXPECT_EQ(occurrences(html, "</script>"), 3U);  // the data, the chart library and the program
  const Json data = embedded(html);
  EXPECT_EQ(data["result"]["notes"][0], evil);
  EXPECT_EQ(data["result"]["collectives"][0]["name"], evil);
}

TEST(RunReport, TextThatLooksLikeAPlaceholderStaysText) {
  RunResult result = sample_result();
  result.notes = {"{{script}} {{data}} {{title}} {{style}}"};
  EXPECT_EQ(embedded(page_of(result))["result"]["notes"][0], result.notes[0]);
}

TEST(RunReport, NeedsNoNetwork) {
  std::string html = page_of(sample_result());
  // The chart library names its home and knows elements that load; a browser test sees that no page asks the network.
  html.erase(html.find(report_assets::chart_min_js), report_assets::chart_min_js.size());
  for (const char* outside : {"http:", "https:", "src=", "@import", "url(", "fetch(", "XMLHttpRequest"}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
  EXPECT_THAT(html, Not(HasSubstr("{{")));
}

TEST(RunReport, ARowOfTheTimelineHoldsNanosecondsAndItsCauses) {
  RunResult result = sample_result();
  result.operations.clear();
  OperationRecord op;
  op.gpu = 5;
  op.stream = 3;
  op.name = "gemm";
  op.phase = TrainingPhase::backward;
  op.iteration = 1;
  op.start_s = 10e-6;
  op.end_s = 13e-6;
  op.isolated_s = 2e-6;
  op.causes = {7e-7, 3e-7, 0, 0};
  result.operations = {op};
  const Json timeline = report_data(result_to_json(result), result, kAll)["timeline"];
  EXPECT_EQ(timeline["streams"][0]["gpu"], 5);
  EXPECT_EQ(timeline["streams"][0]["stream"], 3);
  EXPECT_EQ(timeline["names"][0], Json::array({"gemm", 0}));
  EXPECT_EQ(timeline["operations"][0], Json::array({0, 0, 1, 1, 10000, 3000, 2000, 0, 700, 300}));
}

TEST(RunReport, LeavesWholeGpusOutOfATimelineThatIsTooLarge) {
  const RunResult result = sample_result();
  const std::size_t of_one_gpu = result.operations.size() / 8;
  const Json timeline = report_data(result_to_json(result), result, 3 * of_one_gpu)["timeline"];
  EXPECT_EQ(timeline["operations"].size(), 3 * of_one_gpu);
  EXPECT_EQ(timeline["gpus_left_out"], 5);
  EXPECT_EQ(report_data(result_to_json(result), result, 1)["timeline"]["operations"].size(), of_one_gpu);
}

TEST(RunReport, KernelsAreOrderedByTheTimeTheyLost) {
  RunResult result;
  const auto add = [&](const std::string& name, double alone, double takes) {
    OperationRecord op;
    op.name = name;
    op.isolated_s = alone;
    op.end_s = takes;
    op.causes.hbm = takes - alone;
    result.operations.push_back(op);
  };
  add("little", 1, 1.5);
  add("much", 1, 2);
  add("much", 3, 4);
  add("none", 1, 1);
  const Json lost = kernels_that_lost_most(result, 10);
  ASSERT_EQ(lost.size(), 2U);
  EXPECT_EQ(lost[0]["name"], "much");
  EXPECT_EQ(lost[0]["calls"], 2);
  EXPECT_DOUBLE_EQ(lost[0]["lost_s"].get<double>(), 2);
  EXPECT_DOUBLE_EQ(lost[0]["slowdown"].get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(lost[0]["causes"][1].get<double>(), 2);
  EXPECT_EQ(kernels_that_lost_most(result, 1).size(), 1U);
}

TEST(RunReport, LongCountersAreThinnedAndKeepTheirMean) {
  RunResult result = sample_result();
  CounterTrack counter{"long", "GB/s", 1e-6, {}, std::nullopt};
  for (int i = 0; i < 8000; ++i) counter.values.push_back(i % 2 == 0 ? 1 : 3);
  result.counters = {counter};
  const Json shown = report_data(result_to_json(result), result, kAll)["timeline"]["counters"][0];
  EXPECT_EQ(shown["values"].size(), 2000U);
  EXPECT_DOUBLE_EQ(shown["values"][7].get<double>(), 2);
  EXPECT_DOUBLE_EQ(shown["period_ns"].get<double>(), 4000);
}

TEST(RunReport, HoldsCountersOfAllKinds) {
  RunResult result;
  result.counters = {{"HBM read", "GB/s", 1e-6, {1}, 0, CounterKind::hbm, 3350.0},
                     {"memory activations", "GiB", 1e-6, {1}, 0, CounterKind::memory, 80.0},
                     {"gpu0->switch1", "%", 1e-6, {1}, 0, CounterKind::link, std::nullopt}};
  const Json counters = report_data(result_to_json(result), result, kAll)["timeline"]["counters"];
  ASSERT_EQ(counters.size(), 3U);
  EXPECT_EQ(counters[1]["kind"], "memory");
  EXPECT_EQ(counters[1]["limit"], 80.0);
  EXPECT_EQ(counters[2]["limit"], nullptr);
}

TEST(RunReport, ShowsARunThatDoesNotFit) {
  RunResult result;
  result.config = {{"system", "dgx-a100"}, {"gpus", 1}};
  result.status = "out_of_memory";
  result.out_of_memory = OutOfMemory{0, "layer4", 2'000'000'000, {{"activations", 30'000'000'000}}};
  const Json data = embedded(page_of(result));
  EXPECT_EQ(data["verdict"],
            "Does not fit: GPU 0 is 2.00 GB over at layer4. The largest holder is activations with "
            "30.0 GB.");
}

TEST(ComparisonReport, HoldsEachRunAndARelativeLinkToItsPage) {
  const std::vector<std::pair<std::string, Json>> results{{"ring", result_to_json(sample_result())},
                                                          {"in_switch", result_to_json(sample_result({8, 2, true}))}};
  const std::string html = comparison_report_html(results, {"/out/ring", "/out/runs/two"}, "/out");
  const Json data = embedded(html);
  ASSERT_EQ(data["runs"].size(), 2U);
  EXPECT_EQ(data["runs"][0]["link"], "ring/report.html");
  EXPECT_EQ(data["runs"][1]["link"], "runs/two/report.html");
  EXPECT_EQ(data["runs"][1]["label"], "in_switch");
  EXPECT_THAT(data["verdict"].get<std::string>(), HasSubstr("in_switch takes"));
  EXPECT_THAT(html, HasSubstr("<title>weft: comparison of ring, in_switch</title>"));
}

TEST(ComparisonReport, AnotherNumberOfFoldersOrAnotherDocumentIsAnError) {
  const Json result = result_to_json(sample_result());
  EXPECT_THROW(static_cast<void>(comparison_report_html({{"a", result}, {"b", result}}, {"a"}, ".")), InputError);
  EXPECT_THROW(static_cast<void>(comparison_report_html({{"a", Json::object()}}, {}, ".")), InputError);
}

}  // namespace
}  // namespace weft
