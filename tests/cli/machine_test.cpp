// Machines of GPUs and switches: what collectives move, the same result every time, and what one GPU of a preset does.
#include "cli/machine.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>

#include "cli/programs.h"
#include "cli/run_config.h"
#include "cli/system_of.h"
#include "network/collective_algorithm.h"
#include "network/group_rings.h"
#include "network/protocol.h"

namespace weft {
namespace {

constexpr std::int64_t kFlagBytes = 16;  // of a flag on a link

// An all-reduce on H100s with few compute units.
RunConfig all_reduce(std::int64_t bytes, const std::string& algorithm, std::uint32_t gpus = 8,
                     const std::string& protocol = "Simple") {
  const Json document{{"system", "hgx-h100"},
                      {"gpus", gpus},
                      {"workload", {{"collective", "all_reduce"}, {"bytes", bytes}}},
                      {"all_reduce", {{"algorithm", algorithm}, {"protocol", protocol}}}};
  RunConfig config = read_run_config(document, "test.json");
  config.system.gpu.compute_units = 24;
  return config;
}

// A configuration's machine, and that it ran to its end.
struct Ran {
  explicit Ran(const RunConfig& config) : programs(make_programs(config, notes)), scripts(config, programs) {
    std::vector<GpuWork> work;
    for (std::size_t g = 0; g < programs.size(); ++g) work.push_back(scripts.work(g));
    machine = std::make_unique<Machine>(config.system, work, scripts.multicast_groups());
    finished = machine->run(config.threads, {});
  }
  // Payload bytes by direction: "gpu3->" is what GPU 3 sends, "->gpu3" what it gets.
  [[nodiscard]] std::map<std::string, std::int64_t> bytes() const {
    std::map<std::string, std::int64_t> sums;
    for (const Machine::Link& link : machine->links()) {
      const std::string name = link.name.substr(0, link.name.find('.'));
      const std::size_t arrow = name.find("->");
      sums[name.substr(0, arrow + 2)] += link.statistics->payload_bytes;
      sums[name.substr(arrow)] += link.statistics->payload_bytes;
    }
    return sums;
  }
  std::vector<std::string> notes;
  std::vector<Program> programs;
  Scripts scripts;
  std::unique_ptr<Machine> machine;
  bool finished = false;
};

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
  const Ran ran(config);
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
  const Ran ran(config);
  ASSERT_TRUE(ran.finished);
  const std::uint32_t channels = ran.scripts.collectives().front().plan.channels;
  EXPECT_EQ(channels, 8U);  // 32 KiB a channel
  // 4 KiB a step and channel, 14 steps, each taken with a flag: no flag says that something has come.
  const std::int64_t expected = channels * 14 * (2 * (4 << 10) + kFlagBytes);
  for (std::uint32_t g = 0; g < 8; ++g) EXPECT_EQ(ran.bytes().at("gpu" + std::to_string(g) + "->"), expected) << g;
}

TEST(MachineFormula, InSwitchMovesTheSizeAndAShare) {
  const Ran ran(all_reduce(kSize, "in_switch"));
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

// The others hear nothing of it.
TEST(MachineFormula, InSwitchOfSomeGpusMovesTheSizeAndTheirShare) {
  RunConfig config = all_reduce(kSize, "in_switch");
  std::get<CollectiveWorkload>(config.workload).groups = {{1, 2, 4, 7}};
  const Ran ran(config);
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
                      {"workload", {{"collective", "all_reduce"}, {"bytes", kSize}}},
                      {"all_reduce", {{"algorithm", "in_switch"}}}};
  RunConfig config = read_run_config(document, "test.json");
  config.system.gpu.compute_units = 24;
  const Ran ran(config);
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
  const Ran ran(config);
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
  const Ran ran(config);
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
  config.system = read_run_config(document, "test.json").system;
  config.system.gpu.compute_units = 24;
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
          const Ran ran(config);
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
  const Ran ran(config);
  ASSERT_TRUE(ran.finished);
  const std::uint32_t channels = ran.scripts.collectives().front().plan.channels;
  for (std::uint32_t g = 0; g < 4; ++g) {
    EXPECT_EQ(ran.bytes().at("gpu" + std::to_string(g) + "->"), ring_sent_bytes(config, 1 << 20, g, channels));
  }
}

TEST(Machine, AGpuThatWaitsForeverIsADeadlock) {
  RunConfig config = all_reduce(1 << 20, "ring", 2);
  std::vector<std::string> notes;
  std::vector<Program> programs = make_programs(config, notes);
  const Scripts scripts(config, programs);
  const Program nothing{.ops = {}, .priorities = {0}, .memory = {}};
  GpuWork idle = scripts.work(1);
  idle.program = &nothing;
  idle.scripts.clear();
  Machine machine(config.system, {scripts.work(0), idle});
  EXPECT_FALSE(machine.run(1, {}));
}

// When the operations of all GPUs began and ended, from a child process: an engine runs once a process.
std::vector<std::int64_t> times_in_child(const RunConfig& config) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::int64_t> times;
    const Ran ran(config);
    for (std::size_t g = 0; g < ran.machine->gpus(); ++g) {
      for (const OpTimes& op : ran.machine->gpu(g).times()) times.insert(times.end(), {op.start, op.end});
    }
    times.push_back(ran.machine->end().count());
    const auto size = static_cast<ssize_t>(times.size() * sizeof times[0]);
    const bool written = write(ends[1], times.data(), static_cast<std::size_t>(size)) == size;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::vector<std::int64_t> times;
  std::int64_t time = 0;
  while (read(ends[0], &time, sizeof time) == static_cast<ssize_t>(sizeof time)) times.push_back(time);
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return times;
}

