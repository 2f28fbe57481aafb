// Collectives over two nodes of 8 GPUs, and exchanges, against published measurements (docs/validation.md, Two nodes
// and All pairs).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "sim/json_reader.h"
#include "tests/cli/run_weft.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

// GB/s.
double bus_bandwidth(const char* system, int gpus, const char* collective, const char* algorithm, std::int64_t bytes) {
  setenv("WEFT_REGIMES", "", 1);
  const TemporaryFolder folder;
  folder.write("e.json", fmt::format(R"({{"system": "{}", "gpus": {}, "fidelity": "sampled",
    "workload": {{"collective": "{}", "bytes": {}}}, "all_reduce": {{"algorithm": "{}"}}}})",
                                     system, gpus, collective, bytes, algorithm));
  const Ran ran = weft("run e.json --json", folder);
  EXPECT_EQ(ran.code, 0) << ran.errors;
  return parse_json(ran.output, "result").at("collectives").at(0).at("busbw_GBps").get<double>();
}

// NVIDIA measures 192 GB/s on DGX A100 (nccl issue 812), and calls 46 to 48 GB/s a NIC right on H100 (nccl-tests issue
// 290), of large messages.
TEST(ClusterValidation, RingsOverTwoNodesAreAsFastAsTheirNics) {
  constexpr std::int64_t kBytes = 268435456;
  EXPECT_NEAR(bus_bandwidth("dgx-a100-cluster", 16, "all_reduce", "ring", kBytes), 192, 0.05 * 192);
  EXPECT_NEAR(bus_bandwidth("hgx-h100-cluster", 16, "all_reduce", "ring", kBytes), 8 * 47, 0.07 * 8 * 47);
}

// Azure ND H100 v5 (edwardsp/azcluster, walkthrough.md). Large messages are too slow: each piece waits for its own
// fence.
TEST(ClusterValidation, SwitchesOfTwoNodesAreAsFastAsMeasured) {
  for (const auto& [bytes, measured] : {std::pair{33554432, 229.3}, std::pair{67108864, 261.7}, {268435456, 385.9}}) {
    const double simulated = bus_bandwidth("hgx-h100-cluster", 16, "all_reduce", "in_switch", bytes);
    EXPECT_NEAR(simulated, measured, 0.12 * measured) << bytes;
  }
}

// nccl issue 2169, and AMP's and Vultr's tables of 8 B200 (docs/validation.md): how far off is what is known to be
// wrong.
TEST(ExchangeValidation, AllToAllAndShiftAreAsFastAsMeasured) {
  const auto expect = [](const char* system, std::uint32_t gpus, const char* kind, std::int64_t bytes, double GBps,
                         double share) {
    EXPECT_NEAR(bus_bandwidth(system, gpus, kind, "auto", bytes) / GBps, 1, share) << kind << " of " << bytes << " B";
  };
  constexpr std::int64_t kMiB = 1 << 20;
  expect("hgx-h100", 4, "all_to_all", 524288000, 334.9, 0.08);
  expect("hgx-b200", 8, "all_to_all", 256 * kMiB, 268.4 * 7 / 8 / 438.8e-3, 0.15);
  expect("hgx-b200", 8, "shift", 64 * kMiB, 67.11 / 793.1e-3, 0.24);      // four thread blocks
  expect("hgx-b200", 8, "shift", 1024 * kMiB, 1073.7 / 1668.5e-3, 0.08);  // all
}

}  // namespace
}  // namespace weft
