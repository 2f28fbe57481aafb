// What is shipped in configs/: systems against their data sheets, experiments that are valid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/config/run_config.h"
#include "cli/config/system_json.h"
#include "cli/config/system_of.h"
#include "network/tuner.h"
#include "sim/config_file.h"

namespace weft {
namespace {

using testing::HasSubstr;

TEST(SystemPresets, HaveThePeaksOfTheirDataSheets) {
  struct Peak {
    const char* system;
    double tensor_TFLOPs, hbm_GBps, link_GBps;
  };
  for (const Peak& peak :
       {Peak{"dgx-a100", 312, 2039, 300}, Peak{"hgx-h100", 989, 3350, 450}, Peak{"hgx-h200", 989, 4800, 450},
        Peak{"gh200-quad", 989, 4000, 450}, Peak{"hgx-b200", 2250, 8000, 900}, Peak{"mi300x", 1307, 5300, 448},
        Peak{"dgx2-v100", 125.3, 900, 150}, Peak{"klenk16", 125.3, 900, 150}, Peak{"r9nano", 8.192, 512, 31.5}}) {
    const SystemSpec system = preset_system(peak.system);
    const double units_times_clock = system.gpu.compute_units * static_cast<double>(system.gpu.clock.count());
    EXPECT_NEAR(units_times_clock * system.gpu.compute_unit.flops_per_cycle[0] / 1e12, peak.tensor_TFLOPs,
                peak.tensor_TFLOPs * 0.001);
    EXPECT_EQ(system.gpu.hbm.bandwidth, gigabytes_per_second(peak.hbm_GBps));
    EXPECT_EQ(system.network.link.bandwidth * system.network.links_per_gpu, gigabytes_per_second(peak.link_GBps));
  }
}

// A link is never held up by its own credits: they cover what is under way during a credit's round trip.
TEST(SystemPresets, HaveCreditsForTheirLinks) {
  for (const std::string& name : preset_names("systems")) {
    const LinkSpec link = preset_system(name).network.link;
    const double round_trip_bytes = 2 * to_seconds(link.latency) * static_cast<double>(link.bandwidth.count());
    EXPECT_GT(link.credits * (link.max_payload_bytes + link.header_flits * link.flit_bytes), round_trip_bytes) << name;
  }
}

// nccl_mechanism: a launch and its completion take 6.1 us on A100 and GH200.
TEST(SystemPresets, HaveTheMeasuredLaunchRoundTrip) {
  for (const char* name : {"dgx-a100", "hgx-h100", "gh200-quad"}) {
    const LaunchSpec launch = preset_system(name).gpu.launch;
    const Time round_trip = launch.host_issue + 2 * launch.host_to_device + launch.device_latency;
    EXPECT_NEAR(to_microseconds(round_trip), 6.1, 0.01) << name;
  }
}

// What NCCL chooses on eight H200 (and H100): measured tables show the step from 1 to 2 MiB.
TEST(SystemPresets, OnHgxH200TheTunerTakesLlRingsUpTo1MiBAndTheSwitchFrom2MiB) {
  const SystemSpec system = preset_system("hgx-h200");
  for (std::int64_t bytes = 1 << 10; bytes <= 1 << 30; bytes *= 2) {
    const TunerQuery query{.bytes = bytes,
                           .ranks = 8,
                           .links_per_gpu = system.network.links_per_gpu,
                           .link_GBps = 25,
                           .in_switch = system.switch_reduce.has_value()};
    const TunerChoice choice =
        choose(system.collectives, query, AllReduceAlgorithm::automatic, CollectiveProtocol::automatic, 0);
    const bool small = bytes <= 1 << 20;
    EXPECT_EQ(choice.algorithm, small ? AllReduceAlgorithm::ring : AllReduceAlgorithm::in_switch) << bytes;
    EXPECT_EQ(choice.protocol, small ? CollectiveProtocol::ll : CollectiveProtocol::simple) << bytes;
  }
}

TEST(SystemPresets, HaveASourceBesideEveryNumber) {
  const std::filesystem::path configs = std::filesystem::path(WEFT_SOURCE_DIR) / "configs";
  std::vector<std::filesystem::path> files{configs / "switch_reduce" / "nvswitch3.json"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(configs / "systems")) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  ASSERT_GE(files.size(), 12U);
  for (const std::filesystem::path& file : files) {
    std::istringstream lines(read_file(file));
    for (std::string line; std::getline(lines, line);) {
      const auto colon = line.find("\": ");
      const bool is_number = colon != std::string::npos && line.find_first_of("0123456789", colon) == colon + 3;
      if (is_number && line.find("max_gpus") == std::string::npos) {
        EXPECT_THAT(line, HasSubstr("// ")) << file;
      }
    }
  }
}

TEST(Experiments, AreValid) {
  const std::filesystem::path folder = std::filesystem::path(WEFT_SOURCE_DIR) / "configs" / "experiments";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_NO_THROW(static_cast<void>(read_run_config(entry.path(), {}))) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 1);
}

}  // namespace
}  // namespace weft
