// The program from outside: exit codes, messages, and nothing left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "sim/config_file.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct Ran {
  int code = -1;
  std::string output, errors;
};

// Runs `weft ARGUMENTS` (as a shell reads them) in `folder`.
Ran weft(const std::string& arguments, const TemporaryFolder& folder) {
  const std::filesystem::path logs = folder.path() / ".logs";
  std::filesystem::create_directory(logs);
  const std::string command = "cd '" + folder.path().string() + "' && '" + WEFT_BINARY + "' " + arguments + " >'" +
                              (logs / "out").string() + "' 2>'" + (logs / "err").string() + "'";
  const int status = std::system(command.c_str());
  Ran ran{WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(logs / "out"), read_file(logs / "err")};
  std::filesystem::remove_all(logs);
  return ran;
}

constexpr const char* kExperiment = R"({"system": "hgx-h100", "workload": {"model": "resnet50", "batch": 16}})";

void expect_refused(const Ran& ran, int code, const std::string& message, const TemporaryFolder& folder) {
  EXPECT_EQ(ran.code, code);
  EXPECT_EQ(ran.errors, "weft: error: " + message + "\n");
  EXPECT_THAT(ran.output, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "out"));
}

TEST(Commands, PrintTheirVersionAndHelp) {
  const TemporaryFolder folder;
  EXPECT_THAT(weft("--version", folder).output, testing::MatchesRegex("weft [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  const Ran help = weft("--help", folder);
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.output, HasSubstr("Examples:"));
  EXPECT_THAT(help.errors, IsEmpty());
  for (const char* command :
       {"run", "compare", "calibrate", "import kineto", "trace info", "trace compare", "validate", "list"}) {
    EXPECT_EQ(weft(std::string(command) + " --help", folder).code, 0) << command;
  }
}

TEST(Commands, EndWithTwoOnWrongUsage) {
  const TemporaryFolder folder;
  folder.write("e.json", kExperiment);
  for (const char* wrong : {"", "frobnicate", "run", "run e.json --frobnicate", "list spoons", "import kineto x.json",
                            "trace", "run e.json --set gpus", "compare e.json -j 0"}) {
    const Ran ran = weft(wrong, folder);
    EXPECT_EQ(ran.code, 2) << wrong;
    EXPECT_THAT(ran.errors, StartsWith("weft: error: ")) << wrong;
    EXPECT_THAT(ran.output, IsEmpty()) << wrong;
  }
}

TEST(Commands, RefuseAMissingConfiguration) {
  const TemporaryFolder folder;
  for (const char* command : {"run none.json -o out", "compare none.json -o out", "validate none.json"}) {
    expect_refused(weft(command, folder), 66, "none.json: expected a readable file, got none", folder);
  }
}

TEST(Commands, RefuseAMissingTrace) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": "dgx-a100", "workload": {"trace": "none.json.gz"}})");
  expect_refused(weft("run e.json -o out", folder), 66, "none.json.gz: expected a readable file, got none", folder);
}

TEST(Commands, RefuseAnEmptyConfiguration) {
  const TemporaryFolder folder;
  folder.write("e.json", "");
  expect_refused(weft("run e.json -o out", folder), 65, "e.json: line 1, column 1: expected JSON, got an empty file",
                 folder);
}

TEST(Commands, RefuseAMalformedConfiguration) {
  const TemporaryFolder folder;
  folder.write("e.json", "{\n  \"gpus\": 8,\n");
  const Ran ran = weft("run e.json -o out", folder);
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.errors, StartsWith("weft: error: e.json: line 3, column "));
}

TEST(Commands, RefuseAMisspeltKeyAndNameTheNearest) {
  const TemporaryFolder folder;
  folder.write("e.json", kExperiment);
  for (const char* command : {"run e.json -o out", "compare e.json -o out", "validate e.json"}) {
    expect_refused(weft(std::string(command) + " --set network.link.bandwith_GBps=300", folder), 65,
                   "e.json: /network/link/bandwith_GBps: expected a known key (the nearest is \"bandwidth_GBps\"), got "
                   "\"bandwith_GBps\"",
                   folder);
  }
}

TEST(Commands, RefuseANegativeBandwidth) {
  const TemporaryFolder folder;
  folder.write("e.json", kExperiment);
  expect_refused(weft("run e.json -o out --set network.link.bandwidth_GBps=-25", folder), 65,
                 "e.json: /network/link/bandwidth_GBps: expected a number from 0.001 to 1e+06, got -25", folder);
}

