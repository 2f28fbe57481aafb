#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands/compare_cases.h"
#include "cli/output/staged_directory.h"
#include "sim/config_file.h"
#include "sim/error.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

using testing::ElementsAre;

std::vector<std::string> labels(const std::vector<CompareCase>& cases) {
  std::vector<std::string> names;
  for (const auto& one : cases) names.push_back(one.label);
  return names;
}

TEST(CompareCases, AreNamedAfterTheirConfigurations) {
  EXPECT_THAT(labels(compare_cases({"a/x.json", "y.json"}, {}, {}, {}, {})), ElementsAre("x", "y"));
}

TEST(CompareCases, AreNamedAfterTheAlgorithmOfOneConfiguration) {
  const auto cases = compare_cases({"x.json"}, {}, {"ring", "in_switch"}, {}, {"gpus=4"});
  EXPECT_THAT(labels(cases), ElementsAre("ring", "in_switch"));
  EXPECT_THAT(cases[1].sets, ElementsAre("gpus=4", "all_reduce.algorithm=\"in_switch\""));
}

TEST(CompareCases, TakeMoversBesideAlgorithms) {
  const auto cases = compare_cases({"x.json"}, {}, {"ring", "in_switch"}, {"compute_units", "endpoint_engine"}, {});
  EXPECT_THAT(labels(cases), ElementsAre("ring-compute_units", "ring-endpoint_engine", "in_switch-compute_units",
                                         "in_switch-endpoint_engine"));
  EXPECT_THAT(cases[3].sets, ElementsAre("all_reduce.algorithm=\"in_switch\"", "all_reduce.mover=\"endpoint_engine\""));
}

TEST(CompareCases, AreAProduct) {
  EXPECT_THAT(labels(compare_cases({"x.json", "y.json"}, {}, {"ring", "in_switch"}, {}, {})),
              ElementsAre("x-ring", "x-in_switch", "y-ring", "y-in_switch"));
  EXPECT_THAT(labels(compare_cases({"x.json"}, {"data_parallel"}, {}, {}, {})), ElementsAre("x"));
}

TEST(CompareCases, NeverShareALabel) {
  EXPECT_THAT(labels(compare_cases({"a/x.json", "b/x.json", "report.html.json"}, {}, {}, {}, {})),
              ElementsAre("x", "x-2", "report.html-2"));
}

TEST(StagedDirectory, AppearsAsAWhole) {
  const TemporaryFolder folder;
  const auto target = folder.path() / "deep" / "out";
  StagedDirectory staged(target);
  std::ofstream(staged.path() / "a") << "1";
  EXPECT_FALSE(std::filesystem::exists(target));
  staged.commit();
  EXPECT_EQ(read_file(target / "a"), "1");
}

TEST(StagedDirectory, LeavesNothingWithoutCommit) {
  const TemporaryFolder folder;
  {
    StagedDirectory staged(folder.path() / "deep" / "out");
    std::ofstream(staged.path() / "a") << "1";
  }
  EXPECT_EQ(folder.entries(), 0U);
}

TEST(StagedDirectory, ReplacesFilesAndKeepsOthers) {
  const TemporaryFolder folder;
  folder.write("out/ring/result.json", "old");
  folder.write("out/notes.txt", "mine");
  {
    StagedDirectory staged(folder.path() / "out/");
    std::filesystem::create_directory(staged.path() / "ring");
    std::ofstream(staged.path() / "ring" / "result.json") << "new";
    staged.commit();
  }
  EXPECT_EQ(read_file(folder.path() / "out/ring/result.json"), "new");
  EXPECT_EQ(read_file(folder.path() / "out/notes.txt"), "mine");
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(StagedDirectory, NamesTheFolderThatCannotBeMade) {
  const TemporaryFolder folder;
  folder.write("file", "x");
  EXPECT_THROW(StagedDirectory(folder.path() / "file" / "out"), InputError);
}

}  // namespace
}  // namespace weft
