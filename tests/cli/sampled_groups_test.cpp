// Collectives of some GPUs: who stands for whom where each GPU is in other groups than the first one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/sampled/symmetry.h"
#include "tests/cli/both_fidelities.h"

namespace weft {
namespace {

using testing::HasSubstr;

// Groups that split a sample, and others for the gradients, which switches sum: each GPU is in other groups than GPU 0.
TEST(SampledGroups, OneGpuStandsForAllInGroupsOfSome) {
  const auto [cycle, sampled] = run_both(R"({"system": {"base": "hgx-h100", "gpu": {"compute_units": 24}}, "gpus": 8,
    "workload": {"model": "attention", "sequence": 512, "hidden": 256, "heads": 4, "batch": 2},
    "scheme": {"name": "megatron", "sample_gpus": 4}, "all_reduce": {"algorithm": "in_switch", "channels": 4}})");
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("One GPU stands for all 8"));
  for (const char* of : {"time_s", "backward_s", "communication_s"}) {
    EXPECT_NEAR(iteration(sampled, of) / iteration(cycle, of), 1, 0.04) << of;
  }
  ASSERT_EQ(sampled.at("collectives").size(), cycle.at("collectives").size());
  std::size_t of_some = 0;
  for (const Json& collective : sampled.at("collectives")) of_some += collective.at("ranks") < 8 ? 1 : 0;
  EXPECT_GT(of_some, 0U);
}

// Two nodes of eight: heads are exchanged within each, blocks go from place to place between them.
constexpr const char* kRingsOfNodes = R"({"system": {"base": "hgx-h100-cluster", "gpu": {"compute_units": 24}},
  "gpus": 16, "workload": {"model": "attention", "sequence": 512, "hidden": 256, "heads": 8, "causal": true},
  "scheme": {"name": "ulysses_ring", "split": "striped"}})";

TEST(SampledGroups, OneGpuStandsForThoseOfNodesAndOfPlacesInThem) {
  const auto [cycle, sampled] = run_both(kRingsOfNodes);
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("One GPU stands for all 16"));
  for (const char* of : {"time_s", "communication_s"}) {
    EXPECT_NEAR(iteration(sampled, of) / iteration(cycle, of), 1, 0.04) << of;
  }
  const auto bytes_of = [](const Json& result, const std::string& name) {
    double sum = 0;
    for (const Json& link : result.at("links")) {
      if (link.at("name").get<std::string>().find(name) != std::string::npos) sum += link.at("bytes").get<double>();
    }
    return sum;
  };
  for (const char* name : {"gpu13->", "nic"}) {
    EXPECT_GT(bytes_of(cycle, name), 0) << name;
    EXPECT_NEAR(bytes_of(sampled, name) / bytes_of(cycle, name), 1, 0.03) << name;
  }
}

// Weights are split in a node; what a GPU has of them it shares with those of its place. (The sum of biases goes by as
// many channels as there are places, for which few units have no room.)
TEST(SampledGroups, GradientsOfWhatPlacesShareAreSummedByOne) {
  const auto [cycle, sampled] = run_both(R"({"system": {"base": "hgx-h100-cluster", "gpu": {"compute_units": 48}},
    "gpus": 16, "workload": {"model": "attention", "sequence": 512, "hidden": 256, "heads": 8, "batch": 2},
    "scheme": {"name": "megatron", "sample_gpus": 8}})");
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("One GPU stands for all 16"));
  for (const char* of : {"time_s", "backward_s"}) {
    EXPECT_NEAR(iteration(sampled, of) / iteration(cycle, of), 1, 0.04) << of;
  }
}

TEST(SampledGroups, GroupsAcrossNodesOfOtherPlacesAreSimulatedOneByOne) {
  const auto why_not = [](const std::string& text) {
    const RunConfig config = config_of(text);
    return FoldedMachine(config, programs_of(config)).why_not();
  };
  const std::string config = kRingsOfNodes;
  EXPECT_EQ(why_not(config), "");
  const auto with = [&](const std::string& scheme) {
    return std::string(config).replace(config.find("\"name\""), 0, scheme + ", ");
  };
  EXPECT_THAT(why_not(with(R"("ulysses_gpus": 4)")), HasSubstr("neither of one node nor of one place in all nodes"));
  EXPECT_EQ(why_not(with(R"("ulysses_gpus": 2)")), why_not(with(R"("ulysses_gpus": 4)")));
  // What keeps one GPU from standing for all is said, not that a whole node cannot either.
  const std::string by_tree = std::string(config).insert(config.rfind('}'), R"(, "all_reduce": {"algorithm": "tree"})");
  EXPECT_THAT(why_not(by_tree), HasSubstr("do different things by tree"));
}

