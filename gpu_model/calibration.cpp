#include "gpu_model/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "gpu_model/demand_size.h"
#include "sim/error.h"

namespace weft {

namespace {

constexpr double kGoodEnough = 0.007;  // where the search stops: inside the tolerance
constexpr int kWellTries = 6;          // after so many tries the tolerance itself is good enough
constexpr int kMostTries = 20, kJumpTries = 10;
constexpr double kJump = 1e-3;         // a bracket that is narrower holds a jump: more tries find nothing
constexpr double kLeastTraffic = 0.8;  // a jump is a wave of blocks at most; no guess of bytes is bent further for one
// Where the search begins: what a kernel takes besides its computation, in seconds.
constexpr double kStartAndEnd = 1.2e-6;

// One fitted parameter on one axis: from 0 upwards, pipe cycles of a block, where 1 makes the pipe busy for the time
// alone, or bytes of a kernel that memory takes longer for than its pipe, where 1 is what HBM moves in the time alone;
// from 0 downwards to -1, the share of traffic and operations that is taken away. At -1 a kernel only starts.
struct FitPoint {
  double x = 0;
  // The second parameter, where times jump: on the bytes where cycles were added, cycles where bytes were added or
  // taken away.
  double traffic = 1;
  double extra = 0;  // of the cycles that x = 1 adds
  [[nodiscard]] bool on_axis() const { return traffic == 1 && extra == 0; }
};

// Below, memory is not what a kernel waits for, however little it computes: a few blocks, or operands in the L2.
// UNSOURCED: the share. Where bytes are known, moved once: BabelStream has 0.79 (A100's copy) to 0.95 (H100's dot).
constexpr double kLeastMemoryShare = 0.25, kLeastStreamShare = 0.75;
// Below, the pipe is not what a kernel waits for either: its blocks wait for their own results.
// UNSOURCED: the share.
constexpr double kBusyPipe = 0.5;

class Search {
 public:
  Search(const ProgramOp& op, const GpuSpec& gpu, std::vector<KnownFit> known, Trial& trial)
      : op_(op), known_(std::move(known)), trial_(trial), target_(to_seconds(op.measured_alone)) {
    const auto blocks = static_cast<double>(op.kernel.parts());
    const double turns = std::max(1.0, std::ceil(blocks / gpu.compute_units));
    base_cycles_ = target_ * static_cast<double>(gpu.clock.count()) / turns;
    double pipe_cycles = 0;  // of a block
    for (std::size_t pipe = 0; pipe < kPipeCount; ++pipe) {
      const double rate = gpu.compute_unit.flops_per_cycle[pipe] * gpu.compute_unit.pipe_efficiency[pipe];
      if (op.kernel.flops[pipe] > 0) pipe_cycles = std::max(pipe_cycles, op.kernel.flops[pipe] / blocks / rate);
    }
    pipe_share_ = pipe_cycles / base_cycles_;
    memory_share_ = bytes_of(op.kernel) / static_cast<double>(gpu.hbm.bandwidth.count()) / target_;
    const bool told = op.kernel.origin != DemandOrigin::name && streams(op.kernel);
    bends_memory_ = memory_share_ > std::max(pipe_share_, told ? kLeastStreamShare : kLeastMemoryShare);
    waits_ = !bends_memory_ && pipe_share_ < kBusyPipe;
    const double at_once = gpu.compute_units * std::max(1.0, static_cast<double>(blocks_on_a_unit(op.kernel, gpu)));
    const double waves = std::max(1.0, std::ceil(blocks / at_once));
    x_cycles_ = waits_ ? base_cycles_ * turns / waves : base_cycles_;
  }

  DemandFit run(double seconds_besides) {
    if (const DemandFit* known = known_with_this_time()) {
      try_known(*known);
      if (!settled_ && !last_at_.on_axis()) try_at({.x = last_at_.x});
    } else {
      try_near(std::max(0.0, 1 - binding_share() - seconds_besides / target_));
    }
    if (best_error_ >= kGoodEnough) along_the_axis();
    if (best_error_ > kCalibrationTolerance && slow_) across_the_jump();
    if (!(best_ == last_)) try_demand(best_, best_at_);
    return best_;
  }
  // Of the fit, where one parameter did it and the pipe is what takes the time.
  [[nodiscard]] std::optional<double> seconds_besides() const {
    if (best_at_.x <= 0 || !best_at_.on_axis()) return std::nullopt;
    return target_ * (1 - binding_share() - best_at_.x);
  }

 private:
  struct Point {
    double x = 0, t = 0;
  };

  // Of what x adds to, where it is above 0.
  [[nodiscard]] double binding_share() const { return bends_memory_ ? memory_share_ : pipe_share_; }

