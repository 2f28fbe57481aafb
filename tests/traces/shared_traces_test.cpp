// Against real traces beside the source tree (../shared/traces); skipped where they are not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "tests/traces/imported_kineto.h"
#include "tests/traces/temporary_file.h"
#include "traces/execution_import.h"
#include "traces/replay_graph.h"
#include "traces/trace_file.h"
#include "traces/trace_info.h"

namespace weft {
namespace {

std::filesystem::path kineto_folder() { return std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/traces/kineto"; }

#define SKIP_WITHOUT(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "reference input " << (path) << " is not there"

struct Expected {
  const char* file;
  std::uint32_t world, rank, kernels, collectives, copies, iterations;
};

class KinetoValidation : public ::testing::TestWithParam<Expected> {};

// Counted in the files with another program.
TEST_P(KinetoValidation, ImportsTheWholeFile) {
  const auto file = kineto_folder() / GetParam().file;
  SKIP_WITHOUT(file);
  const Trace trace = import_kineto({file});
  const Json info = trace_info_json(trace);
  EXPECT_EQ(trace.world_size, GetParam().world);
  EXPECT_EQ(trace.ranks[0].rank, GetParam().rank);
  EXPECT_EQ(info["kernels"], GetParam().kernels);
  EXPECT_EQ(info["collectives"], GetParam().collectives);
  EXPECT_EQ(info["copies"], GetParam().copies);
  EXPECT_EQ(info["iterations"], GetParam().iterations);
}

INSTANTIATE_TEST_SUITE_P(All, KinetoValidation,
                         ::testing::Values(Expected{"hta_nccl_data.json.gz", 2, 0, 2700, 21, 960, 3},
                                           Expected{"hta_v100_rank1of2.json.gz", 2, 1, 9876, 64, 4856, 6},
                                           Expected{"hta_a100_alexnet.json.gz", 1, 0, 79, 0, 16, 1},
                                           Expected{"hta_event_sync_multi_stream.json.gz", 1, 0, 3, 0, 0, 1},
                                           Expected{"hta_simple_add.json.gz", 1, 0, 4, 0, 0, 1},
                                           Expected{"hta_mi250_minitoy.json.gz", 1, 0, 14, 0, 2, 1},
                                           Expected{"tracelens_mi300x_resnet.json.gz", 8, 0, 2995, 17, 550, 3}));

std::vector<std::filesystem::path> eight_ranks(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (int rank = 0; rank < 8; ++rank) files.push_back(folder / ("rank" + std::to_string(rank) + ".json.gz"));
  return files;
}

TEST(KinetoRunValidation, ImportsAllRanksOfDlrm) {
  const auto folder = kineto_folder() / "param_dlrm_v100x8";
  SKIP_WITHOUT(folder);
  const Json info = trace_info_json(import_kineto(eight_ranks(folder)));
  EXPECT_EQ(info["ranks"], 8);
  for (const Json& rank : info["per_rank"]) EXPECT_EQ(rank["collectives"], 8);
  // ../shared/traces/INDEX.md: starts spread by 125 to 7624 us, ends by 1 to 7 us.
  const Json& together = info["ranks_together"];
  EXPECT_EQ(together["matched"], 8);
  EXPECT_EQ(together["unmatched"], 0);
  EXPECT_NEAR(together["start_spread_s"]["min"].get<double>(), 125e-6, 1e-9);
  EXPECT_NEAR(together["start_spread_s"]["max"].get<double>(), 7624e-6, 1e-9);
  EXPECT_NEAR(together["end_spread_s"]["min"].get<double>(), 1e-6, 1e-9);
  EXPECT_NEAR(together["end_spread_s"]["max"].get<double>(), 7e-6, 1e-9);
}

TEST(KinetoRunValidation, ExecutionTracesAddSizesAndWaits) {
  const auto folder = kineto_folder() / "param_dlrm_v100x8";
  const auto execution = kineto_folder() / "../pytorch_et/param_dlrm_v100x8";
  SKIP_WITHOUT(execution);
  std::vector<std::filesystem::path> files = eight_ranks(folder);
  for (const auto& file : eight_ranks(execution)) files.push_back(file);
  std::vector<std::string> notes;
  const Trace joined = import_execution_traces(files, notes);
  const Trace alone = import_kineto(eight_ranks(folder));
  ASSERT_EQ(notes.size(), 8u);
  for (const std::string& note : notes) EXPECT_NE(note.find(": 1672 of 1673 operators"), std::string::npos) << note;
  const auto count = [](const Trace& trace, std::size_t rank) {
    std::pair<std::size_t, std::size_t> sized_and_waits;
    for (const TraceOp& op : trace.ranks.at(rank).ops) {
      sized_and_waits.first += op.launched_by ? 1 : 0;
      sized_and_waits.second += op.waits.size();
    }
    return sized_and_waits;
  };
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(count(joined, rank).first, count(alone, rank).first + 5);
    // What reads and writes of tensors tell of streams that compute was inferred from the calls already.
    EXPECT_EQ(count(joined, rank).second, count(alone, rank).second);
    for (std::size_t i = 0; i < alone.ranks[rank].ops.size(); ++i)
      EXPECT_EQ(joined.ranks[rank].ops[i].waits, alone.ranks[rank].ops[i].waits);
  }
}

TEST(KinetoRunValidation, ImportsAllRanksOfMegatron) {
  const auto folder = kineto_folder() / "astrasim_megatron_tp8_a100";
  SKIP_WITHOUT(folder);
  const Trace trace = import_kineto(eight_ranks(folder));
  const Json info = trace_info_json(trace);
  EXPECT_EQ(info["ranks"], 8);
  EXPECT_EQ(info["communication_hidden"], 0.0);
  for (const Json& rank : info["per_rank"]) {
    EXPECT_EQ(rank["kernels"], 690);
    EXPECT_EQ(rank["collectives"], 84);
  }
  // Ranks meet: collectives end together although they start apart. INDEX.md: minima of 50 ms, medians of 484 ms.
  const Json& together = info["ranks_together"];
  EXPECT_EQ(together["matched"], 84);
  EXPECT_LT(together["end_spread_s"]["max"].get<double>(), 100e-6);
  EXPECT_NEAR(together["shortest_s"].get<double>(), 50.1e-3, 0.1e-3);
  EXPECT_NEAR(together["median_s"].get<double>(), 484.4e-3, 0.1e-3);
}

class MainTraceValidation : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto file = kineto_folder() / "hta_nccl_data.json.gz";
    SKIP_WITHOUT(file);
    trace_ = import_kineto({file});
  }
  Trace trace_;
};

