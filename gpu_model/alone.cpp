#include "gpu_model/alone.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

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
  AloneRun(const Program& program, const GpuSpec& gpu, std::uint32_t threads,
           const std::function<void(double)>& progress)
      : program_(program), gpu_(gpu), threads_(threads), progress_(progress), fits_(program.ops.size()) {
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      if (program.ops[i].kind == ProgramOpKind::kernel) kernels_.push_back(OpId{i});
    }
  }

  std::vector<DemandFit> run(std::int64_t& transactions) {
    std::vector<Chunk> first;
    std::vector<Chunk> later;
    for (std::size_t begin = 0; begin < kernels_.size();) {
      std::size_t end = begin + 1;
      while (end < kernels_.size() && end < begin + kAloneChunk && iteration(end) == iteration(begin)) ++end;
      (iteration(begin) == iteration(0) ? first : later).push_back(Chunk{begin, end, {}, 0});
      begin = end;
    }
    run_chunks(first);
    for (Chunk& chunk : first) known_.merge(chunk.found);
    run_chunks(later);
    for (const auto* chunks : {&first, &later}) {
      for (const Chunk& chunk : *chunks) transactions += chunk.transactions;
    }
    return std::move(fits_);
  }

 private:
  [[nodiscard]] const ProgramOp& op(std::size_t kernel) const { return program_.ops[kernels_[kernel].value]; }
  [[nodiscard]] std::uint32_t iteration(std::size_t kernel) const { return op(kernel).iteration; }

  void run_chunks(std::vector<Chunk>& chunks) {
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
    Trial trial(gpu_);
    for (std::size_t k = chunk.first - std::min(chunk.first, kAloneWarmUp); k < chunk.first; ++k) {
      trial.run(op(k), op(k).kernel);
      trial.keep();
    }
    for (std::size_t k = chunk.first; k < chunk.end; ++k) {
      run_kernel(op(k), fits_[kernels_[k].value], trial, chunk);
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

  const Program& program_;
  const GpuSpec& gpu_;
  std::uint32_t threads_;
  const std::function<void(double)>& progress_;
  std::vector<OpId> kernels_;
  std::vector<DemandFit> fits_;  // by OpId
  KnownFits known_;              // of the first iteration
  std::mutex mutex_;
  std::size_t done_ = 0;
};

}  // namespace

std::vector<DemandFit> run_kernels_alone(const Program& program, const GpuSpec& gpu, std::uint32_t threads,
                                         const std::function<void(double)>& progress, std::int64_t& transactions) {
  return AloneRun(program, gpu, threads, progress).run(transactions);
}

CalibrationSummary summarise(const Program& program, const std::vector<DemandFit>& fits) {
  CalibrationSummary out;
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const ProgramOp& op = program.ops[i];
    if (op.kind != ProgramOpKind::kernel) continue;
    if (op.measured_alone == Time(0)) {
      ++out.uncalibrated;
      continue;
    }
    ++out.calibrated;
    const double error = calibration_error(op, fits[i]);
    if (error > kCalibrationTolerance) ++out.missed;
    if (error > 2 * kCalibrationTolerance) ++out.missed_twice;
    if (error <= out.worst_error && out.worst) continue;
    out.worst_error = error;
    out.worst = OpId{i};
  }
  return out;
}

UndisturbedRun run_without_communication(const GpuWork& work, const GpuSpec& spec, std::int64_t& transactions) {
  const ScriptedKernel nothing;
  GpuWork quiet = work;
  const std::vector<ProgramOp>& ops = work.program->ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind == ProgramOpKind::collective) quiet.scripts[i] = &nothing;
  }
  Gpu gpu(GpuId{0}, spec, quiet, LinkPorts());
  run_alone(gpu);
  WEFT_CHECK(gpu.done(), "a program without communication ends");
  UndisturbedRun run{.durations = std::vector<Time>(ops.size()), .end = Time(0)};
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    const OpTimes& times = gpu.times()[i];
    const Time end = gpu.clock().to_time(times.end);
    run.end = std::max(run.end, end);
    if (ops[i].kind == ProgramOpKind::kernel) run.durations[i] = end - gpu.clock().to_time(times.start);
  }
  transactions += gpu.statistics().memory_transactions;
  return run;
}

}  // namespace weft
