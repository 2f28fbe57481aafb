// `weft sweep` from outside: what it leaves, and what survives being killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "cli/sweep/run_store.h"
#include "tests/cli/run_weft.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::StartsWith;

// Eight collectives on two GPUs, a hundredth of a second each.
constexpr const char* kSweep = R"({
  "base": {"system": "dgx-a100", "gpus": 2, "workload": {"collective": "all_reduce", "bytes": 65536}},
  "grid": {"workload.bytes": [65536, 131072], "all_reduce.algorithm": ["ring", "direct"]},
  "zip": {"network.link.bandwidth_GBps": [12.5, 25], "network.link.latency_ns": [300, 600]},
  "metrics": {"algorithm": "collectives.0.algorithm"}})";

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::map<std::string, fs::file_time_type> runs(const fs::path& folder) {
  std::map<std::string, fs::file_time_type> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder / "points", none)) {
    found[entry.path().filename().string()] = fs::last_write_time(entry.path() / "result.json");
  }
  return found;
}

std::vector<std::string> names(const fs::path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path().filename().string());
  return found;
}

TEST(SweepEndToEnd, LeavesATableThatNoNumberOfJobsChanges) {
  const TemporaryFolder folder;
  folder.write("s.json", kSweep);
  const Ran ran = weft("sweep s.json -o one -j 1", folder);
  EXPECT_EQ(ran.code, 0) << ran.errors;
  EXPECT_THAT(ran.output, StartsWith("8 points: 8 done, 0 failed"));
  const std::string table = read_file(folder.path() / "one/results.csv");
  EXPECT_EQ(lines(table), 9U);
  EXPECT_THAT(table, HasSubstr("\n7,131072,direct,25,600,1,0,ok,,"));
  EXPECT_THAT(table, testing::EndsWith(",direct\n"));
  EXPECT_EQ(weft("sweep s.json -o three -j 3", folder).code, 0);
  EXPECT_EQ(read_file(folder.path() / "three/results.csv"), table);
  EXPECT_EQ(read_file(folder.path() / "three/results.sqlite"), read_file(folder.path() / "one/results.sqlite"));
  EXPECT_EQ(read_file(folder.path() / "three/manifest.json"), read_file(folder.path() / "one/manifest.json"));
  for (const auto& run : runs(folder.path() / "one")) {
    for (const char* file : {"config.json", "kernels.csv", "timeline.pftrace", "report.html", "cost.json"}) {
      EXPECT_TRUE(fs::exists(folder.path() / "one/points" / run.first / file)) << file;
    }
  }
}

TEST(SweepEndToEnd, KeepsOnlyResultsWhereAsked) {
  const TemporaryFolder folder;
  folder.write("s.json", kSweep);
  EXPECT_EQ(weft("sweep s.json -o whole", folder).code, 0);
  EXPECT_EQ(weft("sweep s.json -o lean --keep result", folder).code, 0);
  EXPECT_EQ(read_file(folder.path() / "lean/results.csv"), read_file(folder.path() / "whole/results.csv"));
  const std::string key = runs(folder.path() / "lean").begin()->first;
  EXPECT_THAT(names(folder.path() / "lean/points" / key),
              testing::UnorderedElementsAre("config.json", "result.json", "cost.json"));
  // The rest follows from the configuration.
  EXPECT_EQ(weft("run lean/points/" + key + "/config.json -o lean/points/" + key, folder).code, 0);
  for (const char* file : {"kernels.csv", "counters.csv", "timeline.pftrace"}) {
    EXPECT_EQ(read_file(folder.path() / "lean/points" / key / file),
              read_file(folder.path() / "whole/points" / key / file));
  }
}

