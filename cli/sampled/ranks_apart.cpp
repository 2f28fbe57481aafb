#include "cli/sampled/ranks_apart.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "cli/run/collective_times.h"
#include "cli/run/demands_file.h"
#include "cli/run/gather.h"
#include "cli/run/kernel_fits.h"
#include "cli/run/machine.h"
#include "cli/run/recorded_gpu.h"
#include "cli/run/standstill.h"
#include "gpu_model/alone.h"
#include "sim/error.h"
#include "traces/intervals.h"

namespace weft {

namespace {

// Runs are made again while operations meet that did not before. A few runs are enough, since only what shifts by what
// detail costs can meet anew.
constexpr int kMostRuns = 5;

class RanksApart {
 public:
  RanksApart(const RunConfig& config, std::vector<Program>& programs, const Scripts& scripts, RunResult& result)
      : config_(config), programs_(programs), scripts_(scripts), result_(result), guessed_(programs) {
    for (const Program& program : programs_) {
      in_detail_.emplace_back(program.ops.size(), false);
      fitted_.emplace_back(program.ops.size(), false);
      AlonePass& pass = alone_.passes.emplace_back();
      pass.fits.resize(program.ops.size());
      pass.undisturbed.durations.resize(program.ops.size());
    }
    each_op([&](std::size_t g, std::size_t o, const ProgramOp& op) {
      // A rank of a shift waits for its neighbours, not for all: no barrier stands for it.
      if (op.kind == ProgramOpKind::collective) in_detail_[g][o] = op.collective.kind == CollectiveKind::shift;
      if (op.kind != ProgramOpKind::kernel) return;
      in_detail_[g][o] = op.measured_alone == Time(0);
      know(g, o, DemandFit{.alone = op.measured_alone});
    });
  }

  // How many runs it took, and how many operations met in the last of them that had not before.
  struct Settled {
    int runs = 1;
    std::size_t anew = 0;
  };
  Settled run(int most_runs, const std::function<void(double, const std::string&)>& progress) {
    const auto& trace = std::get<TraceWorkload>(config_.workload);
    const std::span<const Program> kinds = distinct_kernels(guessed_);
    if (is_on_another_gpu(config_)) {
      read_ = no_fits(kinds);
    } else if (!trace.demands.empty()) {
      read_ = read_demands(trace.demands, demands_origin(trace, config_.system, kinds), kinds);
    }
    times_ = collective_times(config_, programs_);
    fit(in_detail_);
    for (int runs = 1;; ++runs) {
      simulate();
      const Marks more = met();
      const std::size_t anew = count(more);
      if (anew == 0 || runs == most_runs) return {runs, anew};
      if (progress) progress(0.2 + 0.8 * runs / most_runs, "operations that meet");
      fit(more);
      each_op(
          [&](std::size_t g, std::size_t o, const ProgramOp&) { in_detail_[g][o] = in_detail_[g][o] || more[g][o]; });
    }
  }

  void tell(const Settled& settled) {
    gather(config_, programs_, alone_, scripts_, *machine_, result_);
    note(settled.runs, settled.anew);
  }

  [[nodiscard]] std::vector<Time> longer_than_alone() const {
    std::vector<Time> longer(programs_.front().ops.size());
    const ClockDomain clock(config_.system.gpu.clock);
    for (const Scripts::Collective& collective : scripts_.collectives()) {
      SubCycle start = 0;
      SubCycle end = 0;
      for (const auto& [gpu, op] : collective.members) {
        start = std::max(start, machine_->gpu(gpu).times()[op.value].began());
        end = std::max(end, machine_->gpu(gpu).times()[op.value].end);
      }
      const auto& [gpu, op] = collective.members.front();
      if (gpu != 0 || !in_detail_[gpu][op.value]) continue;
      const Time alone = times_.at(signature_of(programs_[gpu].ops[op.value].collective)).moving;
      longer[op.value] = std::max(Time(0), clock.to_time(end - start) - alone);
    }
    return longer;
  }

 private:
  using Marks = std::vector<std::vector<bool>>;  // by GPU and operation

  template <class Function>
  void each_op(Function&& function) const {
    for (std::size_t g = 0; g < programs_.size(); ++g) {
      for (std::size_t o = 0; o < programs_[g].ops.size(); ++o) function(g, o, programs_[g].ops[o]);
    }
  }