TEST(Machine, RunsTheSameEveryTimeAndOnAnyNumberOfThreads) {
  for (const char* algorithm : {"ring", "in_switch"}) {
    RunConfig config = all_reduce(1 << 20, algorithm);
    const std::vector<std::int64_t> first = times_in_child(config);
    EXPECT_EQ(first.size(), 8U * 2 + 1);
    EXPECT_EQ(times_in_child(config), first) << algorithm;
    config.threads = 2;
    EXPECT_EQ(times_in_child(config), first) << algorithm;
  }
}

// A step of LL needs no fence and no flag behind the data.
TEST(Machine, LlIsFasterThanSimpleWhereLatencyCounts) {
  const auto end = [](const std::string& protocol) {
    const std::vector<std::int64_t> times = times_in_child(all_reduce(8 << 10, "ring", 4, protocol));
    return times.empty() ? Time(0) : Time(times.back());
  };
  const Time ll = end("LL");
  EXPECT_GT(ll, Time(0));
  EXPECT_GT(end("Simple"), ll + microseconds(6 * 3));  // the fences of six steps
}

TEST(Machine, EveryAlgorithmEndsBehindSwitches) {
  for (const char* algorithm : {"tree", "double_binary_tree", "halving_doubling", "direct"}) {
    for (const char* protocol : {"Simple", "LL"}) {
      const std::vector<std::int64_t> times = times_in_child(all_reduce(100 << 10, algorithm, 8, protocol));
      ASSERT_EQ(times.size(), 8U * 2 + 1) << algorithm << " " << protocol;
      for (const std::int64_t time : times) EXPECT_GE(time, 0) << algorithm << " " << protocol;
    }
  }
}

TEST(MachineFormula, AStreamingKernelOfAnH100ReachesItsMemorysBandwidth) {
  const GpuSpec spec = preset_system("hgx-h100").gpu;
  constexpr std::int64_t kBytes = 96 << 20;
  Program program;
  program.priorities = {0};
  program.ops.resize(1);
  KernelDemand& demand = program.ops.front().kernel;
  demand.shape.grid = {kBytes >> 15, 1, 1};
  demand.shape.block = {512, 1, 1};
  demand.iterations = 8;
  demand.reads = {{.base = 1 << 28, .bytes_per_block = 1 << 15}};
  GpuWork work;
  work.program = &program;
  work.scripts = {nullptr};
  Gpu gpu(GpuId{0}, spec, work, LinkPorts());
  run_alone(gpu);
  ASSERT_TRUE(gpu.done());
  EXPECT_EQ(gpu.l2().hbm_statistics().read_bytes, kBytes);
  const OpTimes& times = gpu.times().front();
  const double taken = to_seconds(gpu.clock().to_time(times.end - times.start));
  const double refresh = to_seconds(spec.hbm.refresh + spec.hbm.row_miss) / to_seconds(spec.hbm.refresh_interval);
  const double expected =
      static_cast<double>(kBytes) / (static_cast<double>(spec.hbm.bandwidth.count()) * (1 - refresh));
  EXPECT_GE(taken, expected);
  EXPECT_LE(taken, expected * 1.05);
}

}  // namespace
}  // namespace weft
