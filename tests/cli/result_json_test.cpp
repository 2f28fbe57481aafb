#include "cli/output/result_json.h"

#include <gmock/gmock.h>

#include <limits>

#include "sim/error.h"
#include "tests/cli/sample_result.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using weft::testing::sample_result;

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

TEST(ResultJson, KeepsTheOrderOfTheFormat) {
  const Json json = result_to_json(sample_result());
  EXPECT_THAT(keys(json), ElementsAre("schema", "version", "config", "config_sha256", "status", "iteration",
                                      "slowdown_by_cause", "slowdown_by_phase", "throughput", "collectives", "gpus",
                                      "links", "switches", "engine", "notes"));
  EXPECT_THAT(
      keys(json["iteration"]),
      ElementsAre("time_s", "forward_s", "backward_s", "backward_isolated_s", "backward_slowdown", "communication_s",
                  "communication_exposed_s", "communication_overlapped_s", "optimizer_s", "idle_s", "per_iteration"));
  EXPECT_THAT(keys(json["slowdown_by_cause"]), ElementsAre("compute_units", "hbm", "cache", "links"));
  EXPECT_THAT(keys(json["slowdown_by_phase"]), ElementsAre("waiting", "moving"));
  for (const char* cause : {"compute_units", "hbm", "cache", "links"}) {
    EXPECT_DOUBLE_EQ(json["slowdown_by_phase"]["waiting"][cause].get<double>() +
                         json["slowdown_by_phase"]["moving"][cause].get<double>(),
                     json["slowdown_by_cause"][cause].get<double>());
  }
  EXPECT_THAT(keys(json["throughput"]), ElementsAre("samples_per_s", "tokens_per_s", "scaling_efficiency"));
  EXPECT_THAT(keys(json["collectives"][0]),
              ElementsAre("name", "kind", "algorithm", "protocol", "channels", "bytes", "ranks", "start_s", "end_s",
                          "waiting_s", "algbw_GBps", "busbw_GBps"));
  EXPECT_THAT(keys(json["gpus"][0]), ElementsAre("id", "peak_memory_bytes", "memory", "fits", "hbm_read_bytes",
                                                 "hbm_write_bytes", "hbm_communication_bytes", "compute_unit_seconds",
                                                 "busy_fraction", "chunks_summed", "chunks_sent_again"));
  EXPECT_THAT(keys(json["gpus"][0]["memory"]),
              ElementsAre("parameters", "gradients", "optimizer", "activations", "communication", "workspace"));
  EXPECT_THAT(keys(json["gpus"][0]["compute_unit_seconds"]), ElementsAre("compute", "communication"));
  EXPECT_THAT(keys(json["links"][0]), ElementsAre("name", "bytes", "wire_bytes", "busy_fraction", "peak_fraction",
                                                  "stall_s", "queue_high_water_packets"));
  EXPECT_THAT(keys(json["switches"][0]),
              ElementsAre("name", "reduced_bytes", "multicast_bytes", "table_high_water_bytes", "table_stall_s",
                          "port_stall_s", "table_entries_opened", "table_mean_entries", "table_residence_s",
                          "table_refused", "wasted_replies", "table_evictions", "table_timeouts", "adder_busy_fraction",
                          "slots_high_water", "stalled_packets", "duplicates", "lost_packets"));
  EXPECT_THAT(keys(json["engine"]), ElementsAre("wall_s", "threads", "memory_transactions", "packets", "simulated_s",
                                                "skipped_fraction", "sampling_error_estimate", "peak_rss_bytes"));
  EXPECT_EQ(json["schema"], "weft-result/1");
}

TEST(ResultJson, WritesNullWhereAKeyDoesNotApply) {
  RunResult result = sample_result();
  result.iteration.backward_s.reset();
  result.slowdown_by_cause.reset();
  result.samples_per_s.reset();
  result.gpus[0].fits.reset();
  const Json json = result_to_json(result);
  EXPECT_TRUE(json["iteration"]["backward_s"].is_null());
  EXPECT_TRUE(json["slowdown_by_cause"].is_null());
  EXPECT_TRUE(json["throughput"]["samples_per_s"].is_null());
  EXPECT_TRUE(json["throughput"]["tokens_per_s"].is_null());
  EXPECT_TRUE(json["gpus"][0]["fits"].is_null());
  EXPECT_TRUE(json["gpus"][0]["memory"]["workspace"].is_null());
  EXPECT_EQ(json["gpus"][1]["fits"], true);
}

TEST(ResultJson, OutOfMemoryNamesTheHoldersAndHasNoTimes) {
  RunResult result = sample_result();
  result.status = "out_of_memory";
  result.out_of_memory = OutOfMemory{3, "layer4 conv2", 1'500'000'000, {{"activations of layer1", 20'000'000'000}}};
  const Json json = result_to_json(result);
  EXPECT_EQ(keys(json)[5], "out_of_memory");
  EXPECT_EQ(json["out_of_memory"]["gpu"], 3);
  EXPECT_EQ(json["out_of_memory"]["bytes_over"], 1'500'000'000);
  EXPECT_EQ(json["out_of_memory"]["largest_holders"][0]["what"], "activations of layer1");
  EXPECT_TRUE(json["iteration"]["time_s"].is_null());
  EXPECT_TRUE(json["throughput"]["samples_per_s"].is_null());
  EXPECT_TRUE(json["slowdown_by_cause"].is_null());
}

TEST(ResultJson, NumbersReadBackToTheSameDouble) {
  RunResult result = sample_result();
  result.iteration.time_s = 0.1 + 0.2;
  result.iteration.idle_s = 1e-15 / 3;
  const Json read = Json::parse(json_text(result_to_json(result)));
  EXPECT_EQ(read["iteration"]["time_s"].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(read["iteration"]["idle_s"].get<double>(), 1e-15 / 3);
}

TEST(ResultJson, EqualRunsDifferOnlyInEngine) {
  const RunResult first = sample_result();
  RunResult second = sample_result();
  second.engine = {99.5, 8, 1, 2, 3.0, 0.25, 0.01, 4};
  Json a = result_to_json(first), b = result_to_json(second);
  EXPECT_NE(json_text(a), json_text(b));
  a.erase("engine");
  b.erase("engine");
  EXPECT_EQ(json_text(a), json_text(b));
}

TEST(ResultJson, ANumberThatIsNotFiniteIsAnInternalError) {
  RunResult result = sample_result();
  result.iteration.time_s = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(static_cast<void>(result_to_json(result)), InternalError);
}

TEST(ResultJson, BytesThatAreNoUtf8AreReplaced) {
  RunResult result = sample_result();
  result.collectives[0].name = "bad \xff byte";
  const std::string text = json_text(result_to_json(result));
  EXPECT_THAT(text, HasSubstr("bad \xEF\xBF\xBD byte"));
  EXPECT_TRUE(Json::accept(text));
}

}  // namespace
}  // namespace weft