  void know(std::size_t gpu, std::size_t op, const DemandFit& fit) {
    alone_.passes[gpu].fits[op] = fit;
    alone_.passes[gpu].undisturbed.durations[op] = fit.alone;
  }

  // Gives the kernels in `wanted` the demands with which they take what they took alone. GPUs with the same kernels
  // share the fits.
  void fit(Marks wanted) {
    const std::size_t kinds = distinct_kernels(guessed_).size();
    for (std::size_t g = kinds; g < wanted.size(); ++g) {
      for (std::size_t o = 0; o < wanted[g].size(); ++o) wanted[0][o] = wanted[0][o] || wanted[g][o];
    }
    std::vector<Program> parts(kinds);  // the wanted kernels alone, behind each other
    std::vector<std::vector<std::size_t>> places(kinds);
    for (std::size_t k = 0; k < kinds; ++k) {
      for (std::size_t o = 0; o < wanted[k].size(); ++o) {
        const ProgramOp& op = guessed_[k].ops[o];
        if (op.kind != ProgramOpKind::kernel || !wanted[k][o] || fitted_[k][o]) continue;
        fitted_[k][o] = true;
        parts[k].ops.push_back(op);
        places[k].push_back(o);
      }
    }
    const std::vector<std::vector<DemandFit>> found =
        read_.empty()
            ? run_kernels_alone(parts, config_.system.gpu, config_.threads, {}, result_.engine.memory_transactions)
            : std::vector<std::vector<DemandFit>>();
    for (std::size_t g = 0; g < programs_.size(); ++g) {
      const std::size_t k = kinds == 1 ? 0 : g;
      for (std::size_t i = 0; i < places[k].size(); ++i) {
        const std::size_t o = places[k][i];
        const DemandFit& fit = read_.empty() ? found[k][i] : read_[k][o];
        know(g, o, fit);
        KernelDemand& kernel = programs_[g].ops.edit()[o].kernel;
        kernel = guessed_[g].ops[o].kernel;
        apply(fit, kernel);
      }
    }
  }

  // Collectives that are not in detail are barriers of the same ranks that end later.
  void simulate() {
    stand_ins_ = programs_;
    std::vector<std::vector<SubCycle>> lasts;
    const ClockDomain clock(config_.system.gpu.clock);
    for (const Program& program : programs_) lasts.emplace_back(program.ops.size(), 0);
    each_op([&](std::size_t g, std::size_t o, const ProgramOp& op) {
      if (in_detail_[g][o]) return;
      if (op.kind == ProgramOpKind::kernel) lasts[g][o] = clock.to_subcycles(op.measured_alone);
      if (op.kind != ProgramOpKind::collective) return;
      const CollectiveTime& time = times_.at(signature_of(op.collective));
      lasts[g][o] = clock.to_subcycles(std::max(Time(0), time.moving - time.barrier));
      CollectiveDemand& demand = stand_ins_[g].ops.edit()[o].collective;
      demand.kind = CollectiveKind::barrier;
      demand.bytes = Bytes();
    });
    machine_.reset();  // points into what follows
    stand_in_scripts_.emplace(config_, stand_ins_);
    std::vector<GpuWork> work;
    for (std::size_t g = 0; g < programs_.size(); ++g) {
      work.push_back(stand_in_scripts_->work(g));
      work.back().lasts = std::move(lasts[g]);
    }
    machine_ = std::make_unique<Machine>(config_.system, work, stand_in_scripts_->multicast_groups(), CarriedValues(),
                                         stand_in_scripts_->aggregation_groups(), config_.seed);
    machine_->run_until_asleep(config_.threads);
    for (std::size_t g = 0; g < machine_->gpus(); ++g) {
      if (machine_->gpu(g).done()) continue;
      const std::string why = why_at_a_standstill(*machine_, programs_, stand_in_scripts_->collectives());
      throw Standstill(why.empty() ? "ranks wait for each other for good" : why);
    }
  }