  [[nodiscard]] DemandFit fit_at(const FitPoint& at) const {
    DemandFit fit;
    fit.memory_scale = at.traffic;
    const double added = std::max(0.0, at.x);
    if (bends_memory_) fit.memory_scale *= 1 + added / memory_share_;
    fit.extra_cycles_per_block = ((bends_memory_ ? 0 : added) + at.extra) * x_cycles_;
    fit.extra_waits = waits_ && fit.extra_cycles_per_block > 0;
    if (at.x < 0) {
      fit.flops_scale = std::max(0.0, 1 + at.x);
      fit.memory_scale *= fit.flops_scale;
    }
    return fit;
  }
  // The inverse, for a kernel that takes the time aimed at here.
  [[nodiscard]] FitPoint point_of(const DemandFit& fit) const {
    const double extra = fit.extra_cycles_per_block / x_cycles_;
    if (fit.flops_scale == 1 && bends_memory_) return {.x = (fit.memory_scale - 1) * memory_share_, .extra = extra};
    if (fit.flops_scale == 1) return {.x = extra, .traffic = fit.memory_scale};
    return {.x = fit.flops_scale - 1, .extra = extra};
  }

  // Of the known fits with which the kernel took the time aimed at before, the one that served most launches: what the
  // L2 held then may have been different, and what served many serves where it lies otherwise, too.
  [[nodiscard]] const DemandFit* known_with_this_time() const {
    const KnownFit* best = nullptr;
    for (const KnownFit& known : known_) {
      const double error = std::abs(to_seconds(known.fit.alone) - target_) / target_;
      if (error > kCalibrationTolerance || (best != nullptr && known.launches <= best->launches)) continue;
      best = &known;
    }
    return best == nullptr ? nullptr : &best->fit;
  }

  // Within the bracket, and so near to x that it does as well.
  [[nodiscard]] const DemandFit* known_near(double x) const {
    const DemandFit* nearest = nullptr;
    double least = kGoodEnough * whole_at(x);
    for (const auto& [fit, launches] : known_) {
      const FitPoint at = point_of(fit);
      const bool tried = (fast_ && at.x <= fast_->x) || (slow_ && at.x >= slow_->x);
      if (fit.extra_cycles_per_block > 0 && fit.extra_waits != waits_) continue;
      if (!at.on_axis() || tried || std::abs(at.x - x) >= least) continue;
      nearest = &fit;
      least = std::abs(at.x - x);
    }
    return nearest;
  }

  double try_at(const FitPoint& at) { return try_demand(fit_at(at), at); }

  double try_demand(DemandFit fit, const FitPoint& at) {
    KernelDemand demand = op_.kernel;
    apply(fit, demand);
    fit.alone = trial_.run(op_, demand);
    last_ = fit;
    last_at_ = at;
    const double t = to_seconds(fit.alone);
    if (const double error = std::abs(t - target_) / target_; error < best_error_) {
      best_error_ = error;
      best_ = fit;
      best_at_ = at;
    }
    if (at.on_axis()) (t < target_ ? fast_ : slow_) = Point{at.x, t};
    return t;
  }

  // Takes the demand if it is within the tolerance, even where another one is nearer.
  void try_known(const DemandFit& fit) {
    const double error = std::abs(try_demand(fit, point_of(fit)) - target_) / target_;
    if (error > kCalibrationTolerance) return;
    settled_ = true;
    best_ = last_;
    best_at_ = last_at_;
    best_error_ = error;
  }

  void try_near(double x) {
    if (const DemandFit* known = known_near(x)) return try_known(*known);
    try_at({.x = x});
  }

  // What a step along the axis is a share of: of the time, or of the traffic that is left.
  static double whole_at(double x) { return x < 0 ? 1 + x : 1; }

  // Where a kernel bound by its pipe, or by its traffic below 0, would take the time aimed at.
  [[nodiscard]] double expected(const Point& p) const {
    if (p.x > 0 || (p.x == 0 && p.t < target_)) return p.x + (target_ - p.t) / target_;
    return (1 + p.x) * std::max(0.0, target_ - kStartAndEnd) / std::max(p.t - kStartAndEnd, 1e-9) - 1;
  }

