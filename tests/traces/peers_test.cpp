// Sends and receives between two ranks, as importers find them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/traces/imported_kineto.h"
#include "tests/traces/kineto_text.h"
#include "tests/traces/temporary_file.h"
#include "traces/chakra_file.h"
#include "traces/chakra_import.h"
#include "traces/matched_collectives.h"

namespace weft {
namespace {

using testing::correlation;
using ::testing::ElementsAre;
using testing::gpu_args;
using testing::kineto_event;
using testing::kineto_trace;
using testing::kSmallLaunch;
using testing::TemporaryFolder;

constexpr const char* kSendReceive = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";

// What a rank of a pipeline of three does: sends to or receives from `other`. `head`: what the file says of its rank.
std::string pipeline_rank(const std::string& name, const std::string& end, int other, const std::string& head) {
  const std::string arguments =
      fmt::format(R"("Collective name":"{}","In msg nelems":500,"dtype":"Half","Group size":3,)"
                  R"("Process Group Name":"pp","Process Group Ranks":"[0, 1, 2]","{}":{})",
                  name, end, other);
  return kineto_trace({kineto_event("cpu_op", "record_param_comms", 1, "0", "10", arguments),
                       kineto_event("cuda_runtime", "cudaLaunchKernel", 1, "2", "3", correlation(5)),
                       kineto_event("kernel", kSendReceive, 20, "20", "30", gpu_args(20, 5, kSmallLaunch))},
                      head);
}

std::string of_rank(int rank) { return fmt::format(R"("distributedInfo":{{"rank":{},"world_size":3}},)", rank); }

TEST(Peers, KinetosSendsAndReceivesAreOfTheTwoRanks) {
  const TemporaryFolder folder;
  const Trace trace = import_kineto({folder.write("0.json", pipeline_rank("send", "Dst Rank", 2, of_rank(0))),
                                     folder.write("2.json", pipeline_rank("recv", "Src Rank", 0, of_rank(2)))});
  for (const TraceRank& rank : trace.ranks) {
    const TraceCollective& c = *rank.ops.at(0).collective;
    EXPECT_EQ(c.kind, CollectiveKind::send_receive);
    EXPECT_THAT(c.group_ranks, ElementsAre(0u, 2u));
    EXPECT_EQ(c.group_size, 2u);
    EXPECT_EQ(c.elements, 500);
    EXPECT_EQ(c.type, DataType::fp16);
  }
  EXPECT_EQ(match_collectives(trace).matched.size(), 1u);
}

// "Dst Rank" is a rank of the run, not a place in the group (PyTorch's saveNcclMeta).
TEST(Peers, KinetosPeersAreNumberedInTheRun) {
  const TemporaryFolder folder;
  const std::string text = pipeline_rank("send", "Dst Rank", 2, of_rank(0));
  const auto import_with = [&](const std::string& ranks) {
    std::string other = text;
    other.replace(other.find("\"[0, 1, 2]\""), 11, ranks);
    other.replace(other.find("Group size\":3"), 13, "Group size\":2");
    return import_kineto({folder.write("0.json", other)}).ranks.at(0).ops.at(0).collective.value();
  };
  EXPECT_THAT(import_with("\"[0, 2]\"").group_ranks, ElementsAre(0u, 2u));
  EXPECT_THAT(import_with("\"[0, ..., 2]\"").group_ranks, ElementsAre(0u, 2u));
  EXPECT_EQ(import_with("\"[0, 1]\"").kind, CollectiveKind::all_to_all);  // who that is, nothing tells
}

// batch_isend_irecv(): the group's kernel is launched behind its sends and receives, in a range that lasts for longer.
// The stream of communication waits in the first of them, and the next kernel for what came.
std::vector<std::string> batch_of(const std::vector<std::pair<std::string, int>>& peers,
                                  const std::string& kernel = kSendReceive, int received = 300) {
  std::vector<std::string> events;
  int at = 10;
  for (const auto& [name, peer] : peers) {
    const std::string number = std::to_string(at);
    events.push_back(kineto_event("cpu_op", "c10d::" + name, 1, number, "8"));
    events.push_back(kineto_event(
        "cpu_op", "record_param_comms", 1, std::to_string(at + 1), "6",
        fmt::format(R"("Collective name":"{}","In msg nelems":{},"dtype":"Half","Group size":3,)"
                    R"("Process Group Name":"pp","Process Group Ranks":"[0, 1, 2]","{}":{})",
                    name, name == "send" ? 500 : received, name == "send" ? "Dst Rank" : "Src Rank", peer)));
    events.push_back(
        kineto_event("cuda_runtime", "cudaStreamWaitEvent", 1, std::to_string(at + 2), "1", correlation(at)));
    at += 10;
  }
  events.push_back(kineto_event("user_annotation", "nccl:coalesced", 1, "60", "100"));
  events.push_back(kineto_event("cuda_runtime", "cudaLaunchKernelExC", 1, "62", "3", correlation(62)));
  events.push_back(kineto_event("kernel", kernel, 20, "80", "30", gpu_args(20, 62, kSmallLaunch)));
  events.push_back(kineto_event("cuda_runtime", "cudaStreamWaitEvent", 1, "100", "1", correlation(100)));
  events.push_back(kineto_event("cuda_runtime", "cudaLaunchKernel", 1, "102", "3", correlation(102)));
  events.push_back(kineto_event("kernel", "gemm", 7, "112", "30", gpu_args(7, 102, kSmallLaunch)));
  return events;
}

TEST(Peers, KinetosBatchesAreOneKernel) {
  const TemporaryFolder folder;
  const auto import = [&](const std::vector<std::pair<std::string, int>>& peers) {
    return import_kineto({folder.write("1.json", kineto_trace(batch_of(peers), of_rank(1)))}).ranks.at(0).ops;
  };
  const std::vector<TraceOp> pair = import({{"send", 2}, {"recv", 2}});
  EXPECT_EQ(pair.at(0).collective->kind, CollectiveKind::all_to_all);
  EXPECT_THAT(pair[0].collective->group_ranks, ElementsAre(1u, 2u));
  EXPECT_EQ(pair[0].collective->elements, 1000);  // of which an all-to-all keeps a half
  EXPECT_EQ(pair[0].collective->type, DataType::fp16);
  EXPECT_THAT(pair.at(1).waits, ElementsAre(0u));
  EXPECT_EQ(import({{"recv", 0}}).at(0).collective->elements, 300);
  const auto rccl = import_kineto(
      {folder.write("1.json", kineto_trace(batch_of({{"send", 2}}, "ncclDevKernel_Generic_4(x)"), of_rank(1)))});
  EXPECT_EQ(rccl.ranks.at(0).ops.at(0).collective->kind, CollectiveKind::send_receive);
  const std::vector<TraceOp> several = import({{"send", 2}, {"recv", 0}, {"send", 0}});
  EXPECT_EQ(several.at(0).collective->kind, CollectiveKind::all_to_all);
  EXPECT_EQ(several[0].collective->elements, 1000);
  EXPECT_EQ(several[0].collective->group_name, "pp");
}

TEST(Peers, KinetosBatchesToOneRankAndFromAnotherAreShifts) {
  const TemporaryFolder folder;
  const auto import = [&](const std::vector<std::pair<std::string, int>>& peers) {
    const auto file = folder.write("1.json", kineto_trace(batch_of(peers, kSendReceive, 500), of_rank(1)));
    return import_kineto({file}).ranks.at(0).ops.at(0).collective.value();
  };
  const TraceCollective up = import({{"send", 2}, {"recv", 0}});
  EXPECT_EQ(up.kind, CollectiveKind::shift);
  EXPECT_EQ(up.distance, 1u);
  EXPECT_EQ(up.first, std::nullopt);  // of a middle rank, nothing tells where the others begin
  EXPECT_THAT(up.group_ranks, ElementsAre(0u, 1u, 2u));
  EXPECT_EQ(up.elements, 500);
  EXPECT_EQ(import({{"recv", 2}, {"send", 0}}).distance, 2u);
  const TraceCollective both = import({{"send", 2}, {"recv", 2}});
  EXPECT_EQ(both.kind, CollectiveKind::shift);
  EXPECT_THAT(both.group_ranks, ElementsAre(1u, 2u));
}

// All three stages: the first one sends and the last one receives, in kernels of their own.
TEST(Peers, KinetosPipelinesAreShiftsThatBegin) {
  const TemporaryFolder folder;
  const auto write = [&](int rank, const std::vector<std::pair<std::string, int>>& peers) {
    return folder.write(std::to_string(rank) + ".json",
                        kineto_trace(batch_of(peers, kSendReceive, 500), of_rank(rank)));
  };
  const Trace trace =
      import_kineto({write(0, {{"send", 1}}), write(1, {{"recv", 0}, {"send", 2}}), write(2, {{"recv", 1}})});
  for (const TraceRank& rank : trace.ranks) {
    const TraceCollective& c = *rank.ops.at(0).collective;
    EXPECT_EQ(c.kind, CollectiveKind::shift);
    EXPECT_THAT(c.group_ranks, ElementsAre(0u, 1u, 2u));
    EXPECT_EQ(c.distance, 1u);
    EXPECT_EQ(c.first, 0u);
    EXPECT_EQ(c.elements, 500);
  }
  EXPECT_EQ(match_collectives(trace).matched.size(), 1u);
}

TEST(Peers, WithoutARankOfItsOwnAFileHasAllToAlls) {
  const TemporaryFolder folder;
  const Trace trace = import_kineto({folder.write("0.json", pipeline_rank("send", "Dst Rank", 2, ""))});
  EXPECT_EQ(trace.ranks.at(0).ops.at(0).collective->kind, CollectiveKind::all_to_all);
  EXPECT_THAT(trace.ranks[0].ops[0].collective->group_ranks, ElementsAre(0u, 1u, 2u));
}

// Of rank 0, which sends to rank 1, and of that one; named by the rank with `before` and `behind`.
std::vector<std::filesystem::path> chakra_pair(const TemporaryFolder& folder, const std::string& before,
                                               const std::string& behind) {
  std::vector<std::filesystem::path> files;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    ChakraNode node;
    node.id = 1;
    node.name = rank == 0 ? "SEND" : "RECV";
    node.type = rank == 0 ? ChakraType::send : ChakraType::receive;
    node.duration_us = 5;
    node.attributes.set("is_cpu_op", false);
    node.attributes.set("comm_size", std::int64_t{4096});
    node.attributes.set("comm_src", std::int64_t{0});
    node.attributes.set("comm_dst", std::int64_t{1});
    ChakraFile file;
    file.nodes = {node};
    files.push_back(folder.file(before + std::to_string(rank) + behind));
    write_chakra(file, files.back());
  }
  return files;
}

TEST(Peers, ChakrasSendsAndReceivesNameTheOtherEnd) {
  const TemporaryFolder folder;
  std::vector<std::string> notes;
  const Trace trace = import_chakra(chakra_pair(folder, "", ".et"), notes);
  for (const TraceRank& rank : trace.ranks) {
    EXPECT_EQ(rank.ops.at(0).collective->kind, CollectiveKind::send_receive);
    EXPECT_THAT(rank.ops[0].collective->group_ranks, ElementsAre(0u, 1u));
  }
}

// A shell sorts NAME.10.et before NAME.2.et.
TEST(Peers, ChakrasFilesTellTheirRanksByName) {
  const TemporaryFolder folder;
  const auto names_in_order_of_ranks = [](const std::vector<std::filesystem::path>& files) {
    std::vector<std::string> notes;
    std::vector<std::string> names;
    for (const TraceRank& rank : import_chakra(files, notes).ranks) names.push_back(rank.ops.at(0).name);
    return names;
  };
  const auto named = chakra_pair(folder, "run.", ".et");
  EXPECT_THAT(names_in_order_of_ranks({named[1], named[0]}), ElementsAre("SEND", "RECV"));
  const auto not_all = chakra_pair(folder, "run", ".et");
  EXPECT_THAT(names_in_order_of_ranks({named[1], not_all[0]}), ElementsAre("RECV", "SEND"));  // as given

  std::filesystem::rename(named[0], folder.file("run.10.et"));
  std::filesystem::rename(named[1], folder.file("run.2.et"));
  std::vector<std::string> notes;
  const Trace some = import_chakra({folder.file("run.10.et"), folder.file("run.2.et")}, notes);
  EXPECT_EQ(some.world_size, 11u);
  EXPECT_EQ(some.ranks.at(0).rank, 2u);
  EXPECT_EQ(some.ranks.at(1).rank, 10u);
}

}  // namespace
}  // namespace weft