TEST(SweepEndToEnd, IsTheSameInShards) {
  const TemporaryFolder folder;
  folder.write("s.json", kSweep);
  EXPECT_EQ(weft("sweep s.json -o whole", folder).code, 0);
  EXPECT_EQ(weft("sweep s.json -o parts --shard 2/3", folder).code, 0);
  EXPECT_THAT(weft("sweep status parts", folder).output,
              StartsWith("8 points: 3 done, 0 failed, 0 timed out, 0 running, 5"));
  EXPECT_EQ(weft("sweep merge parts", folder).code, 0);
  EXPECT_THAT(read_file(folder.path() / "parts/results.csv"), HasSubstr("pending"));
  EXPECT_EQ(weft("sweep s.json -o parts --shard 1/3", folder).code, 0);
  EXPECT_EQ(weft("sweep parts --shard 3/3", folder).code, 0);  // the folder in place of the file
  EXPECT_EQ(weft("sweep merge parts", folder).code, 0);
  EXPECT_EQ(read_file(folder.path() / "parts/results.csv"), read_file(folder.path() / "whole/results.csv"));
}

TEST(SweepEndToEnd, IsTheSameInShardsOfGnuParallel) {
  if (std::system("command -v parallel >/dev/null") != 0) {
    GTEST_SKIP() << "GNU parallel is not here (install_deps.sh --test)";
  }
  const TemporaryFolder folder;
  folder.write("s.json", kSweep);
  EXPECT_EQ(weft("sweep s.json -o whole", folder).code, 0);
  // All shards plan at once, and their number is not that of the jobs.
  const std::string command = "cd '" + folder.path().string() +
                              "' && HOME=$PWD parallel -j 3 '" WEFT_BINARY
                              "' sweep s.json -o parts -j 1 --shard {}/4 ::: 1 2 3 4 >said 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_file(folder.path() / "said");
  EXPECT_EQ(weft("sweep merge parts", folder).code, 0);
  EXPECT_EQ(read_file(folder.path() / "parts/results.csv"), read_file(folder.path() / "whole/results.csv"));
  EXPECT_EQ(read_file(folder.path() / "parts/results.sqlite"), read_file(folder.path() / "whole/results.sqlite"));
}

TEST(SweepEndToEnd, ComputesOnlyWhatAChangedSweepAdds) {
  const TemporaryFolder folder;
  folder.write("s.json", kSweep);
  EXPECT_EQ(weft("sweep s.json -o out", folder).code, 0);
  const auto before = runs(folder.path() / "out");
  std::string more = kSweep;
  more.replace(more.find("[65536, 131072]"), 15, "[32768, 65536]");
  folder.write("s.json", more);
  const Ran refused = weft("sweep s.json -o out", folder);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("out: expected --resume or another folder, got one that holds another sweep"));
  EXPECT_EQ(weft("sweep s.json -o out --resume", folder).code, 0);
  const auto after = runs(folder.path() / "out");
  EXPECT_EQ(after.size(), before.size() + 4);
  for (const auto& [key, time] : before) EXPECT_EQ(after.at(key), time);
}

TEST(SweepEndToEnd, MakesRowsOfWhatFails) {
  const TemporaryFolder folder;
  folder.write("s.json", R"({
    "base": {"system": "dgx-a100", "gpus": 2, "workload": {"model": "resnet50", "batch": 1, "layers": 1}},
    "zip": {"gpus": [3000, 2, 2], "workload.batch": [1, 1, 100000], "workload.layers": [1, 17, 1]}})");
  const Ran ran = weft("sweep s.json -o out", folder);
  EXPECT_EQ(ran.code, 75);
  EXPECT_THAT(ran.output, StartsWith("3 points: 1 done, 2 failed"));
  const std::string table = read_file(folder.path() / "out/results.csv");
  EXPECT_THAT(table, HasSubstr("\n0,3000,1,1,,0,failed,"));
  EXPECT_THAT(table, HasSubstr("\n1,2,1,17,,0,failed,"));
  EXPECT_THAT(table, HasSubstr("s.json: /workload/layers: expected 0 (all) to 16, got 17\","));
  EXPECT_THAT(table, HasSubstr("\n2,2,100000,1,1,0,out_of_memory,GPU 0 lacks "));
}

