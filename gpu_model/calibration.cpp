#include "gpu_model/calibration.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "sim/error.h"

namespace weft {

namespace {

constexpr double kGoodEnough = 0.007;  // where the search stops: inside the tolerance
constexpr int kWellTries = 6;          // after so many tries the tolerance itself is good enough
constexpr int kMostTries = 20;
constexpr int kJumpTries = 10;
constexpr double kJump = 1e-3;         // a bracket that is narrower holds a jump: more tries find nothing
constexpr double kLeastTraffic = 0.8;  // a jump is a wave of blocks at most; no guess of bytes is bent further for one
// Where the search begins: what a kernel takes besides its computation, in seconds.
constexpr double kStartAndEnd = 1.2e-6;

// FNV-1a: the same everywhere, as it goes into files.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

KernelSignature launch_signature(const ProgramOp& op) {
  KernelSignature out{hash_of(op.name)};
  for (const auto& size : {op.kernel.shape.grid, op.kernel.shape.block})
    out.insert(out.end(), size.begin(), size.end());
  return out;
}

class Search {
 public:
  Search(const ProgramOp& op, const GpuSpec& gpu, Trial& trial)
      : op_(op), trial_(trial), target_(to_seconds(op.measured_alone)) {
    const auto blocks = static_cast<double>(op.kernel.shape.blocks());
    const double turns = std::max(1.0, std::ceil(blocks / gpu.compute_units));
    const auto clock = static_cast<double>(gpu.clock.count());
    base_cycles_ = target_ * clock / turns;
    double pipe_cycles = 0;  // of a block
    for (std::size_t pipe = 0; pipe < kPipeCount; ++pipe) {
      const double rate = gpu.compute_unit.flops_per_cycle[pipe] * gpu.compute_unit.pipe_efficiency[pipe];
      if (op.kernel.flops[pipe] > 0) pipe_cycles = std::max(pipe_cycles, op.kernel.flops[pipe] / blocks / rate);
    }
    pipe_share_ = pipe_cycles / base_cycles_;
  }

  [[nodiscard]] FitPoint first(double seconds_besides) const {
    return {.x = std::max(0.0, 1 - pipe_share_ - seconds_besides / target_)};
  }

  DemandFit run(const FitPoint& at) {
    try_at(at);
    const bool second = at.traffic != 1 || at.extra != 0;
    if (second && best_error_ > kCalibrationTolerance) try_at({.x = at.x});
    if (best_error_ >= kGoodEnough && (fast_ || slow_)) along_the_axis(at.x);
    if (best_error_ > kCalibrationTolerance && slow_) across_the_jump();
    if (!(best_ == last_)) try_at(best_);
    DemandFit fit = fit_at(best_);
    fit.alone = time_;
    return fit;
  }
  [[nodiscard]] const FitPoint& found() const { return best_; }
  // Of the fit, where one parameter did it and the pipe is what takes the time.
  [[nodiscard]] std::optional<double> seconds_besides() const {
    if (best_.x <= 0 || best_.traffic != 1 || best_.extra != 0) return std::nullopt;
    return target_ * (1 - pipe_share_ - best_.x);
  }

 private:
  struct Point {
    double x = 0;
    double t = 0;
  };

  [[nodiscard]] DemandFit fit_at(const FitPoint& at) const {
    DemandFit fit;
    fit.memory_scale = at.traffic;
    fit.extra_cycles_per_block = (std::max(0.0, at.x) + at.extra) * base_cycles_;
    if (at.x < 0) {
      fit.flops_scale = std::max(0.0, 1 + at.x);
      fit.memory_scale *= fit.flops_scale;
    }
    return fit;
  }

  double try_at(const FitPoint& at) {
    KernelDemand demand = op_.kernel;
    apply(fit_at(at), demand);
    time_ = trial_.run(op_, demand);
    last_ = at;
    const double t = to_seconds(time_);
    if (const double error = std::abs(t - target_) / target_; error < best_error_) {
      best_error_ = error;
      best_ = at;
    }
    if (at.traffic == 1 && at.extra == 0) (t < target_ ? fast_ : slow_) = Point{at.x, t};
    return t;
  }

  // Where a kernel bound by its pipe, or by its traffic below 0, would take the time aimed at.
  [[nodiscard]] double expected(const Point& p) const {
    if (p.x > 0 || (p.x == 0 && p.t < target_)) return p.x + (target_ - p.t) / target_;
    return (1 + p.x) * std::max(0.0, target_ - kStartAndEnd) / std::max(p.t - kStartAndEnd, 1e-9) - 1;
  }

  void along_the_axis(double x) {
    double stretch = 1;  // grows as long as a time does not answer: memory hides the computation
    for (int tries = 1; tries < kMostTries; ++tries) {
      if (best_error_ < (tries < kWellTries ? kGoodEnough : kCalibrationTolerance)) return;
      double next = 0;
      if (fast_ && slow_) {
        const double width = slow_->x - fast_->x;
        if (width < kJump) return;
        next = expected(slow_->x == x ? *slow_ : *fast_);
        if (next <= fast_->x + width / 20 || next >= slow_->x - width / 20) {
          next = fast_->x + width * (target_ - fast_->t) / (slow_->t - fast_->t);
        }
        if (tries % 3 == 0) next = (fast_->x + slow_->x) / 2;
        next = std::clamp(next, fast_->x + width / 20, slow_->x - width / 20);
      } else if (fast_) {
        next = fast_->x + std::max(0.005, expected(*fast_) - fast_->x) * stretch;
        stretch *= 2;
      } else {
        if (slow_->x <= -1) return;  // it does nothing but start, and that takes longer
        const double wanted = slow_->x - std::max(0.005, slow_->x - expected(*slow_)) * stretch;
        next = slow_->x > 0 ? std::max(0.0, wanted) : std::max(-1.0, wanted);
        stretch *= 2;
      }
      x = next;
      try_at({.x = x});
    }
  }

