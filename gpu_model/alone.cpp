#include "gpu_model/alone.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "gpu_model/l2_of_addresses.h"
#include "sim/error.h"

namespace weft {

namespace {

struct Chunk {
  std::size_t first = 0;  // among the kernels
  std::size_t end = 0;
  KnownFits found;
  std::int64_t transactions = 0;
};

class AloneRun {
 public:
  AloneRun(std::span<const Program> programs, const GpuSpec& gpu, std::uint32_t threads, bool skip_waves,
           const std::function<void(double)>& progress)
      : programs_(programs), gpu_(gpu), threads_(threads), skip_waves_(skip_waves), progress_(progress) {
    for (std::uint32_t p = 0; p < programs.size(); ++p) {
      fits_.emplace_back(programs[p].ops.size());
      for (std::uint32_t i = 0; i < programs[p].ops.size(); ++i) {
        if (programs[p].ops[i].kind == ProgramOpKind::kernel) kernels_.push_back({p, OpId{i}});
      }
    }
  }

  std::vector<std::vector<DemandFit>> run(std::int64_t& transactions) {
    std::vector<Chunk> chunks;
    for (std::size_t begin = 0; begin < kernels_.size();) {
      std::size_t end = begin + 1;
      while (end < kernels_.size() && end < begin + kAloneChunk && together(begin, end)) ++end;
      chunks.push_back(Chunk{begin, end, {}, 0});
      begin = end;
    }
    for (std::size_t begin = 0; begin < chunks.size();) {
      const std::size_t end = std::min(chunks.size(), std::max<std::size_t>(1, 2 * begin));
      const std::span<Chunk> round(chunks.data() + begin, end - begin);
      run_chunks(round);
      for (Chunk& chunk : round) known_.merge(chunk.found);
      begin = end;
    }
    for (const Chunk& chunk : chunks) transactions += chunk.transactions;
    return std::move(fits_);
  }

 private:
  struct Kernel {
    std::uint32_t program = 0;
    OpId op;
  };

  [[nodiscard]] const ProgramOp& op(std::size_t kernel) const {
    return programs_[kernels_[kernel].program].ops[kernels_[kernel].op.value];
  }
  // Of one iteration of one program.
  [[nodiscard]] bool together(std::size_t a, std::size_t b) const {
    return kernels_[a].program == kernels_[b].program && op(a).iteration == op(b).iteration;
  }
  [[nodiscard]] DemandFit& fit_of(std::size_t kernel) {
    return fits_[kernels_[kernel].program][kernels_[kernel].op.value];
  }
  // The kernels before a chunk that its L2 is warmed with.
  [[nodiscard]] std::size_t warm_up_from(std::size_t first) const {
    std::size_t from = first - std::min(first, kAloneWarmUp);
    while (kernels_[from].program != kernels_[first].program) ++from;
    return from;
  }

  void run_chunks(std::span<Chunk> chunks) {
    std::atomic<std::size_t> next = 0;
    std::exception_ptr failure;
    const auto work = [&] {
      try {
        for (std::size_t c = next++; c < chunks.size(); c = next++) run_chunk(chunks[c]);
      } catch (...) {
        const std::scoped_lock lock(mutex_);
        failure = std::current_exception();
        next = chunks.size();
      }
    };
    {
      std::vector<std::jthread> others;
      for (std::size_t t = 1; t < std::min<std::size_t>(threads_, chunks.size()); ++t) others.emplace_back(work);
      work();
    }
    if (failure) std::rethrow_exception(failure);
  }

  void run_chunk(Chunk& chunk) {
    const std::size_t from = warm_up_from(chunk.first);
    const Kernel& earliest = kernels_[from];
    Trial trial(gpu_, l2_of_addresses(gpu_, programs_[earliest.program], earliest.op, false), skip_waves_);
    for (std::size_t k = from; k < chunk.first; ++k) {
      trial.run(op(k), op(k).kernel);
      trial.keep();
    }
    for (std::size_t k = chunk.first; k < chunk.end; ++k) {
      run_kernel(op(k), fit_of(k), trial, chunk);
      trial.keep();
      report();
    }
    chunk.transactions = trial.memory_transactions();
  }

