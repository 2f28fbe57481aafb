#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output/result_json.h"
#include "cli/sweep/claim.h"
#include "cli/sweep/metrics.h"
#include "cli/sweep/run_store.h"
#include "cli/sweep/sweep_status.h"
#include "cli/sweep/table.h"
#include "sim/config_file.h"
#include "tests/cli/sample_result.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kMinute{60};

TEST(SweepClaim, IsOneProcessesAlone) {
  const TemporaryFolder folder;
  const auto claim = Claim::take(folder.path(), kMinute);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->number(), 1U);
  EXPECT_FALSE(Claim::take(folder.path(), kMinute));
  EXPECT_TRUE(Claim::held_by_any(folder.path(), kMinute));
  remove_claims(folder.path());
  EXPECT_FALSE(Claim::held_by_any(folder.path(), kMinute));
  EXPECT_EQ(folder.entries(), 0U);
}

TEST(SweepClaim, IsTakenOverFromADeadProcessAtOnce) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(Claim::take(folder.path(), kMinute) ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  const auto claim = Claim::take(folder.path(), kMinute);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->number(), 2U);
  EXPECT_TRUE(claim->held());
}

TEST(SweepClaim, IsTakenOverFromASilentMachineAfterAWhile) {
  const TemporaryFolder folder;
  const auto file = folder.write("claim.3", "elsewhere boot pid:[1]\n1\n1\n");
  EXPECT_FALSE(Claim::take(folder.path(), kMinute));
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - 2 * kMinute);
  const auto claim = Claim::take(folder.path(), kMinute);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->number(), 4U);
}

TEST(SweepClaim, IsLostToWhoClaimsAfterIt) {
  const TemporaryFolder folder;
  const auto claim = Claim::take(folder.path(), kMinute);
  ASSERT_TRUE(claim);
  folder.write("claim.2", "elsewhere\n1\n1\n");
  EXPECT_FALSE(claim->held());
}

class Store : public ::testing::Test {
 protected:
  Store() : store_(folder_.path()) {
    manifest_.paths = {"gpus", "network"};
    manifest_.points = {
        {{2, "a, \"b\""}, 1, 0, "k1", ""}, {{4, "c"}, 1, 0, "k2", ""}, {{9, "c"}, nullptr, 0, "", "no"}};
    store_.plan("k1", {{"gpus", 2}});
    store_.plan("k2", {{"gpus", 4}});
    store_.write_manifest(manifest_);
  }
  // What a run would leave, and its end.
  void publish(const std::string& key) {
    const auto claim = store_.claim(key, kMinute);
    ASSERT_TRUE(claim);
    std::filesystem::create_directory(store_.output(key, *claim));
    const Json result = result_to_json(weft::testing::SampleRun({2, 1}).build());
    std::ofstream(store_.output(key, *claim) / "result.json") << json_text(result);
    ChildEnd end;
    end.wall_s = 3;
    end.cpu_s = 2;
    store_.publish(key, *claim, end);
  }

  TemporaryFolder folder_;
  RunStore store_;
  Manifest manifest_;
};

TEST_F(Store, HoldsARunOnceItIsPublished) {
  EXPECT_FALSE(store_.done("k1"));
  publish("k1");
  EXPECT_TRUE(store_.done("k1"));
  EXPECT_FALSE(std::filesystem::exists(store_.work_path("k1")));
  EXPECT_EQ(store_.cost("k1").cpu_s, 2);
  EXPECT_FALSE(store_.claim("k1", kMinute));
}

TEST_F(Store, KeepsTheResultOfWhoTookOver) {
  const auto claim = store_.claim("k1", kMinute);
  std::filesystem::create_directory(store_.output("k1", *claim));
  folder_.write("work/k1/claim.2", "elsewhere\n1\n1\n");
  store_.publish("k1", *claim, {});
  EXPECT_FALSE(store_.done("k1"));
}

TEST_F(Store, RemembersAFailureUntilItIsForgotten) {
  const auto claim = store_.claim("k1", kMinute);
  store_.fail("k1", {"timeout", "not done after 3 s"});
  EXPECT_FALSE(store_.claimed("k1", kMinute));
  ASSERT_TRUE(store_.failure("k1"));
  EXPECT_EQ(store_.failure("k1")->status, "timeout");
  store_.forget_failure("k1");
  EXPECT_FALSE(store_.failure("k1"));
}

TEST_F(Store, ClearsAwayWhatAKilledOwnerLeft) {
  folder_.write("work/k1/run.1/result.json", "half");
  folder_.write("work/k1/.run.1.abcdef/result.json", "less");
  ASSERT_TRUE(store_.claim("k1", kMinute));
  EXPECT_FALSE(std::filesystem::exists(store_.work_path("k1") / "run.1"));
  EXPECT_FALSE(std::filesystem::exists(store_.work_path("k1") / ".run.1.abcdef"));
  EXPECT_TRUE(std::filesystem::exists(store_.work_path("k1") / "config.json"));
}

