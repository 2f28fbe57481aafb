#include "cli/collective_times.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "cli/machine.h"
#include "cli/programs.h"
#include "sim/error.h"
#include "workloads/address_plan.h"

namespace weft {

namespace {

using Signature = std::tuple<CollectiveKind, std::int64_t, DataType, std::uint32_t>;  // the last: ranks

// Every collective of `wanted` once, on the first GPUs, each after the one before has ended.
std::vector<Program> one_after_another(const std::vector<Signature>& wanted, std::uint32_t gpus) {
  std::vector<Program> programs(gpus);
  for (Program& program : programs) program.priorities = {0};
  std::map<std::uint32_t, std::uint32_t> sequences;  // by size of the group
  for (const auto& [kind, bytes, type, ranks] : wanted) {
    ProgramOp op;
    op.kind = ProgramOpKind::collective;
    op.name = to_string(kind);
    op.collective.kind = kind;
    op.collective.bytes = Bytes(bytes);
    op.collective.type = type;
    op.collective.sequence = sequences[ranks]++;
    op.collective.send_address = op.collective.receive_address = kFirstAddress;
    op.collective.group = GpuGroup::first(ranks);
    for (std::uint32_t gpu = 0; gpu < ranks; ++gpu) {
      programs[gpu].ops.push_back(op);
      ProgramOp wait;
      wait.kind = ProgramOpKind::host_wait;
      wait.waits = {OpId{static_cast<std::uint32_t>(programs[gpu].ops.size() - 1)}};
      programs[gpu].ops.push_back(wait);
    }
  }
  return programs;
}

// On the first GPU: the time of each collective from the start of its kernel to its end.
std::vector<std::int64_t> simulate_times(const RunConfig& config, const std::vector<Program>& programs,
                                         const Scripts& scripts) {
  std::vector<GpuWork> work;
  for (std::size_t g = 0; g < programs.size(); ++g) work.push_back(scripts.work(g));
  Machine machine(config.system, work, scripts.multicast_groups(), {}, scripts.aggregation_groups(), config.seed);
  WEFT_CHECK(machine.run(1, {}), "collectives by themselves do not end");
  std::vector<std::int64_t> times;
  const Gpu& gpu = machine.gpu(0);
  for (std::size_t op = 0; op < programs.front().ops.size(); ++op) {
    if (programs.front().ops[op].kind != ProgramOpKind::collective) continue;
    const OpTimes& t = gpu.times()[op];
    times.push_back((gpu.clock().to_time(t.end) - gpu.clock().to_time(t.start)).count());
  }
  return times;
}

// Runs `work` in a child and returns what it returned, `count` numbers.
template <class Work>
std::vector<std::int64_t> in_child(std::size_t count, Work&& work) {
  std::array<int, 2> pipe_ends{};
  WEFT_CHECK(pipe(pipe_ends.data()) == 0, "no pipe to a child");
  const pid_t child = fork();
  WEFT_CHECK(child >= 0, "no child process");
  const std::size_t bytes = count * sizeof(std::int64_t);
  if (child == 0) {
    int status = 1;
    try {
      const std::vector<std::int64_t> result = work();
      // Shorter than a pipe's buffer or not, the parent reads until the end.
      std::size_t written = 0;
      while (written < bytes) {
        const ssize_t n = write(pipe_ends[1], reinterpret_cast<const char*>(result.data()) + written, bytes - written);
        if (n <= 0) break;
        written += static_cast<std::size_t>(n);
      }
      status = written == bytes ? 0 : 1;
    } catch (const std::exception&) {
      status = 1;
    }
    _exit(status);
  }
  close(pipe_ends[1]);
  std::vector<std::int64_t> result(count);
  std::size_t got = 0;
  while (got < bytes) {
    const ssize_t n = read(pipe_ends[0], reinterpret_cast<char*>(result.data()) + got, bytes - got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  close(pipe_ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  WEFT_CHECK(got == bytes && WIFEXITED(status) && WEXITSTATUS(status) == 0,
             "the process that times collectives failed");
  return result;
}

}  // namespace

std::vector<Time> recorded_collective_times(const Graph& graph, const RunConfig& config) {
  std::vector<Time> times(graph.nodes.size());
  std::vector<Signature> wanted;
  std::uint32_t channels = 0;
  std::uint32_t gpus = 0;
  const auto signature = [&](const CollectiveNode& c) {
    const std::uint32_t recorded = c.group_size != 0 ? c.group_size : std::max(1U, graph.recorded_world);
    return Signature{c.kind, c.bytes.count(), c.type, std::min(recorded, config.system.max_gpus)};
  };
  const auto counts = [&](const Node& node) {
    return node.kind == NodeKind::collective && node.iteration < config.iterations &&
           std::get<3>(signature(node.collective)) > 1 && node.collective.bytes > Bytes();
  };
  for (const Node& node : graph.nodes) {
    if (!counts(node)) continue;
    wanted.push_back(signature(node.collective));
    gpus = std::max(gpus, std::get<3>(wanted.back()));
    channels = std::max(channels, node.collective.channels);
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  if (wanted.empty()) return times;

  RunConfig together = config;
  together.gpus = gpus;
  together.collective = {};
  together.collective.algorithm = AllReduceAlgorithm::ring;
  if (channels > 0) together.system.collectives.ring.channels = channels;
  const std::vector<Program> programs = one_after_another(wanted, gpus);
  const Scripts scripts(together, programs);  // here, so that its errors reach the user
  const std::vector<std::int64_t> found =
      in_child(wanted.size(), [&] { return simulate_times(together, programs, scripts); });
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!counts(graph.nodes[i])) continue;
    const auto at = std::lower_bound(wanted.begin(), wanted.end(), signature(graph.nodes[i].collective));
    times[i] = Time(found[static_cast<std::size_t>(at - wanted.begin())]);
  }
  return times;
}

}  // namespace weft