TEST(Commands, RefuseAnUnknownModel) {
  const TemporaryFolder folder;
  folder.write("e.json", kExperiment);
  const Ran ran = weft("run e.json -o out --set workload.model=resnet5", folder);
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.errors, testing::AllOf(StartsWith("weft: error: e.json: /workload/model: expected one of "),
                                         EndsWith("got \"resnet5\"; the nearest is \"resnet50\"\n")));
}

TEST(Commands, AModelIsNamedBeforeWhatElseIsMissing) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": "dgx-a100", "workload": {"model": "resnet5"}})");
  EXPECT_THAT(weft("run e.json", folder).errors, HasSubstr("/workload/model: expected one of "));
  folder.write("e.json", R"({"system": "dgx-a100", "workload": {"model": "atention"}})");
  EXPECT_THAT(weft("run e.json", folder).errors, HasSubstr("the nearest is \"attention\""));
}

TEST(Commands, ValidateSaysThatAFileIsValidOnlyWhenAllWasChecked) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": "dgx-a100", "workload": {"model": "vgg16", "batch": 1, "layers": 3}})");
  const Ran ran = weft("validate e.json", folder);
  EXPECT_EQ(ran.code, 65);
  EXPECT_EQ(ran.output, "");
  EXPECT_THAT(ran.errors, HasSubstr("e.json: /workload/layers: expected 0"));
}

TEST(Commands, CheckAllCasesOfAComparisonBeforeTheFirstRuns) {
  const TemporaryFolder folder;
  folder.write("e.json", R"({"system": "dgx-a100", "workload": {"model": "resnet50", "batch": 16}})");
  const Ran ran = weft("compare e.json --all-reduce ring,in_switch -o out", folder);
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.errors, HasSubstr("e.json: /all_reduce/algorithm: expected"));
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(Commands, RefuseAnOutputThatIsNoFolder) {
  const TemporaryFolder folder;
  folder.write("e.json", kExperiment);
  folder.write("taken", "x");
  const Ran ran = weft("run e.json -o taken", folder);
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.errors, StartsWith("weft: error: taken: expected a folder that can be made or written, got "));
}

TEST(Commands, ValidateAConfiguration) {
  const TemporaryFolder folder;
  folder.write("e.json", kExperiment);
  const Ran ran = weft("validate e.json --set gpus=4", folder);
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.output, StartsWith("e.json: a valid configuration: resnet50 on 4 GPUs of hgx-h100\n  "));
  EXPECT_THAT(ran.output, EndsWith(" GB of 85.9 GB of a GPU's memory at most: fits\n"));
}

TEST(Commands, ValidateASweep) {
  const TemporaryFolder folder;
  folder.write("e.json", kExperiment);
  folder.write("s.json", R"({"base": "e.json", "grid": {"gpus": [2, 4, 0], "workload.batch": [1, 2]}})");
  const Ran ran = weft("validate s.json", folder);
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.output, StartsWith("s.json: a valid sweep: 6 points, 4 different runs\n  2 cannot be run: "));
  EXPECT_THAT(ran.output, HasSubstr("/gpus: expected "));
  folder.write("t.json", R"({"base": "e.json", "grid": {"gpus": []}})");
  EXPECT_EQ(weft("validate t.json", folder).code, 65);
  EXPECT_EQ(weft("validate s.json --set gpus=4", folder).code, 2);
  EXPECT_EQ(weft("validate s.json --values", folder).code, 2);
}

TEST(Commands, ListSystemsForPeopleAndScripts) {
  const TemporaryFolder folder;
  EXPECT_THAT(weft("list systems", folder).output, testing::AllOf(HasSubstr("dgx-a100 "), HasSubstr("hgx-h100 ")));
  const Json list = parse_json(weft("list systems --json", folder).output, "list");
  EXPECT_EQ(list.at(0).at("name"), "dgx-a100");
  EXPECT_THAT(list.at(0).at("description").get<std::string>(), HasSubstr("A100"));
  for (const char* what : {"models", "schemes", "collectives", "topologies", "switch_reduce"}) {
    EXPECT_FALSE(parse_json(weft(std::string("list --json ") + what, folder).output, what).empty()) << what;
  }
}

}  // namespace
}  // namespace weft
