#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cli/sweep/plan.h"
#include "sim/config_file.h"
#include "sim/error.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kBase =
    R"("base": {"system": "dgx-a100", "gpus": 2, "workload": {"collective": "all_reduce", "bytes": 1024}})";

Manifest planned(const std::string& rest, const std::string& program = "p") {
  const TemporaryFolder folder;
  const auto file = folder.write("s.json", "{" + std::string(kBase) + rest + "}");
  return plan_sweep(read_sweep_file(file), file, program, [](const std::string&, const Json&) {});
}

std::string refusal(const std::string& document) {
  const TemporaryFolder folder;
  const auto file = folder.write("s.json", document);
  try {
    static_cast<void>(plan_sweep(read_sweep_file(file), file, "p", [](const std::string&, const Json&) {}));
  } catch (const InputError& e) {
    const std::string message = e.what(), place = folder.path().string() + "/";
    return message.starts_with(place) ? message.substr(place.size()) : message;
  }
  return "";
}
std::string refusal_beside_base(const std::string& rest) { return refusal("{" + std::string(kBase) + rest + "}"); }

std::vector<std::string> shown(const Manifest& manifest) {
  std::vector<std::string> rows;
  for (const auto& point : manifest.points) rows.push_back(Json(point.values).dump());
  return rows;
}

TEST(SweepPlan, IsTheProductOfTheGridInItsOrder) {
  const Manifest manifest = planned(R"(, "grid": {"gpus": [2, 4], "workload.bytes": [1024, 2048]})");
  EXPECT_THAT(manifest.paths, ElementsAre("gpus", "workload.bytes"));
  EXPECT_THAT(shown(manifest), ElementsAre("[2,1024]", "[2,2048]", "[4,1024]", "[4,2048]"));
  EXPECT_EQ(runs_of(manifest).size(), 4U);
}

TEST(SweepPlan, TakesZippedValuesTogether) {
  EXPECT_THAT(
      shown(planned(R"(, "grid": {"iterations": [1, 2]}, "zip": {"gpus": [2, 4], "workload.bytes": [64, 128]})")),
      ElementsAre("[1,2,64]", "[1,4,128]", "[2,2,64]", "[2,4,128]"));
  EXPECT_THAT(shown(planned(R"(, "zip": [{"gpus": [2, 4]}, {"iterations": [1, 2]}])")),
              ElementsAre("[2,1]", "[2,2]", "[4,1]", "[4,2]"));
}

TEST(SweepPlan, ShowsLabelsForValues) {
  const Manifest manifest = planned(R"(, "grid": {"network": {"slow": {"link": {"bandwidth_GBps": 1}}, "own": {}}},
                                        "where": "network == 'slow'")");
  EXPECT_THAT(shown(manifest), ElementsAre("[\"slow\"]"));
}

