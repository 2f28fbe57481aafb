// Messages of equal shares, by which one GPU stands for all, in place of those that the library cuts unevenly.
#include "cli/sampled/even_share.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/sampled/symmetry.h"
#include "tests/cli/both_fidelities.h"

namespace weft {
namespace {

// By 19200 B, 1 MiB are 55 of the 384 chunks that the ranks could have, and each hop takes as long as such a one does.
TEST(EvenShares, AreLessCertainWhereTheLibrarysPiecesAreLonger) {
  const auto scatter = [](int mebibytes) {
    const RunConfig config = config_of(fmt::format(R"({{"system": "dgx-a100-cluster", "gpus": 16,
        "workload": {{"collective": "all_reduce", "bytes": {}}},
        "all_reduce": {{"algorithm": "ring", "protocol": "LL128"}}}})",
                                                   mebibytes << 20));
    return FoldedMachine(config, programs_of(config)).scatter(0, 1);
  };
  EXPECT_GE(scatter(1), 0.07);
  EXPECT_LT(scatter(32), 0.04);
}

// 12 MiB over eight ranks and 24 channels are 64 KiB a piece, which LL128 cuts in multiples of 18.75 KiB on A100: six
// are 17 % longer, and one is empty. In cycle that takes 5 % longer than equal pieces.
TEST(EvenShares, AreLessCertainWhereRingsWaitForTheLongestPiece) {
  const auto scatter = [](const char* system, const char* protocol) {
    const RunConfig config = config_of(fmt::format(R"({{"system": "{}", "gpus": 8,
        "workload": {{"collective": "all_reduce", "bytes": 12582912}},
        "all_reduce": {{"algorithm": "ring", "protocol": "{}"}}}})",
                                                   system, protocol));
    return FoldedMachine(config, programs_of(config)).scatter(0, 1);
  };
  EXPECT_GE(scatter("dgx-a100", "LL128"), 0.035);
  EXPECT_LT(scatter("dgx-a100", "LL"), 0.01);
  EXPECT_LT(scatter("hgx-h100", "LL128"), 0.01);
}

}  // namespace
}  // namespace weft