TEST_F(MainTraceValidation, HasFiveBucketsAnIteration) {
  const Json info = trace_info_json(trace_);
  ASSERT_EQ(info["per_iteration"].size(), 3u);
  for (const Json& iteration : info["per_iteration"]) {
    EXPECT_EQ(iteration["collectives_by_kind"]["all_reduce"]["count"], 5);
    EXPECT_EQ(iteration["collectives_by_kind"]["all_reduce"]["elements"], 25'557'032);
    EXPECT_EQ(iteration["kernels"], 900);
  }
  EXPECT_EQ(info["per_rank"][0]["streams"], Json::parse("[7,40]"));
}

// ../shared/reference/overlap.json, same method.
TEST_F(MainTraceValidation, OverlapsAsInTheReferenceStudy) {
  const Json info = trace_info_json(trace_);
  EXPECT_NEAR(info["communication_hidden"].get<double>(), 0.156, 0.0005);
  EXPECT_NEAR(info["compute_under_communication"].get<double>(), 0.063, 0.0005);
  EXPECT_NEAR(info["slowdown_at_equal_positions"].get<double>(), 1.22, 0.005);
  EXPECT_EQ(info["positions"], 29);
  EXPECT_EQ(info["positions_slower"], 25);
}

TEST_F(MainTraceValidation, EveryCollectiveWaitsForGradientsAndIsWaitedFor) {
  const TraceRank& rank = trace_.ranks[0];
  std::set<std::uint32_t> waited;
  for (const TraceOp& op : rank.ops) waited.insert(op.waits.begin(), op.waits.end());
  for (std::uint32_t i = 0; i < rank.ops.size(); ++i) {
    if (rank.ops[i].kind != TraceOpKind::collective) continue;
    EXPECT_EQ(rank.ops[i].waits.size(), 1u) << i;
    EXPECT_TRUE(waited.contains(i)) << i;
  }
}