  // Kernels and collectives that ran at the same time as another one on their GPU, and are not in detail. A collective
  // is on all of its ranks or on none.
  [[nodiscard]] Marks met() const {
    Marks found;
    for (const Program& program : programs_) found.emplace_back(program.ops.size(), false);
    for (std::size_t g = 0; g < programs_.size(); ++g) {
      struct Ran {
        SubCycle start, end;
        std::size_t op;
      };
      std::vector<Ran> ran;
      for (std::size_t o = 0; o < programs_[g].ops.size(); ++o) {
        const ProgramOpKind kind = programs_[g].ops[o].kind;
        const OpTimes& times = machine_->gpu(g).times()[o];
        if (kind != ProgramOpKind::kernel && kind != ProgramOpKind::collective) continue;
        if (times.end > times.start) ran.push_back({times.start, times.end, o});
      }
      std::sort(ran.begin(), ran.end(),
                [](const Ran& a, const Ran& b) { return a.start != b.start ? a.start < b.start : a.op < b.op; });
      const Ran* longest = nullptr;  // of those before, the last to end
      for (const Ran& next : ran) {
        if (longest != nullptr && next.start < longest->end) {
          for (const std::size_t o : {longest->op, next.op}) found[g][o] = !in_detail_[g][o];
        }
        if (longest == nullptr || next.end > longest->end) longest = &next;
      }
    }
    for (const Scripts::Collective& collective : scripts_.collectives()) {
      const auto meets = [&](const auto& m) { return found[m.first][m.second.value]; };
      if (std::none_of(collective.members.begin(), collective.members.end(), meets)) continue;
      for (const auto& [gpu, op] : collective.members) found[gpu][op.value] = !in_detail_[gpu][op.value];
    }
    return found;
  }

  static std::size_t count(const Marks& marks) {
    std::size_t sum = 0;
    for (const auto& of_gpu : marks) sum += static_cast<std::size_t>(std::count(of_gpu.begin(), of_gpu.end(), true));
    return sum;
  }

  void note(int runs, std::size_t left) {
    double known = 0;
    double all = 0;
    std::size_t operations = 0;
    each_op([&](std::size_t g, std::size_t o, const ProgramOp& op) {
      if (op.kind != ProgramOpKind::kernel && op.kind != ProgramOpKind::collective) return;
      const OpTimes& times = machine_->gpu(g).times()[o];
      const auto lasted = static_cast<double>(times.end - times.began());
      all += lasted;
      known += in_detail_[g][o] ? 0 : lasted;
      ++operations;
    });
    result_.engine.simulated_s = to_seconds(machine_->end());
    result_.engine.skipped_fraction = all > 0 ? known / all : 0;
    // What is known is as exact as a fit to it would be.
    result_.engine.sampling_error_estimate = kCalibrationTolerance;
    result_.notes.push_back(fmt::format(
        "Sampled: {} of {} operations ran beside others and were simulated in detail, in {} runs; the others took what "
        "is known of them by themselves. Traffic is that of operations in detail.",
        count(in_detail_), operations, runs));
    if (left > 0) result_.notes.push_back(fmt::format("{} more met others in the last of these runs.", left));
  }

  const RunConfig& config_;
  std::vector<Program>& programs_;
  const Scripts& scripts_;
  RunResult& result_;
  std::vector<Program> guessed_;              // with their demands before any fit
  std::vector<std::vector<DemandFit>> read_;  // from a file; empty: searched for
  std::map<CollectiveSignature, CollectiveTime> times_;
  Marks in_detail_, fitted_;
  AlonePasses alone_;  // one for each GPU
  std::vector<Program> stand_ins_;
  std::optional<Scripts> stand_in_scripts_;
  std::unique_ptr<Machine> machine_;
};

}  // namespace

void simulate_ranks_apart(const RunConfig& config, std::vector<Program>& programs, const Scripts& scripts,
                          const std::function<void(double, const std::string&)>& progress, RunResult& result) {
  if (progress) progress(0.2, "collectives by themselves");
  const std::vector<Program> untouched = programs;  // which share their operations with them until one changes
  RanksApart apart(config, programs, scripts, result);
  try {
    apart.tell(apart.run(kMostRuns, progress));
  } catch (const Standstill&) {
    programs = untouched;
    throw;
  }
}

std::vector<Time> longer_beside_kernels(const RunConfig& config, std::vector<Program>& programs,
                                        const std::function<void(double, const std::string&)>& progress) {
  const Scripts scripts(config, programs);
  RunResult not_told;
  RanksApart apart(config, programs, scripts, not_told);
  apart.run(2, progress);
  return apart.longer_than_alone();
}

}  // namespace weft
