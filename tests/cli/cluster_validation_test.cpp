// All-reduces over two nodes of 8 GPUs against published measurements (docs/validation.md, Two nodes).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/json_reader.h"
#include "tests/cli/run_weft.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

// GB/s, of 256 MiB; 0: no value.
double bus_bandwidth(const char* system, const char* algorithm, std::int64_t bytes) {
  setenv("WEFT_REGIMES", "", 1);
  const TemporaryFolder folder;
  folder.write("e.json", fmt::format(R"({{"system": "{}", "gpus": 16, "fidelity": "sampled",
    "workload": {{"collective": "all_reduce", "bytes": {}}}, "all_reduce": {{"algorithm": "{}"}}}})",
                                     system, bytes, algorithm));
  const Ran ran = weft("run e.json --json", folder);
  EXPECT_EQ(ran.code, 0) << ran.errors;
  return parse_json(ran.output, "result").at("collectives").at(0).at("busbw_GBps").get<double>();
}

// NVIDIA measures 192 GB/s on DGX A100 (nccl issue 812), and calls 46 to 48 GB/s a NIC right on H100 (nccl-tests issue
// 290), of large messages.
TEST(ClusterValidation, RingsOverTwoNodesAreAsFastAsTheirNics) {
  constexpr std::int64_t kBytes = 268435456;
  EXPECT_NEAR(bus_bandwidth("dgx-a100-cluster", "ring", kBytes), 192, 0.05 * 192);
  EXPECT_NEAR(bus_bandwidth("hgx-h100-cluster", "ring", kBytes), 8 * 47, 0.07 * 8 * 47);
}

// Azure ND H100 v5 (edwardsp/azcluster, walkthrough.md).
TEST(ClusterValidation, SwitchesOfTwoNodesAreAsFastAsMeasured) {
  for (const auto& [bytes, measured] : {std::pair{33554432, 229.3}, std::pair{67108864, 261.7}, {268435456, 385.9}}) {
    EXPECT_NEAR(bus_bandwidth("hgx-h100-cluster", "in_switch", bytes), measured, 0.1 * measured) << bytes;
  }
}

}  // namespace
}  // namespace weft