TEST_F(MainTraceValidation, EveryOperationHasAPhase) {
  for (const TraceOp& op : trace_.ranks[0].ops) {
    if (op.kind == TraceOpKind::collective && op.collective->kind == CollectiveKind::all_reduce) {
      EXPECT_EQ(op.phase, TrainingPhase::backward);
    }
    EXPECT_TRUE(!op.iteration || op.phase != TrainingPhase::other) << op.name;
  }
}

TEST_F(MainTraceValidation, BecomesAGraphWithTimesAlone) {
  const Graph graph = graph_from_trace(trace_, 0);
  EXPECT_EQ(graph.nodes.size(), 3774u);
  std::size_t kernels = 0;
  std::size_t without = 0;
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::kernel) continue;
    ++kernels;
    if (!node.recorded->alone) ++without;
  }
  EXPECT_EQ(kernels, 3753u);  // 2679 kernels, 960 copies and 114 memsets
  EXPECT_LT(without, kernels / 100);
  double footprint = 0;
  for (const Tensor& tensor : graph.tensors) footprint += static_cast<double>(tensor.bytes.count());
  EXPECT_LT(footprint, 10e9);
}

TEST_F(MainTraceValidation, SurvivesTheRoundTrip) {
  const testing::TemporaryFolder folder;
  write_trace(trace_, folder.file("a.json.gz"));
  const Trace read = read_trace(folder.file("a.json.gz"));
  write_trace(read, folder.file("b.json.gz"));
  EXPECT_EQ(testing::content_of(folder.file("a.json.gz")), testing::content_of(folder.file("b.json.gz")));
  EXPECT_EQ(trace_info_json(read), trace_info_json(trace_));
}

TEST(V100Validation, OverlapsAsInTheReferenceStudy) {
  const auto file = kineto_folder() / "hta_v100_rank1of2.json.gz";
  SKIP_WITHOUT(file);
  const Json info = trace_info_json(import_kineto({file}));
  EXPECT_NEAR(info["communication_hidden"].get<double>(), 0.708, 0.0005);
  EXPECT_NEAR(info["compute_under_communication"].get<double>(), 0.325, 0.0005);
  EXPECT_NEAR(info["slowdown_at_equal_positions"].get<double>(), 1.07, 0.005);
  EXPECT_EQ(info["positions"], 57);
}

// Recorded with sizes: elementwise kernels, norms, reductions and products outside of fused functions have theirs.
TEST(V100Validation, DerivesDemandsFromTheInputsOfOperators) {
  const auto file = kineto_folder() / "hta_v100_rank1of2.json.gz";
  SKIP_WITHOUT(file);
  const Graph graph = graph_from_trace(import_kineto({file}), 0);
  EXPECT_GT(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                          [](const Node& node) {
                            return node.kind == NodeKind::kernel && node.kernel.origin == DemandOrigin::shapes;
                          }),
            4000);
}

TEST(Mi300xValidation, OverlapsAsInTheReferenceStudy) {
  const auto file = kineto_folder() / "tracelens_mi300x_resnet.json.gz";
  SKIP_WITHOUT(file);
  const Trace trace = import_kineto({file});
  const Json info = trace_info_json(trace);
  EXPECT_NEAR(info["communication_hidden"].get<double>(), 0.222, 0.0005);
  EXPECT_NEAR(info["compute_under_communication"].get<double>(), 0.617, 0.0005);
  EXPECT_EQ(graph_from_trace(trace, 0).iterations, 3u);
}

// Three streams: the kernel of stream 24 waits, by event, for the one of stream 20; stream 28 waits for none.
TEST(EventValidation, JoinsStreamsByTheirEvents) {
  const auto file = kineto_folder() / "hta_event_sync_multi_stream.json.gz";
  SKIP_WITHOUT(file);
  const Trace trace = import_kineto({file});
  const std::vector<TraceOp>& ops = trace.ranks[0].ops;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  // streams
  for (const TraceOp& op : ops)
    if (op.kind != TraceOpKind::host_wait)
      for (const std::uint32_t wait : op.waits) edges.emplace_back(ops[wait].stream, op.stream);
  ASSERT_EQ(edges.size(), 1u);
  EXPECT_EQ(edges[0], (std::pair<std::uint32_t, std::uint32_t>{20, 24}));
}

}  // namespace
}  // namespace weft