  // Times jump where blocks change places, and where a transaction less is moved: then a little less traffic than on
  // the slow side of the jump, or some cycles more than on the fast side.
  void across_the_jump() {
    const bool takes_away = fast_ && fast_->x < 0;
    const double x = takes_away ? fast_->x : slow_->x;
    double fast = takes_away ? 0 : kLeastTraffic;
    double slow = 1;
    for (int tries = 0; tries < kJumpTries && best_error_ > kCalibrationTolerance; ++tries) {
      const double middle = (fast + slow) / 2;
      const FitPoint at = takes_away ? FitPoint{.x = x, .extra = middle} : FitPoint{.x = x, .traffic = middle};
      (try_at(at) < target_ ? fast : slow) = middle;
    }
  }

  const ProgramOp& op_;
  Trial& trial_;
  double target_;
  double base_cycles_ = 0;
  double pipe_share_ = 0;  // of the time aimed at, that the guessed operations keep the pipe busy
  Time time_;              // of the last try
  FitPoint last_;
  FitPoint best_;
  double best_error_ = std::numeric_limits<double>::max();
  std::optional<Point> fast_;  // the bracket: the slowest of those too fast, and the fastest of those too slow
  std::optional<Point> slow_;
};

}  // namespace

void apply(const DemandFit& fit, KernelDemand& demand) {
  demand.extra_cycles_per_block += fit.extra_cycles_per_block;
  demand.memory_scale *= fit.memory_scale;
  for (double& flops : demand.flops) flops *= fit.flops_scale;
}

double calibration_error(const ProgramOp& op, const DemandFit& fit) {
  WEFT_CHECK(op.measured_alone > Time(0), "a kernel without a time alone");
  return std::abs(static_cast<double>((fit.alone - op.measured_alone).count())) /
         static_cast<double>(op.measured_alone.count());
}

Trial::Trial(const GpuSpec& gpu) : spec_(gpu), l2_(gpu.l2, gpu.hbm, gpu.clock) {
  program_.priorities = {0};
  program_.ops.edit().resize(1);
  work_.program = &program_;
  work_.scripts = {nullptr};
}

Time Trial::run(const ProgramOp& op, const KernelDemand& demand) {
  ProgramOp& only = program_.ops.edit().front();
  only.name = op.name;
  only.kernel = demand;
  gpu_.emplace(GpuId{0}, spec_, work_, LinkPorts());
  gpu_->set_l2(l2_);
  run_alone(*gpu_);
  memory_transactions_ += gpu_->statistics().memory_transactions;
  const OpTimes& times = gpu_->times().front();
  return gpu_->clock().to_time(times.end) - gpu_->clock().to_time(times.start);
}

void Trial::keep() {
  l2_ = gpu_->l2();
  l2_.rest();
}

bool same_demand(const KernelDemand& a, const KernelDemand& b) {
  return a.shape == b.shape && a.reads == b.reads && a.writes == b.writes && a.flops == b.flops &&
         a.iterations == b.iterations && a.stages == b.stages && a.write_at_end == b.write_at_end &&
         a.barrier == b.barrier && a.cluster_blocks == b.cluster_blocks && a.instructions == b.instructions &&
         a.extra_cycles_per_block == b.extra_cycles_per_block && a.memory_scale == b.memory_scale;
}

KernelSignature kernel_signature(const ProgramOp& op) {
  const KernelDemand& demand = op.kernel;
  KernelSignature out{hash_of(op.name), static_cast<std::uint64_t>(op.measured_alone.count())};
  const auto add = [&out](auto... values) { (out.push_back(static_cast<std::uint64_t>(values)), ...); };
  for (const auto& size : {demand.shape.grid, demand.shape.block}) add(size[0], size[1], size[2]);
  add(demand.shape.registers_per_thread, demand.shape.shared_memory_bytes);
  for (const double flops : demand.flops) add(std::bit_cast<std::uint64_t>(flops));
  add(demand.iterations, demand.stages, demand.write_at_end, demand.barrier, demand.cluster_blocks,
      std::bit_cast<std::uint64_t>(demand.instructions), demand.reads.size());
  for (const auto* operands : {&demand.reads, &demand.writes}) {
    for (const Operand& operand : *operands) {
      add(operand.bytes_per_block, operand.divisor, operand.modulo, operand.atomic);
    }
  }
  return out;
}

void KnownFits::merge(KnownFits& other) {
  points.merge(other.points);
  seconds_besides.merge(other.seconds_besides);
}

DemandFit calibrate(const ProgramOp& op, const GpuSpec& gpu, const KnownFits& earlier, KnownFits& found, Trial& trial) {
  const KernelSignature whole = kernel_signature(op);
  const KernelSignature launch = launch_signature(op);
  Search search(op, gpu, trial);
  double besides = kStartAndEnd;
  std::optional<FitPoint> start;
  for (const KnownFits* known : {&earlier, static_cast<const KnownFits*>(&found)}) {
    if (const auto at = known->points.find(whole); at != known->points.end()) start = at->second;
    if (const auto at = known->seconds_besides.find(launch); at != known->seconds_besides.end()) besides = at->second;
  }
  const DemandFit fit = search.run(start.value_or(search.first(besides)));
  found.points.emplace(whole, search.found());
  if (const auto seconds = search.seconds_besides()) found.seconds_besides[launch] = *seconds;
  return fit;
}

}  // namespace weft
