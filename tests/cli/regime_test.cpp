// Regimes in bytes, in a file, and by name.
#include <gmock/gmock.h>

#include <fstream>

#include "cli/sampled/regime_memory.h"
#include "sim/error.h"
#include "tests/sim/temporary_folder.h"

namespace weft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Regime sample() {
  Regime regime;
  regime.operations = {{1234567, {.latency = 1.5, .stall = 0.25, .displaced = true}}, {89, {}}};
  regime.operations[1].behind = 55;
  regime.operations[1].began = {-3, 3};
  regime.operations[1].ended = {5, -5};
  regime.gpus = 2;
  regime.apart = {-7, 7};
  regime.hbm_read_bytes = std::int64_t{1} << 40;
  regime.hbm_communication_bytes = 3;
  regime.unit_seconds_compute = 1e-6;
  regime.uncertainty = 77;
  regime.links = {{.payload_bytes = 128, .busy = 5, .queue_high_water = 9}};
  regime.switches = {{.reduced_bytes = 64, .entry_seconds = 0.5, .stalled_by_table = {1, 2, 3}}};
  return regime;
}

void expect_sample(const Regime& regime) {
  EXPECT_EQ(to_bytes(regime), to_bytes(sample()));
  ASSERT_EQ(regime.operations.size(), 2U);
  EXPECT_EQ(regime.operations[0].duration, 1234567);
  EXPECT_EQ(regime.operations[1].behind, 55);
  EXPECT_THAT(regime.operations[1].began, ElementsAre(-3, 3));
  EXPECT_THAT(regime.operations[1].ended, ElementsAre(5, -5));
  EXPECT_THAT(regime.apart, ElementsAre(-7, 7));
  EXPECT_EQ(regime.operations[0].ledger.latency, 1.5);
  EXPECT_TRUE(regime.operations[0].ledger.displaced);
  EXPECT_EQ(regime.links.at(0).queue_high_water, 9);
  EXPECT_EQ(regime.switches.at(0).stalled_by_table, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(Regime, ComesBackFromBytes) { expect_sample(regime_from_bytes(to_bytes(sample()))); }

TEST(Regime, IsOfAsManyGpusAsItSays) {
  Regime regime = sample();
  regime.apart = {1, 2, 3};
  EXPECT_THROW((void)regime_from_bytes(to_bytes(regime)), InternalError);
  regime = sample();
  regime.operations[1].began.pop_back();
  EXPECT_THROW((void)regime_from_bytes(to_bytes(regime)), InternalError);
}

TEST(RegimeMemory, IsThereForTheNextProcess) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "cache" / "regimes.sqlite";
  {
    RegimeMemory memory(file);
    EXPECT_EQ(memory.find("a", 2), nullptr);
    memory.add("a", sample());
    EXPECT_EQ(memory.simulated(), 1);
  }
  RegimeMemory again(file);
  const Regime* found = again.find("a", 2);
  ASSERT_NE(found, nullptr);
  expect_sample(*found);
  EXPECT_EQ(again.find("b", 2), nullptr);
  EXPECT_EQ(again.reused(), 1);
  EXPECT_EQ(again.simulated(), 0);
}

TEST(RegimeMemory, IsNotTakenForWhatItsNumberOfOperationsIsNot) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "regimes.sqlite";
  RegimeMemory(file).add("a", sample());
  RegimeMemory again(file);
  EXPECT_EQ(again.find("a", 3), nullptr);
  EXPECT_EQ(RegimeMemory(file).find("a", 2)->operations.size(), 2U);
}

TEST(RegimeMemory, TellsHowLongThoseAreThatBeginAlike) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "regimes.sqlite";
  {
    RegimeMemory memory(file);
    EXPECT_THAT(memory.lengths("begins"), IsEmpty());
    memory.add("a", sample(), "begins");
    EXPECT_THAT(memory.lengths("begins"), ElementsAre(2));
    memory.add("b", sample());
  }
  RegimeMemory again(file);
  Regime longer = sample();
  longer.operations.emplace_back();
  again.add("c", longer, "begins");
  EXPECT_THAT(again.lengths("begins"), ElementsAre(2, 3));
  EXPECT_THAT(again.lengths("otherwise"), IsEmpty());
}

TEST(RegimeMemory, TwoAtTheSameTimeKeepWhatBothAdd) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "regimes.sqlite";
  {
    RegimeMemory one(file);
    RegimeMemory other(file);
    one.add("a", sample());
    other.add("a", sample());
    other.add("b", sample());
  }
  RegimeMemory again(file);
  EXPECT_NE(again.find("a", 2), nullptr);
  EXPECT_NE(again.find("b", 2), nullptr);
}

TEST(RegimeMemory, DoesWithoutAFileThatIsNone) {
  const TemporaryFolder folder;
  folder.write("regimes.sqlite", std::string(5000, 'x'));
  RegimeMemory memory(folder.path() / "regimes.sqlite");
  EXPECT_EQ(memory.find("a", 2), nullptr);
  memory.add("a", sample());
  EXPECT_NE(memory.find("a", 2), nullptr);
  RegimeMemory nowhere(folder.path() / "regimes.sqlite" / "below" / "a" / "file");
  EXPECT_EQ(nowhere.find("a", 2), nullptr);
}

}  // namespace
}  // namespace weft
