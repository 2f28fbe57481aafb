#include "cli/sampled/pace_beside.h"

#include <algorithm>
#include <optional>

#include "sim/error.h"

namespace weft {

namespace {

// Choices, fitted to nothing.
constexpr Time kLongest = microseconds(1000);
constexpr Time kStep = nanoseconds(500);  // how exactly the kernel by itself is looked at
// Operations of the program that runs.
constexpr OpId kCollective{0};
constexpr OpId kKernel{1};

// How far the kernel was, and when; counted from its start.
struct Reached {
  double rounds = 0;  // -1: it ended
  SubCycle time = 0;
};

// Both have come to the GPU.
const HostState kStart{kCollective, 2, {0, 0}, std::nullopt, 0};

// None: it is not under way, or cannot be looked at now.
std::optional<Reached> reached(const Gpu& gpu, OpId kernel, SubCycle now) {
  const OpTimes& times = gpu.times()[kernel.value];
  if (times.end >= 0) return Reached{-1, times.end - times.start};
  std::vector<KernelWork> works;
  if (times.start < 0 || !gpu.working(works) || works.empty() || works.front().done <= 0) return std::nullopt;
  return Reached{works.front().done, now - times.start};
}

// The time by itself that takes it there.
class ByItself {
 public:
  ByItself(const GpuSpec& spec, GpuWork work, const ProgramOp& kernel, const Program& program, const L2Cache& l2)
      : program_{.ops = {}, .priorities = program.priorities, .memory = {}} {
    program_.ops.push_back(kernel);
    work.program = &program_;
    work.scripts = {nullptr};
    work.from = &start_;
    gpu_.emplace(GpuId{0}, spec, work, LinkPorts());
    gpu_->set_l2(l2);
  }
  [[nodiscard]] SubCycle time_to(const Reached& there) {
    while (last_.rounds >= 0 && (there.rounds < 0 || last_.rounds < there.rounds)) {
      const Time next = gpu_->next_activity();
      WEFT_CHECK(next != Time::max(), "a kernel by itself ends");
      gpu_->advance(next + kStep);
      const auto now = reached(*gpu_, OpId{0}, gpu_->clock().to_subcycles(next + kStep));
      if (!now) continue;
      before_ = last_;
      last_ = *now;
    }
    if (last_.rounds < 0 || last_.rounds <= before_.rounds) return last_.time;
    const double part = (there.rounds - before_.rounds) / (last_.rounds - before_.rounds);
    return before_.time + static_cast<SubCycle>(part * static_cast<double>(last_.time - before_.time));
  }
  [[nodiscard]] std::int64_t memory_transactions() const { return gpu_->statistics().memory_transactions; }

 private:
  Program program_;
  HostState start_{OpId{0}, 1, {0}, std::nullopt, 0};
  std::optional<Gpu> gpu_;
  Reached before_, last_;
};

}  // namespace

ProgramOp at_once(ProgramOp op) {
  op.waits.clear();
  op.host_delay = op.start_delay = Time();
  return op;
}

PaceBeside pace_beside(const RunConfig& config, const FoldedMachine& folded, const Program& program, OpId kernel,
                       OpId collective, const L2Cache& l2) {
  Program both{.ops = {}, .priorities = program.priorities, .memory = {}};
  both.ops.push_back(at_once(program.ops[collective.value]));
  both.ops.push_back(at_once(program.ops[kernel.value]));
  std::vector<GpuWork> works;
  for (std::uint32_t g = 0; g < folded.standing(); ++g) {
    works.push_back(folded.work(g));
    works.back().scripts = {works.back().scripts[collective.value], nullptr};
    works.back().program = &both;
    works.back().from = &kStart;
    works.back().kernels_timed = g > 0;
  }
  const std::unique_ptr<Machine> built = folded.machine(config.system, works);
  Machine& machine = *built;
  machine.set_l2(l2);
  const Gpu& gpu = machine.gpu(0);
  std::optional<Reached> there;
  machine.run_until(config.threads, [&](Time now) {
    const OpTimes& times = gpu.times()[kKernel.value];
    const SubCycle at = gpu.clock().to_subcycles(now);
    const bool over = times.end >= 0 || gpu.times()[kCollective.value].end >= 0 ||
                      (times.start >= 0 && at - times.start >= gpu.clock().to_subcycles(kLongest));
    if (over) there = reached(gpu, kKernel, at);
    return there.has_value();
  });
  WEFT_CHECK(there.has_value(), "a kernel beside a collective goes on");
  ByItself alone(config.system.gpu, works.front(), both.ops[kKernel.value], program, l2);
  PaceBeside found{.ledger = gpu.ledger(kKernel), .simulated = machine.end()};
  found.times_longer =
      static_cast<double>(there->time) / static_cast<double>(std::max<SubCycle>(1, alone.time_to(*there)));
  found.memory_transactions = alone.memory_transactions();
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    found.memory_transactions += machine.gpu(g).statistics().memory_transactions;
  }
  for (const Machine::Link& link : machine.links()) found.packets += link.statistics->packets;
  return found;
}

}  // namespace weft