// The first GPU is in groups of its node, others are not.
TEST(SampledGroups, EachGpuMustBeInGroupsOfTheSameKind) {
  const RunConfig config = config_of(kRingsOfNodes);
  std::vector<Program> programs = programs_of(config);
  for (ProgramOp& op : programs[9].ops.edit()) {
    if (op.kind == ProgramOpKind::collective && op.collective.group.size() == 8) {
      op.collective.group = GpuGroup::first(9);
      break;
    }
  }
  EXPECT_THAT(FoldedMachine(config, programs).why_not(), HasSubstr("neither of one node"));
}

// A ring of ranks over nodes of four: its GPUs go through it apart from each other, at the pace of NICs.
std::string ring_over_nodes(int gpus) {
  return fmt::format(R"({{"system": {{"base": "hgx-h100-cluster", "max_gpus": 64, "gpu": {{"compute_units": 24}},
    "network": {{"cluster": {{"gpus_per_node": 4, "nics_per_node": 4}}}}}}, "gpus": {},
    "workload": {{"model": "attention", "sequence": {}, "hidden": 512, "heads": 4, "causal": true}},
    "scheme": {{"name": "ring_attention", "split": "striped"}}}})",
                     gpus, 256 * gpus);
}

// Who is through goes on: behind a root, and over nodes, where a NIC brings some their message later than NVLink
// others.
TEST(SampledGroups, UnevenCollectivesInARowOverlap) {
  constexpr const char* kNodes = R"("system": {"base": "hgx-h100-cluster", "max_gpus": 8, "network": {"cluster":
    {"gpus_per_node": 4, "nics_per_node": 4, "tree": {"radix": 16}}}}, "gpus": 8)";
  constexpr const char* kNode = R"("system": "hgx-h100", "gpus": 4)";
  struct Case {
    const char *system, *kind;
    std::int64_t bytes;
  };
  for (const Case& one : {Case{kNodes, "shift", 1 << 20}, Case{kNode, "broadcast", 1 << 18},
                          Case{kNode, "reduce", 1 << 18}, Case{kNode, "scatter", 1 << 18}}) {
    SCOPED_TRACE(one.kind);
    const Both both =
        run_both(fmt::format(R"({{{}, "iterations": 4, "workload": {{"collective": "{}", "bytes": {}}}}})", one.system,
                             one.kind, one.bytes));
    const Json &cycle = both.cycle.at("collectives"), &sampled = both.sampled.at("collectives");
    const double whole = cycle.back().at("end_s").get<double>();
    ASSERT_EQ(sampled.size(), cycle.size());
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      EXPECT_NEAR(sampled.at(i).at("end_s").get<double>(), cycle.at(i).at("end_s").get<double>(), 0.02 * whole) << i;
    }
    const Json& first = cycle.front();
    EXPECT_LT(whole, 0.9 * 4 * (first.at("end_s").get<double>() - first.at("start_s").get<double>()));
  }
}

TEST(SampledGroups, StepsOfALongRingAreLeftOutOnceTheyTakeTheSame) {
  const auto [cycle, sampled] = run_both(ring_over_nodes(16));
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("8 GPUs stand for all 16"));
  EXPECT_THAT(sampled.at("notes").dump(), HasSubstr("kernels of other GPUs than GPU 0"));
  // Kernels beside it are the first GPU's, not the mean of all, which get their blocks otherwise.
  for (const char* of : {"time_s", "communication_s"}) {
    EXPECT_NEAR(iteration(sampled, of) / iteration(cycle, of), 1, 0.03) << of;
  }
  const Json twice = run_one(ring_over_nodes(32), "sampled");
  // Twice the steps of the same kernels: 3749 us in cycle. Each simulated, 1.06 times the transactions.
  EXPECT_NEAR(iteration(twice, "time_s"), 3749e-6, 0.035 * 3749e-6);
  const auto transactions = [](const Json& result) {
    return result.at("engine").at("memory_transactions").get<double>();
  };
  EXPECT_LT(transactions(twice), 0.85 * transactions(sampled));
}

}  // namespace
}  // namespace weft
