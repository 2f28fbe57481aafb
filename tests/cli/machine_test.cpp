// Machines of GPUs and switches: what collectives move.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "network/collective_algorithm.h"
#include "network/group_rings.h"
#include "network/protocol.h"
#include "tests/cli/ran_machine.h"

namespace weft {
namespace {

constexpr std::int64_t kFlagBytes = 16;  // of a flag on a link

// What a rank of a ring sends: its pieces, a flag with each, and one for each piece it took. Chunks are whole multiples
// of 4 KiB, so that ranks differ by some of them; together they send 2 (N-1) times the message.
std::int64_t ring_sent_bytes(const RunConfig& config, std::int64_t bytes, std::uint32_t rank, std::uint32_t channels) {
  const ProtocolShape shape = protocol_shape(config.system.collectives, CollectiveProtocol::simple, true);
  std::vector<GpuId> group;
  for (std::uint32_t g = 0; g < config.gpus; ++g) group.push_back(GpuId{g});
  const auto orders = rings_of_group(config.system.network, config.gpus, group);
  const auto ring = make_schedule(CollectiveAlgorithm::ring, {.bytes = bytes,
                                                              .ranks = config.gpus,
                                                              .channels = channels,
                                                              .piece_bytes = shape.piece_bytes,
                                                              .pieces_per_chunk = shape.pieces_per_chunk,
                                                              .chunk_unit = shape.chunk_unit,
                                                              .chunk_order = shape.chunk_order,
                                                              .ring_orders = orders});
  std::int64_t sent = 0;
  for (std::uint32_t channel = 0; channel < channels; ++channel) {
    for (std::uint64_t i = 0; i < ring->steps(rank, channel, 0); ++i) {
      const ScheduleStep step = ring->step(rank, channel, 0, i);
      sent += step.send_count * step.bytes + (step.send_count + step.receive_count) * kFlagBytes;
    }
  }
  return sent;
}

constexpr std::int64_t kSize = 4 << 20;

template <std::size_t N>
using Seen = std::array<std::int64_t, N>;

// What `work` returns, from a child process: an engine runs once a process. False when the child fails.
template <class Work, class Seen>
bool in_child(Work work, Seen& seen) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return false;
  const pid_t child = fork();
  if (child == 0) {
    const Seen result = work();
    _exit(write(ends[1], &result, sizeof result) == static_cast<ssize_t>(sizeof result) ? 0 : 1);
  }
  close(ends[1]);
  const bool got = read(ends[0], &seen, sizeof seen) == static_cast<ssize_t>(sizeof seen);
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  return got && status == 0;
}

TEST(MachineFormula, RingMovesTwiceTheSizeLessAShare) {
  const RunConfig config = all_reduce(kSize, "ring");
  const RanMachine ran(config);
  ASSERT_TRUE(ran.finished);
  const auto bytes = ran.bytes();
  const std::uint32_t channels = ran.scripts.collectives().front().plan.channels;
  for (std::uint32_t g = 0; g < 8; ++g) {
    const std::int64_t sent = bytes.at("gpu" + std::to_string(g) + "->");
    EXPECT_EQ(sent, ring_sent_bytes(config, kSize, g, channels)) << g;
    EXPECT_NEAR(static_cast<double>(sent), 2.0 * kSize * 7 / 8, 0.01 * kSize) << g;
  }
  for (std::uint32_t g = 0; g < 8; ++g) {
    const auto got = static_cast<double>(bytes.at("->gpu" + std::to_string(g)));
    EXPECT_NEAR(got, 2.0 * kSize * 7 / 8, 0.01 * kSize) << g;
  }
}

TEST(MachineFormula, LlMovesTwiceWhatSimpleMoves) {
  const RunConfig config = all_reduce(256 << 10, "ring", 8, "LL");
  const RanMachine ran(config);
  ASSERT_TRUE(ran.finished);
  const std::uint32_t channels = ran.scripts.collectives().front().plan.channels;
  EXPECT_EQ(channels, 8U);  // 32 KiB a channel
  // 4 KiB a step and channel, 14 steps, each taken with a flag: no flag says that something has come.
  const std::int64_t expected = channels * 14 * (2 * (4 << 10) + kFlagBytes);
  for (std::uint32_t g = 0; g < 8; ++g) EXPECT_EQ(ran.bytes().at("gpu" + std::to_string(g) + "->"), expected) << g;
}

TEST(MachineFormula, InSwitchMovesTheSizeAndAShare) {
  const RanMachine ran(all_reduce(kSize, "in_switch"));
  ASSERT_TRUE(ran.finished);
  const auto bytes = ran.bytes();
  // Two signals a loop and channel: one of the rank out, those of all ranks in. Pieces are 16 KiB on 16 channels.
  const std::int64_t loops = kSize / (8 * 16 * (16 << 10)) * 16;
  for (std::uint32_t g = 0; g < 8; ++g) {
    EXPECT_EQ(bytes.at("gpu" + std::to_string(g) + "->"), kSize + kSize / 8 + 2 * loops * kFlagBytes) << g;
    EXPECT_EQ(bytes.at("->gpu" + std::to_string(g)), kSize + kSize / 8 + 8 * 2 * loops * kFlagBytes) << g;
  }
  std::int64_t reduced = 0;
  std::int64_t multicast = 0;
  for (std::size_t s = 0; s < ran.machine->switches(); ++s) {
    reduced += ran.machine->switch_at(s).reducer()->statistics().reduced_bytes;
    multicast += ran.machine->switch_at(s).statistics().multicast_bytes;
  }
  EXPECT_EQ(reduced, kSize);
  EXPECT_EQ(multicast, kSize);
}

// NVIDIA/nccl issue 1083: a rank sends its part and gets all, or sends all and gets its part.
TEST(MachineFormula, GathersInTheSwitchMoveTheSizeOneWayAndAShareTheOther) {
  for (const bool gathers : {true, false}) {
    Seen<16> seen{};
    ASSERT_TRUE(in_child(
        [&] {
          RunConfig config = all_reduce(kSize, "in_switch");
          auto& workload = std::get<CollectiveWorkload>(config.workload);
          workload.kind = gathers ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter;
          if (gathers) workload.bytes = Bytes(kSize / 8);
          const RanMachine ran(config);
          const auto bytes = ran.bytes();
          Seen<16> moved{};
          for (std::size_t g = 0; ran.finished && g < 8; ++g) {
            moved[g] = bytes.at("gpu" + std::to_string(g) + "->");
            moved[8 + g] = bytes.at("->gpu" + std::to_string(g));
          }
          return moved;
        },
        seen));
    // Two signals a loop and channel: one of the rank out, those of all ranks in. Pieces are 16 KiB on 16 channels.
    const std::int64_t loops = kSize / (8 * 16 * (16 << 10)) * 16;
    for (std::size_t g = 0; g < 8; ++g) {
      EXPECT_EQ(seen[g], (gathers ? kSize / 8 : kSize) + 2 * loops * kFlagBytes) << g;
      EXPECT_EQ(seen[8 + g], (gathers ? kSize : kSize / 8) + 8 * 2 * loops * kFlagBytes) << g;
    }
  }
}

// The others hear nothing of it.
TEST(MachineFormula, InSwitchOfSomeGpusMovesTheSizeAndTheirShare) {
  RunConfig config = all_reduce(kSize, "in_switch");
  std::get<CollectiveWorkload>(config.workload).groups = {{1, 2, 4, 7}};
  const RanMachine ran(config);
  ASSERT_TRUE(ran.finished);
  const auto bytes = ran.bytes();
  const std::int64_t loops = kSize / (4 * 16 * (32 << 10)) * 16;  // pieces of 32 KiB: two loops of four ranks
  for (const char* member : {"1", "2", "4", "7"}) {
    EXPECT_EQ(bytes.at(std::string("gpu") + member + "->"), kSize + kSize / 4 + 2 * loops * kFlagBytes) << member;
    EXPECT_EQ(bytes.at(std::string("->gpu") + member), kSize + kSize / 4 + 4 * 2 * loops * kFlagBytes) << member;
  }
  for (const char* other : {"0", "3", "5", "6"}) EXPECT_EQ(bytes.at(std::string("->gpu") + other), 0) << other;
}

// Over nodes, each GPU moves in its node what it would there alone, and by its NIC its share of the message: up one of
// the two trees or down the other.
TEST(MachineFormula, InSwitchOverTwoNodesMovesAShareByEachNic) {
  const Json document{{"system", "hgx-h100-cluster"},
                      {"gpus", 16},
                      {"gpu", {{"compute_units", 24}}},
                      {"workload", {{"collective", "all_reduce"}, {"bytes", kSize}}},
                      {"all_reduce", {{"algorithm", "in_switch"}}}};
  const RunConfig config = read_run_config(document, "test.json");
  const RanMachine ran(config);
  ASSERT_TRUE(ran.finished);
  std::map<std::string, std::int64_t> bytes;  // by GPU, to switches and to NICs
  for (const Machine::Link& link : ran.machine->links()) {
    const std::size_t arrow = link.name.find("->");
    bytes[link.name.substr(0, arrow) + (link.name.find("nic") != std::string::npos ? " nic" : " switch")] +=
        link.statistics->payload_bytes;
  }
  const std::int64_t channels = 16;  // one loop of chunks of 32 KiB each
  for (std::uint32_t g = 0; g < 16; ++g) {
    const std::string gpu = "gpu" + std::to_string(g);
    EXPECT_EQ(bytes.at(gpu + " switch"), kSize + kSize / 8 + 2 * channels * kFlagBytes) << gpu;
    // With each piece a flag, and one for each that came.
    EXPECT_EQ(bytes.at(gpu + " nic"), kSize / 8 + 2 * channels * kFlagBytes) << gpu;
  }
}

TEST(Machine, InSwitchWithATableOfOneEntryStallsAndFinishes) {
  RunConfig config = all_reduce(256 << 10, "in_switch", 4);
  config.system.switch_reduce->table_bytes_per_port = config.system.switch_reduce->entry_bytes;
  const RanMachine ran(config);
  EXPECT_TRUE(ran.finished);
  for (std::size_t s = 0; s < ran.machine->switches(); ++s) {
    const ReducerStatistics reducer = ran.machine->switch_at(s).reducer()->statistics();
    EXPECT_GT(reducer.stalled, Time(0));
    EXPECT_EQ(reducer.table_high_water_bytes, config.system.switch_reduce->entry_bytes);
  }
}

TEST(Machine, FullyConnectedGpusNeedNoSwitch) {
  RunConfig config = all_reduce(1 << 20, "ring", 4);
  config.system.network.topology = TopologyKind::fully_connected;
  config.system.network.links_per_gpu = 12;
  config.system.network.switches = 0;
  config.system.switch_reduce.reset();
  const RanMachine ran(config);
  ASSERT_TRUE(ran.finished);
  EXPECT_EQ(ran.machine->switches(), 0U);
  EXPECT_EQ(ran.machine->links().size(), 4U * 3 * 4);
  const std::uint32_t channels = ran.scripts.collectives().front().plan.channels;
  for (std::uint32_t g = 0; g < 4; ++g) {
    EXPECT_EQ(ran.bytes().at("gpu" + std::to_string(g) + "->"), ring_sent_bytes(config, 1 << 20, g, channels));
  }
}

// H100s in another network.
RunConfig routed_all_reduce(const char* network, std::uint32_t gpus = 8) {
  RunConfig config = all_reduce(1 << 20, "ring", gpus);
  Json document{{"system", {{"base", "hgx-h100"}, {"max_gpus", gpus}}}, {"gpus", gpus}};
  document["workload"] = {{"collective", "all_reduce"}, {"bytes", 1 << 20}};
  document["switch_reduce"] = nullptr;
  document["network"] = Json::parse(network);
  document["gpu"]["compute_units"] = 24;
  config.system = read_run_config(document, "test.json").system;
  return config;
}

TEST(MachineFormula, ARingMovesTheSameBytesOverAnyNetwork) {
  const char* networks[] = {
      R"({"topology": "torus", "dimensions": [4, 2], "lanes": 4})",
      R"({"topology": "fat_tree", "tree": {"levels": 2, "radix": 4}, "routing": {"paths": "spray"}})",
      R"({"topology": "hybrid_cube_mesh", "faults": [{"link": "router0->router3", "factor": 0}]})",
      R"({"topology": "switched", "links_per_gpu": 6, "switches": 2, "faults": [{"link": "gpu3->switch1.0", "factor": 0}]})",
      R"({"topology": "switched", "links_per_gpu": 6, "switches": 2, "cluster": {
          "gpus_per_node": 4, "nics_per_node": 4, "nic_link": {"preset": "pcie5"}, "nic_latency_ns": 300,
          "link": {"preset": "infiniband-ndr"}, "switch": {"latency_ns": 150},
          "tree": {"levels": 2, "radix": 4, "rails": true}}})"};
  for (const char* network : networks) {
    const RunConfig config = routed_all_reduce(network);
    std::array<std::int64_t, 9> sent{};
    ASSERT_TRUE(in_child(
        [&] {
          const RanMachine ran(config);
          std::array<std::int64_t, 9> seen{};
          const auto bytes = ran.bytes();
          for (std::uint32_t g = 0; g < 8; ++g) seen[g] = bytes.at("gpu" + std::to_string(g) + "->");
          seen[8] = ran.finished ? ran.scripts.collectives().front().plan.channels : 0;
          return seen;
        },
        sent))
        << network;
    ASSERT_GT(sent[8], 0) << network;
    for (std::uint32_t g = 0; g < 8; ++g) {
      const auto channels = static_cast<std::uint32_t>(sent[8]);
      EXPECT_EQ(sent[g], ring_sent_bytes(config, 1 << 20, g, channels)) << network;
    }
  }
}

TEST(Machine, AReceiverThatReadsMovesTheSameBytes) {
  RunConfig config = all_reduce(1 << 20, "ring", 4);
  config.system.collectives.ring.receiver_reads = true;
  const RanMachine ran(config);
  ASSERT_TRUE(ran.finished);
  const std::uint32_t channels = ran.scripts.collectives().front().plan.channels;
  for (std::uint32_t g = 0; g < 4; ++g) {
    EXPECT_EQ(ran.bytes().at("gpu" + std::to_string(g) + "->"), ring_sent_bytes(config, 1 << 20, g, channels));
  }
}

}  // namespace
}  // namespace weft
