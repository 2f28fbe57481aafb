// An all-reduce by one of the movers, beside kernels or alone, and what it cost GPU 0.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include "cli/config/run_config.h"
#include "cli/run/gather.h"
#include "cli/run/machine.h"
#include "cli/run/programs.h"
#include "cli/run/scripts.h"
#include "sim/error.h"

namespace weft::testing {

inline constexpr std::uint32_t kGpus = 4;
inline constexpr std::uint32_t kUnits = 32;
inline constexpr std::int64_t kSize = 4 << 20;
inline constexpr std::int64_t kFlagBytes = 16;

// An all-reduce on GPUs with few units and an L2 far smaller than the message, so that what moves through memory shows
// as HBM bytes.
inline RunConfig all_reduce(const std::string& mover, const std::string& algorithm = "auto", bool registered = false) {
  const Json document{
      {"system", "hgx-h100"},
      {"gpus", kGpus},
      {"gpu", {{"compute_units", kUnits}}},
      {"workload", {{"collective", "all_reduce"}, {"bytes", kSize}}},
      {"all_reduce", {{"algorithm", algorithm}, {"mover", mover}, {"protocol", "Simple"}, {"registered", registered}}}};
  RunConfig config = read_run_config(document, "test.json");
  // As little as can be: what is written soon goes to memory.
  config.system.gpu.hbm.bytes = std::int64_t{4} << 30;
  config.system.gpu.l2.bytes = std::int64_t{config.system.gpu.l2.slices} * config.system.gpu.l2.ways * 128;
  return config;
}

// What a run showed on GPU 0.
struct Measured {
  double sent_bytes = 0;
  double hbm_share = 0;  // HBM bytes of the collective, as a multiple of the message
  double held_units_s = 0;
  double kernel_us = 0;
  KernelLedger kernel;
  std::uint32_t channels = 0;
  std::int64_t end = 0;
};

// `beside`: a kernel of every GPU on a stream of its own; `late`: how much later the last GPU's host comes.
inline Measured measure_here(const RunConfig& config, const std::vector<KernelDemand>& beside, Time late) {
  std::vector<std::string> notes;
  std::vector<Program> programs = make_programs(config, notes);
  for (const KernelDemand& demand : beside) {
    for (Program& program : programs) {
      program.priorities.push_back(0);
      ProgramOp op;
      op.name = "kernel";
      op.stream = StreamId{static_cast<std::uint32_t>(program.priorities.size() - 1)};
      op.kernel = demand;
      if (late > Time(0)) op.host_delay = microseconds(60);  // what can move without the late one has moved
      program.ops.push_back(op);
    }
  }
  programs.back().ops.edit().front().host_delay = late;
  const Scripts scripts(config, programs);
  std::vector<GpuWork> work;
  for (std::size_t g = 0; g < programs.size(); ++g) work.push_back(scripts.work(g));
  Machine machine(config.system, work, scripts.multicast_groups());
  WEFT_CHECK(machine.run(1, {}), "the run came to its end");
  const Gpu& gpu = machine.gpu(0);
  Measured measured;
  std::int64_t sent = 0;
  for (const Machine::Link& link : machine.links()) {
    if (link.name.rfind("gpu0->", 0) == 0) sent += link.statistics->payload_bytes;
  }
  measured.sent_bytes = static_cast<double>(sent);
  const std::int64_t bytes = gpu.statistics().communication_fetched_bytes + gpu.l2().communication_write_back_bytes();
  measured.hbm_share = static_cast<double>(bytes) / kSize;
  measured.held_units_s = gpu.statistics().unit_seconds_communication;
  if (gpu.times().size() > 1) {
    measured.kernel_us = to_microseconds(gpu.clock().to_time(gpu.times()[1].end - gpu.times()[1].start));
    measured.kernel = gpu.ledger(OpId{1});
  }
  measured.channels = scripts.collectives().front().plan.channels;
  measured.end = machine.end().count();
  return measured;
}

// In a child process: an engine runs once a process.
inline Measured measure(const RunConfig& config, const std::vector<KernelDemand>& beside = {}, Time late = Time(0)) {
  static_assert(std::is_trivially_copyable_v<Measured>);
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    // What it throws ends the child, which else would go on with all other tests.
    const Measured measured = [&]() noexcept { return measure_here(config, beside, late); }();
    const bool written = write(ends[1], &measured, sizeof measured) == ssize_t{sizeof measured};
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Measured measured;
  EXPECT_EQ(read(ends[0], &measured, sizeof measured), ssize_t{sizeof measured});
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return measured;
}

}  // namespace weft::testing