TEST(SweepEndToEnd, TriesAgainWhatTookTooLong) {
  const TemporaryFolder folder;
  folder.write("s.json", kSweep);
  EXPECT_EQ(weft("sweep s.json -o out --timeout 0.001", folder).code, 75);
  const std::string table = read_file(folder.path() / "out/results.csv");
  EXPECT_THAT(table, HasSubstr(",timeout,not done after 0.001 s,"));
  EXPECT_EQ(weft("sweep out --shard 1/1", folder).code, 75);  // failures stay, unless they are to be tried again
  EXPECT_EQ(read_file(folder.path() / "out/results.csv"), table);
  EXPECT_THAT(weft("sweep out --resume", folder).output, StartsWith("8 points: 8 done"));
}

// A disk that takes no byte more, as far as a process can tell. Output goes through a pipe, as that is no file.
Ran weft_on_a_full_disk(const std::string& arguments, const TemporaryFolder& folder) {
  folder.write("full.sh",
               "trap '' XFSZ\n{ (ulimit -f 0; '" WEFT_BINARY "' " + arguments + " 2>&1); echo $?; } | cat >said\n");
  EXPECT_EQ(std::system(("cd '" + folder.path().string() + "' && bash full.sh").c_str()), 0);
  const std::string said = read_file(folder.path() / "said");
  return {std::stoi(said.substr(said.rfind('\n', said.size() - 2) + 1)), "", said};
}

TEST(SweepEndToEnd, APartFailsOnADiskThatStaysFull) {
  const TemporaryFolder folder;
  folder.write("s.json", kSweep);
  EXPECT_EQ(weft_on_a_full_disk("sweep s.json -o out", folder).code, 75);  // nothing can be planned
  EXPECT_EQ(weft("sweep s.json -o out --resume --shard 1/2", folder).code, 0);
  const Ran ran = weft_on_a_full_disk("sweep out -j 1", folder);  // nothing can be claimed, and no table be written
  EXPECT_EQ(ran.code, 75);
  EXPECT_THAT(ran.errors, HasSubstr("results.csv: expected a file that can be written, got: File too large"));
  EXPECT_EQ(weft_on_a_full_disk("sweep merge out", folder).code, 75);
  EXPECT_EQ(weft("sweep out", folder).code, 0);  // with room again
}

TEST(SweepEndToEnd, SurvivesRunsThatGetNoMemory) {
  const TemporaryFolder folder;
  folder.write(
      "s.json",
      R"({"base": {"system": "dgx-a100", "gpus": 2, "workload": {"model": "resnet50", "batch": 1, "layers": 1}}})");
  EXPECT_EQ(weft("sweep s.json -o out --memory-GiB 0.03", folder).code, 75);
  EXPECT_THAT(read_file(folder.path() / "out/results.csv"), HasSubstr("expected enough memory for this simulation"));
  EXPECT_EQ(weft("sweep s.json -o out --resume", folder).code, 0);
}

// The end of a process of ours, not of a shell around it.
class Sweeping {
 public:
  Sweeping(const TemporaryFolder& folder, std::vector<std::string> arguments) : process_(::fork()) {
    if (process_ != 0) return;
    std::vector<char*> argv{const_cast<char*>("weft")};
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    if (::chdir(folder.path().c_str()) != 0) ::_exit(99);
    if (std::freopen("/dev/null", "w", stdout) == nullptr || std::freopen("/dev/null", "w", stderr) == nullptr)
      ::_exit(99);
    ::execv(WEFT_BINARY, argv.data());
    ::_exit(99);
  }
  [[nodiscard]] int end_by(int signal) const {
    ::kill(process_, signal);
    int status = 0;
    ::waitpid(process_, &status, 0);
    return status;
  }

 private:
  pid_t process_;
};