TEST(SweepPlan, LeavesOutWhatConditionsDoNotWant) {
  EXPECT_THAT(shown(planned(R"j(, "grid": {"gpus": [2, 4, 8], "iterations": [1, 2]},
                                "where": ["gpus * iterations <= 8", "!(gpus == 4 && iterations == 1)"])j")),
              ElementsAre("[2,1]", "[2,2]", "[4,2]", "[8,1]"));
  EXPECT_EQ(refusal_beside_base(R"(, "grid": {"gpus": [2]}, "where": "gpus > 2")"),
            "s.json: /where: expected conditions that leave a point, got none left");
  EXPECT_EQ(refusal_beside_base(R"(, "where": "iterations > 2")"),
            "s.json: /where: expected a path that the sweep or its base sets, got \"iterations\"");
}

TEST(SweepPlan, RepeatsPointsWithSeedsOfTheirOwn) {
  const Manifest manifest = planned(R"(, "grid": {"gpus": [2, 4]}, "seeds": [5, 6], "repetitions": 2)");
  ASSERT_EQ(manifest.points.size(), 8U);
  std::set<std::int64_t> seeds;
  for (const auto& point : manifest.points) seeds.insert(point.seed.get<std::int64_t>());
  EXPECT_EQ(seeds.size(), 4U);  // the same for both numbers of GPUs
  EXPECT_EQ(manifest.points[0].seed, 5);
  EXPECT_EQ(manifest.points[1].seed, seed_of_repetition(5, 1));
  EXPECT_EQ(manifest.points[1].repetition, 1);
  EXPECT_EQ(manifest.points[2].seed, 6);
  EXPECT_LT(seed_of_repetition(5, 1), std::int64_t{1} << 53U);
}

TEST(SweepPlan, GivesEqualPointsOneRun) {
  const Manifest manifest = planned(R"(, "grid": {"gpus": [2, 4, 2]})");
  EXPECT_EQ(manifest.points.size(), 3U);
  EXPECT_THAT(runs_of(manifest), ElementsAre(manifest.points[0].key, manifest.points[1].key));
  EXPECT_EQ(manifest.points[2].key, manifest.points[0].key);
}

TEST(SweepPlan, KeysARunByAllThatDecidesItsResult) {
  const std::string one = planned("").points[0].key;
  EXPECT_EQ(planned(R"(, "grid": {"iterations": [1]})").points[0].key, one);  // the default, written out
  EXPECT_NE(planned(R"(, "grid": {"iterations": [2]})").points[0].key, one);
  EXPECT_NE(planned("", "another program").points[0].key, one);
}

TEST(SweepPlan, KeysARunByWhatItsFilesHold) {
  const TemporaryFolder folder;
  const auto file =
      folder.write("s.json", R"({"base": {"system": "dgx-a100", "gpus": 2, "workload": {"trace": "t.json"}}})");
  const auto key = [&](const char* trace) {
    folder.write("t.json", trace);
    return plan_sweep(read_sweep_file(file), file, "p", [](const std::string&, const Json&) {}).points[0].key;
  };
  const std::string first = key("{}");
  EXPECT_NE(key("{} "), first);
  EXPECT_EQ(key("{}"), first);
}

TEST(SweepPlan, KeepsPointsThatNoConfigurationIsFor) {
  const Manifest manifest = planned(R"(, "grid": {"gpus": [2, 3000], "workload.bytes": [64]})");
  EXPECT_FALSE(manifest.points[0].key.empty());
  EXPECT_TRUE(manifest.points[1].key.empty());
  EXPECT_THAT(manifest.points[1].reason, HasSubstr("/gpus: expected"));
  EXPECT_THAT(refusal_beside_base(R"(, "grid": {"gpus": [3000, 4000]})"),
              HasSubstr("expected a configuration that can be read at some point, got none: "));
}

TEST(SweepPlan, ComesBackFromItsManifest) {
  const Manifest manifest =
      planned(R"(, "grid": {"gpus": [2, 3000]}, "seeds": [1, 2], "metrics": {"a_s": "iteration.idle_s"})");
  const Json document = manifest_to_json(manifest);
  EXPECT_EQ(manifest_to_json(manifest_from_json(document, "m")), document);
  EXPECT_THROW(static_cast<void>(manifest_from_json({{"schema", "weft-sweep/9"}}, "m")), InputError);
  EXPECT_THROW(static_cast<void>(manifest_from_json({{"schema", "weft-sweep/1"}}, "m")), InputError);
}

TEST(SweepPlan, ReadsAllSweepsThatShip) {
  std::map<std::string, std::size_t> points;
  for (const auto& entry : std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/configs/sweeps")) {
    const Manifest manifest =
        plan_sweep(read_sweep_file(entry.path()), entry.path(), "p", [](const auto&, const auto&) {});
    for (const auto& point : manifest.points) EXPECT_EQ(point.reason, "") << entry.path();
    EXPECT_EQ(runs_of(manifest).size(), manifest.points.size()) << entry.path();
    points[entry.path().stem().string()] = manifest.points.size();
  }
  EXPECT_EQ(points["resnet50_network"], 200U);
  EXPECT_EQ(points["bucket_and_table"], 189U);
}

TEST(SweepFile, NamesThePlaceOfEveryError) {
  EXPECT_EQ(refusal("{}"), "s.json: /base: expected a configuration or the name of its file, got nothing");
  EXPECT_EQ(refusal(R"({"base": {"include": "x.json"}})"),
            "s.json: /base/include: expected none here (\"base\" may be the name of a file), got \"x.json\"");
  EXPECT_EQ(refusal_beside_base(R"(, "gird": {})"),
            "s.json: /gird: expected a known key (the nearest is \"grid\"), got \"gird\"");
  EXPECT_EQ(refusal_beside_base(R"(, "grid": {"gpus": 3})"),
            "s.json: /grid/gpus: expected an array of values or an object of values by label, got 3");
  EXPECT_THAT(refusal_beside_base(R"(, "grid": {"gpus": []})"), HasSubstr("/grid/gpus: expected"));
  EXPECT_THAT(refusal_beside_base(R"(, "grid": {"a..b": [1]})"), HasSubstr("expected keys joined by dots"));
  EXPECT_THAT(refusal_beside_base(R"(, "grid": {"seed": [1]})"), HasSubstr("\"seeds\""));
  EXPECT_THAT(refusal_beside_base(R"(, "zip": {"gpus": [2, 4], "iterations": [1]})"),
              HasSubstr("/zip/iterations: expected 2 values, as many as of the first path, got 1"));
  EXPECT_THAT(refusal_beside_base(R"(, "grid": {"gpus": [2]}, "zip": {"gpus": [4]})"), HasSubstr("got \"gpus\" twice"));
  EXPECT_THAT(refusal_beside_base(R"(, "where": 3)"),
              HasSubstr("/where: expected a condition or an array of them, got 3"));
  EXPECT_THAT(refusal_beside_base(R"(, "seeds": [-1])"), HasSubstr("/seeds: expected an array of integers from 0"));
  EXPECT_THAT(refusal_beside_base(R"(, "metrics": ["iteratio.time_s"])"), HasSubstr("the nearest is \"iteration\""));
  EXPECT_THAT(refusal_beside_base(R"(, "metrics": ["engine.wall_s"])"), HasSubstr("what equal runs have in common"));
  EXPECT_THAT(refusal_beside_base(R"j(, "metrics": ["median(gpus.id)"])j"), HasSubstr("max, min, sum or mean"));
  EXPECT_THAT(refusal_beside_base(R"(, "metrics": {"Status": "iteration.idle_s"})"), HasSubstr("got \"status\" twice"));
}

}  // namespace
}  // namespace weft