TEST_F(Store, KnowsHowFarItIs) {
  publish("k1");
  auto status = status_of(manifest_, store_, kMinute);
  EXPECT_EQ(status.done, 1U);
  EXPECT_EQ(status.pending, 1U);
  EXPECT_EQ(status.failed, 1U);
  EXPECT_EQ(status.cpu_s, 2);
  EXPECT_EQ(status.seconds_left, 0);
  const auto claim = store_.claim("k2", kMinute);
  status = status_of(manifest_, store_, kMinute);
  EXPECT_EQ(status.running, 1U);
  EXPECT_EQ(status.seconds_left, 1.5);  // half of what the other took
  EXPECT_THAT(status_text(status), HasSubstr("3 points: 1 done, 1 failed, 0 timed out, 1 running, 0 pending\n"));
  EXPECT_EQ(duration_text(200), "3 min 20 s");
  EXPECT_EQ(duration_text(7500), "2 h 5 min");
}

TEST_F(Store, MakesOneRowAPoint) {
  publish("k1");
  const SweepTable table = sweep_table(manifest_, store_);
  EXPECT_EQ(table.failed, 1U);
  EXPECT_EQ(table.pending, 1U);
  const std::string csv = table_csv(table);
  EXPECT_THAT(csv, HasSubstr("point,gpus,network,seed,repetition,status,reason,iteration_time_s,"));
  EXPECT_THAT(csv, HasSubstr("\n0,2,\"a, \"\"b\"\"\",1,0,ok,,"));
  EXPECT_THAT(csv, HasSubstr("\n1,4,c,1,0,pending,,,"));
  EXPECT_THAT(csv, HasSubstr("\n2,9,c,,0,failed,no,,"));
}

TEST_F(Store, WritesTheSameRowsAsADatabase) {
  publish("k1");
  const SweepTable table = sweep_table(manifest_, store_);
  const auto file = folder_.path() / "results.sqlite";
  write_table_sqlite(table, file);
  const std::string bytes = read_file(file);
  write_table_sqlite(table, file);
  EXPECT_EQ(read_file(file), bytes);

  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
  sqlite3_stmt* query = nullptr;
  ASSERT_EQ(
      sqlite3_prepare_v2(database, "SELECT gpus, network, iteration_time_s, typeof(seed) FROM results ORDER BY point",
                         -1, &query, nullptr),
      SQLITE_OK);
  ASSERT_EQ(sqlite3_step(query), SQLITE_ROW);
  EXPECT_EQ(sqlite3_column_int(query, 0), 2);
  EXPECT_STREQ(reinterpret_cast<const char*>(sqlite3_column_text(query, 1)), "a, \"b\"");
  const auto time = std::find(table.columns.begin(), table.columns.end(), "iteration_time_s") - table.columns.begin();
  EXPECT_EQ(sqlite3_column_double(query, 2), table.rows[0][static_cast<std::size_t>(time)].get<double>());
  EXPECT_STREQ(reinterpret_cast<const char*>(sqlite3_column_text(query, 3)), "integer");
  sqlite3_finalize(query);
  sqlite3_close(database);
}

TEST(SweepMetrics, FollowPathsThroughAResult) {
  const Json result = result_to_json(weft::testing::SampleRun({4, 1}).build());
  const auto value = [&](const std::string& path) { return metric_values({{"m", path}}, result).front(); };
  EXPECT_EQ(value("iteration.time_s"), result["iteration"]["time_s"]);
  EXPECT_EQ(value("gpus.1.id"), 1);
  EXPECT_EQ(value("max(gpus.id)"), 3);
  EXPECT_EQ(value("sum(gpus.id)"), 6);
  EXPECT_EQ(value("mean(gpus.id)"), 1.5);
  EXPECT_EQ(value("min(gpus.7.id)"), nullptr);
  EXPECT_EQ(value("gpus.id"), Json({0, 1, 2, 3}));
  EXPECT_EQ(value("iteration.none"), nullptr);
  EXPECT_EQ(metric_name("max(links.busy_fraction)"), "max_links_busy_fraction");
}

TEST(SweepMetrics, AllAppearInARun) {
  const Json result = result_to_json(weft::testing::SampleRun({2, 1, true}).build());
  const auto values = metric_values(headline_metrics(), result);
  for (std::size_t m = 0; m < values.size(); ++m) {
    const std::string& name = headline_metrics()[m].name;
    if (name == "tokens_per_s") continue;
    EXPECT_FALSE(values[m].is_null()) << name;
  }
}

}  // namespace
}  // namespace weft