void wait_for_runs(const fs::path& folder, std::size_t count) {
  for (int tries = 0; tries < 3000 && runs(folder).size() < count; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST(SweepEndToEnd, GoesOnAfterBeingKilled) {
  const TemporaryFolder folder;
  folder.write("s.json", kSweep);
  EXPECT_EQ(weft("sweep s.json -o whole", folder).code, 0);
  std::map<std::string, fs::file_time_type> seen;
  for (const std::size_t some : {1U, 3U, 6U}) {
    const Sweeping sweep(folder, {"sweep", "s.json", "-o", "out", "-j", "1", "--resume"});
    wait_for_runs(folder.path() / "out", some);
    EXPECT_TRUE(WIFSIGNALED(sweep.end_by(SIGKILL)));
    const auto now = runs(folder.path() / "out");
    for (const auto& [key, time] : seen) EXPECT_EQ(now.at(key), time);  // not computed twice
    seen = now;
  }
  EXPECT_EQ(weft("sweep s.json -o out --resume", folder).code, 0);
  const auto all = runs(folder.path() / "out");
  for (const auto& [key, time] : seen) EXPECT_EQ(all.at(key), time);
  EXPECT_EQ(read_file(folder.path() / "out/results.csv"), read_file(folder.path() / "whole/results.csv"));
  EXPECT_TRUE(fs::is_empty(folder.path() / "out/work"));
}

TEST(SweepEndToEnd, EndsWithItsChildrenWhenInterrupted) {
  const TemporaryFolder folder;
  folder.write("s.json", R"({"base": {"system": "dgx-a100", "workload": {"model": "resnet50", "batch": 64}}})");
  const Sweeping sweep(folder, {"sweep", "s.json", "-o", "out"});
  for (int tries = 0; tries < 3000; ++tries) {
    const bool planned = fs::exists(folder.path() / "out/manifest.json");
    if (planned && weft("sweep status out --json | grep -q '\"running\": 1'", folder).code == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const int status = sweep.end_by(SIGINT);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_THAT(weft("sweep status out", folder).output,
              StartsWith("1 points: 0 done, 0 failed, 0 timed out, 0 running, 1"));
}

TEST(SweepEndToEnd, SharesItsWorkAmongProcesses) {
  const TemporaryFolder folder;
  folder.write("s.json", kSweep);
  const Sweeping other(folder, {"sweep", "s.json", "-o", "out", "-j", "1", "--shard", "1/1"});
  wait_for_runs(folder.path() / "out", 1);
  EXPECT_EQ(weft("sweep out -j 1", folder).code, 0);  // waits for what the other has claimed
  EXPECT_EQ(lines(read_file(folder.path() / "out/results.csv")), 9U);
  EXPECT_EQ(other.end_by(0), 0);
  EXPECT_EQ(runs(folder.path() / "out").size(), 8U);
  EXPECT_TRUE(fs::is_empty(folder.path() / "out/work"));
}

TEST(SweepEndToEnd, RefusesWrongUsage) {
  const TemporaryFolder folder;
  folder.write("s.json", kSweep);
  for (const char* wrong :
       {"sweep", "sweep s.json", "sweep s.json -o out --shard 3/2", "sweep s.json -o out --shard 0/2",
        "sweep s.json -o out --shard 1", "sweep s.json -o out -j 0"}) {
    EXPECT_EQ(weft(wrong, folder).code, 2) << wrong;
  }
  EXPECT_EQ(weft("sweep none.json -o out", folder).code, 66);
  EXPECT_EQ(weft("sweep status .", folder).code, 66);
  folder.write("bad.json", R"({"base": {"system": "dgx-a100"}, "grid": {"gpus": [3000, 4000]}})");
  EXPECT_EQ(weft("sweep bad.json -o out", folder).code, 65);
  EXPECT_FALSE(fs::exists(folder.path() / "out"));
}

}  // namespace
}  // namespace weft