  void along_the_axis() {
    double stretch = 1;  // grows as long as a time does not answer: memory hides the computation
    for (int tries = 1; tries < kMostTries; ++tries) {
      if (settled_ || best_error_ < (tries < kWellTries ? kGoodEnough : kCalibrationTolerance)) return;
      double next = 0;
      if (fast_ && slow_) {
        const double width = slow_->x - fast_->x;
        if (width < kJump * whole_at(slow_->x)) return;
        next = expected(slow_->x == last_at_.x ? *slow_ : *fast_);
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
      try_near(next);
    }
  }

  // Times jump where blocks change places, and where a transaction less is moved: then a little less traffic than on
  // the slow side of the jump, or some cycles more than on its fast side. What got an earlier launch across comes
  // first. Cycles may jump over the time as well: then more of them, with less traffic still.
  void across_the_jump() {
    for (const KnownFit& known : std::span(known_).first(std::min<std::size_t>(known_.size(), kJumpTries)))
      if (best_error_ > kCalibrationTolerance && !point_of(known.fit).on_axis()) try_known(known.fit);
    if (fast_ && fast_->x >= 0 && bends_memory_) {  // the axis is the bytes already
      return halve(0, 1, [&, x = fast_->x](double extra) { return try_at({.x = x, .extra = extra}); });
    }
    if (!fast_ || fast_->x >= 0) {
      return halve(kLeastTraffic, 1,
                   [&, x = slow_->x](double traffic) { return try_at({.x = x, .traffic = traffic}); });
    }
    const double left = 1 + fast_->x;
    for (const double share : {1.0, 0.9, 0.8})
      halve(0, 1, [&](double extra) { return try_at({.x = share * left - 1, .extra = extra}); });
  }

  void halve(double fast, double slow, auto&& try_with) {
    for (int tries = 0; tries < kJumpTries && best_error_ > kCalibrationTolerance; ++tries) {
      const double middle = (fast + slow) / 2;
      (try_with(middle) < target_ ? fast : slow) = middle;
    }
  }

  const ProgramOp& op_;
  std::vector<KnownFit> known_;  // of the same kernel
  Trial& trial_;
  double target_;
  double base_cycles_ = 0;
  // Of the time aimed at, that the guessed operations keep the pipe busy, and the guessed bytes the pins of HBM.
  double pipe_share_ = 0, memory_share_ = 0;
  bool bends_memory_ = false, waits_ = false;
  double x_cycles_ = 0;  // that x = 1 adds
  DemandFit last_, best_;
  FitPoint last_at_, best_at_;
  double best_error_ = std::numeric_limits<double>::max();
  bool settled_ = false;       // the best one is a known one
  std::optional<Point> fast_;  // the bracket: the slowest of those too fast, and the fastest of those too slow
  std::optional<Point> slow_;
};

bool same_demand(const DemandFit& a, const DemandFit& b) {
  return a.extra_cycles_per_block == b.extra_cycles_per_block && a.extra_waits == b.extra_waits &&
         a.memory_scale == b.memory_scale && a.flops_scale == b.flops_scale;
}

// Those that ask for the same demand are one, with the time that the first one of them took.
void add(const KnownFit& more, std::vector<KnownFit>& known) {
  const auto same = std::ranges::find_if(known, [&](const KnownFit& one) { return same_demand(one.fit, more.fit); });
  if (same != known.end()) same->launches += more.launches;
  if (same == known.end()) known.push_back(more);
}

}  // namespace

void apply(const DemandFit& fit, KernelDemand& demand) {
  demand.extra_cycles_per_block += fit.extra_cycles_per_block;
  if (fit.extra_cycles_per_block > 0) demand.extra_waits = fit.extra_waits;
  demand.memory_scale *= fit.memory_scale;
  for (double& flops : demand.flops) flops *= fit.flops_scale;
}

double calibration_error(const ProgramOp& op, const DemandFit& fit) {
  WEFT_CHECK(op.measured_alone > Time(0), "a kernel without a time alone");
  return std::abs(static_cast<double>((fit.alone - op.measured_alone).count())) /
         static_cast<double>(op.measured_alone.count());
}

void KnownFits::merge(KnownFits& other) {
  for (const auto& [kernel, more] : other.fits) {
    for (const KnownFit& known : more) add(known, fits[kernel]);
  }
  seconds_besides.merge(other.seconds_besides);
}

DemandFit calibrate(const ProgramOp& op, const GpuSpec& gpu, const KnownFits& earlier, KnownFits& found, Trial& trial) {
  const KernelSignature whole = kernel_signature(op);
  const KernelSignature launch = launch_signature(op);
  std::vector<KnownFit> same;
  double besides = kStartAndEnd;
  for (const KnownFits* known : {&earlier, static_cast<const KnownFits*>(&found)}) {
    if (const auto at = known->fits.find(whole); at != known->fits.end())
      for (const KnownFit& fit : at->second) add(fit, same);
    if (const auto at = known->seconds_besides.find(launch); at != known->seconds_besides.end()) besides = at->second;
  }
  Search search(op, gpu, std::move(same), trial);
  const DemandFit fit = search.run(besides);
  add({fit}, found.fits[whole]);
  if (const auto seconds = search.seconds_besides()) found.seconds_besides[launch] = *seconds;
  return fit;
}

}  // namespace weft
