#include "gpu_model/alone.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "sim/error.h"

namespace weft {

namespace {

constexpr double kGoodEnough = 0.004;  // where the search stops: well inside the tolerance
constexpr int kMostTries = 20;
constexpr double kLeastTraffic = 0.8;  // a jump is a wave of blocks at most; no guess of bytes is bent further for one

// One kernel, on an idle GPU whose L2 holds what `l2` holds.
class Trial {
 public:
  Trial(const GpuSpec& gpu, const L2Cache& l2) : spec_(gpu), l2_(l2) {
    program_.priorities = {0};
    program_.ops.resize(1);
    work_.program = &program_;
    work_.scripts = {nullptr};
  }

  Time run(const ProgramOp& op) {
    program_.ops.front() = op;
    program_.ops.front().waits.clear();
    program_.ops.front().stream = StreamId{0};
    program_.ops.front().host_delay = Time(0);
    gpu_.emplace(GpuId{0}, spec_, work_, LinkPorts());
    gpu_->set_l2(l2_);
    run_alone(*gpu_);
    const OpTimes& times = gpu_->times().front();
    return gpu_->clock().to_time(times.end) - gpu_->clock().to_time(times.start);
  }
  [[nodiscard]] const Gpu& gpu() const { return *gpu_; }

 private:
  const GpuSpec& spec_;
  const L2Cache& l2_;
  Program program_;
  GpuWork work_;
  std::optional<Gpu> gpu_;
};

// Kernels of one name, shape and time alone need not be searched for twice.
using Signature = std::tuple<std::string, std::array<std::uint32_t, 3>, std::array<std::uint32_t, 3>>;

Signature signature(const ProgramOp& op) { return {op.name, op.kernel.shape.grid, op.kernel.shape.block}; }

// One fitted parameter on one axis: from 0 upwards, pipe cycles of a block on top of those of its operations; from 0
// downwards to -1, the share of its memory traffic that is taken away. At -1 a kernel does nothing but start.
struct Fit {
  double base_cycles;  // a scale for the positive side
  void apply(double x, double traffic, const KernelDemand& guess, KernelDemand& demand) const {
    demand = guess;
    demand.memory_scale *= traffic;
    if (x >= 0) {
      demand.extra_cycles_per_block = guess.extra_cycles_per_block + x * base_cycles;
    } else {
      demand.memory_scale *= std::max(0.0, 1 + x);
      for (double& flops : demand.flops) flops *= std::max(0.0, 1 + x);
    }
  }
};

class Calibrator {
 public:
  explicit Calibrator(const GpuSpec& gpu) : gpu_(gpu) {}

  // Leaves the fitted demand in `op` and the last run in `trial`. Returns whether it is within the tolerance.
  bool fit(ProgramOp& op, Trial& trial, std::int64_t& transactions) {
    const KernelDemand guess = op.kernel;
    const double target = to_seconds(op.measured_alone);
    const double turns = std::max(1.0, static_cast<double>(guess.shape.blocks()) / gpu_.compute_units);
    const Fit axis{cycles_of(op.measured_alone) / turns};
    const auto time_at = [&](double x, double traffic = 1) {
      axis.apply(x, traffic, guess, op.kernel);
      const double t = to_seconds(trial.run(op));
      transactions += trial.gpu().statistics().memory_transactions;
      return t;
    };
    struct Point {
      double x = 0, t = 0;
    };
    std::optional<Point> fast;  // the bracket: the slowest of those too fast, and the fastest of those too slow
    std::optional<Point> slow;
    double best = std::numeric_limits<double>::max();
    double best_x = 0;
    const auto remembered = known_.find(signature(op));
    double x = remembered == known_.end() ? 0 : remembered->second;
    double step = 0.05;
    for (int tries = 0; tries < kMostTries; ++tries) {
      const double t = time_at(x);
      if (const double error = std::abs(t - target) / target; error < best) best = error, best_x = x;
      if (best < kGoodEnough) break;
      (t < target ? fast : slow) = Point{x, t};
      double next = 0;
      if (!slow) {  // outwards, in growing steps: as long as memory hides the computation nothing changes
        next = x + std::max(step, (target - t) / target);
        step *= 3;
      } else if (!fast) {
        if (x <= -1) break;  // it does nothing but start, and that takes longer
        next = std::max(-1.0, x - std::max(step, (t - target) / target));
        step *= 3;
      } else if (tries % 2 == 0) {
        next = (fast->x + slow->x) / 2;
      } else {
        next = fast->x + (target - fast->t) * (slow->x - fast->x) / (slow->t - fast->t);
      }
      if (next == x) break;
      x = next;
    }
    double best_traffic = 1;
    double traffic = 1;
    // Times jump where blocks change places: then a little less traffic than on the slow side of the jump.
    double least = kLeastTraffic;
    double most = 1;
    for (int tries = 0; tries < kMostTries / 2 && best > kCalibrationTolerance && slow; ++tries) {
      x = slow->x;
      traffic = (least + most) / 2;
      const double t = time_at(x, traffic);
      if (const double error = std::abs(t - target) / target; error < best)
        best = error, best_x = x, best_traffic = traffic;
      (t < target ? least : most) = traffic;
    }
    if (best_x != x || best_traffic != traffic) time_at(best_x, best_traffic);
    known_[signature(op)] = best_x;
    return best <= kCalibrationTolerance;
  }

 private:
  [[nodiscard]] double cycles_of(Time t) const { return to_seconds(t) * static_cast<double>(gpu_.clock.count()); }

  const GpuSpec& gpu_;
  std::map<Signature, double> known_;
};

}  // namespace

AlonePass run_kernels_alone(Program& program, const GpuSpec& gpu, const std::function<void(double)>& progress) {
  AlonePass pass;
  pass.ops.resize(program.ops.size());
  L2Cache l2(gpu.l2, gpu.hbm, gpu.clock);
  Calibrator calibrator(gpu);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    ProgramOp& op = program.ops[i];
    if (op.kind != ProgramOpKind::kernel) continue;
    Trial trial(gpu, l2);
    if (op.measured_alone > Time(0)) {
      ++pass.calibrated;
      if (!calibrator.fit(op, trial, pass.memory_transactions)) ++pass.missed;
    } else {
      ++pass.uncalibrated;
      trial.run(op);
      pass.memory_transactions += trial.gpu().statistics().memory_transactions;
    }
    const OpTimes& times = trial.gpu().times().front();
    const ClockDomain& clock = trial.gpu().clock();
    pass.ops[i] = {clock.to_time(times.end) - clock.to_time(times.start), trial.gpu().ledger(OpId{0})};
    l2 = trial.gpu().l2();
    l2.rest();
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(program.ops.size()));
  }
  return pass;
}

void run_without_communication(const GpuWork& work, const GpuSpec& spec, AlonePass& pass) {
  const ScriptedKernel nothing;
  GpuWork quiet = work;
  const std::vector<ProgramOp>& ops = work.program->ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind == ProgramOpKind::collective) quiet.scripts[i] = &nothing;
  }
  Gpu gpu(GpuId{0}, spec, quiet, LinkPorts());
  run_alone(gpu);
  WEFT_CHECK(gpu.done(), "a program without communication ends");
  pass.undisturbed.resize(ops.size());
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != ProgramOpKind::kernel) continue;
    const OpTimes& times = gpu.times()[i];
    pass.undisturbed[i] = {gpu.clock().to_time(times.end) - gpu.clock().to_time(times.start), gpu.ledger(OpId{i})};
  }
  pass.memory_transactions += gpu.statistics().memory_transactions;
}

}  // namespace weft