  void run_kernel(const ProgramOp& described, DemandFit& fit, Trial& trial, Chunk& chunk) const {
    if (described.measured_alone == Time(0)) {
      fit.alone = trial.run(described, described.kernel);
      return;
    }
    fit = calibrate(described, gpu_, known_, chunk.found, trial);
  }

  void report() {
    const std::scoped_lock lock(mutex_);
    ++done_;
    if (progress_) progress_(static_cast<double>(done_) / static_cast<double>(kernels_.size()));
  }

  std::span<const Program> programs_;
  const GpuSpec& gpu_;
  std::uint32_t threads_;
  bool skip_waves_;
  const std::function<void(double)>& progress_;
  std::vector<Kernel> kernels_;
  std::vector<std::vector<DemandFit>> fits_;  // by program and OpId
  KnownFits known_;                           // of the rounds before
  std::mutex mutex_;
  std::size_t done_ = 0;
};

bool same_kernels(const Program& a, const Program& b) {
  return std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), [](const ProgramOp& x, const ProgramOp& y) {
    return x.kind == y.kind && (x.kind != ProgramOpKind::kernel ||
                                (same_demand(x.kernel, y.kernel) && x.measured_alone == y.measured_alone));
  });
}

}  // namespace

std::vector<std::vector<DemandFit>> run_kernels_alone(std::span<const Program> programs, const GpuSpec& gpu,
                                                      std::uint32_t threads,
                                                      const std::function<void(double)>& progress,
                                                      std::int64_t& transactions, bool skip_waves) {
  return AloneRun(programs, gpu, threads, skip_waves, progress).run(transactions);
}

std::span<const Program> distinct_kernels(std::span<const Program> programs) {
  const bool same = std::all_of(programs.begin(), programs.end(),
                                [&](const Program& program) { return same_kernels(program, programs.front()); });
  return same ? programs.first(1) : programs;
}

CalibrationSummary summarise(std::span<const Program> programs, const std::vector<std::vector<DemandFit>>& fits) {
  CalibrationSummary out;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    for (std::size_t i = 0; i < programs[p].ops.size(); ++i) {
      const ProgramOp& op = programs[p].ops[i];
      if (op.kind != ProgramOpKind::kernel) continue;
      if (op.measured_alone == Time(0)) {
        ++out.uncalibrated;
        continue;
      }
      ++out.calibrated;
      if (op.measured_overlapped) ++out.overlapped;
      const double error = calibration_error(op, fits[p][i]);
      if (error > kCalibrationTolerance) ++out.missed;
      if (error > 2 * kCalibrationTolerance) ++out.missed_twice;
      if (error <= out.worst_error && !out.worst.empty()) continue;
      out.worst_error = error;
      out.worst = op.name;
    }
  }
  return out;
}

UndisturbedRun run_without_communication(const GpuWork& work, const GpuSpec& spec, std::int64_t& transactions) {
  const ScriptedKernel nothing;
  GpuWork quiet = work;
  quiet.residents.clear();
  const SharedList<ProgramOp>& ops = work.program->ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind == ProgramOpKind::collective) quiet.scripts[i] = &nothing;
  }
  Gpu gpu(GpuId{0}, spec, quiet, LinkPorts());
  run_alone(gpu);
  WEFT_CHECK(gpu.done(), "a program without communication ends");
  UndisturbedRun run{
      .durations = std::vector<Time>(ops.size()), .slow_clock = std::vector<double>(ops.size()), .end = Time(0)};
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    const OpTimes& times = gpu.times()[i];
    const Time end = gpu.clock().to_time(times.end);
    run.end = std::max(run.end, end);
    if (ops[i].kind != ProgramOpKind::kernel) continue;
    run.durations[i] = end - gpu.clock().to_time(times.began());
    run.slow_clock[i] = gpu.ledger(OpId{i}).slow_clock;
  }
  transactions += gpu.statistics().memory_transactions;
  return run;
}

}  // namespace weft
