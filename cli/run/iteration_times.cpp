#include "cli/run/iteration_times.h"

#include <algorithm>
#include <functional>

#include "cli/run/collective_phases.h"
#include "traces/intervals.h"

namespace weft {

namespace {

using Filter = std::function<bool(const OperationRecord&)>;

std::vector<Interval> intervals(const std::vector<OperationRecord>& operations, std::uint32_t gpu,
                                const Filter& wanted) {
  std::vector<Interval> found;
  for (const OperationRecord& op : operations) {
    if (op.gpu == gpu && wanted(op)) found.push_back({seconds(op.start_s), seconds(op.end_s - op.early_s)});
  }
  return union_of(std::move(found));
}

Filter in_phase(TrainingPhase phase) {
  return [phase](const OperationRecord& op) { return op.phase == phase && !op.communication; };
}

// Sums over GPUs; divided by GPUs and iterations at the end.
struct Sums {
  double forward = 0, backward = 0, optimizer = 0;
  double communication = 0, exposed = 0, idle = 0;
  double backward_isolated = 0;
  SlowdownByCause causes;
  SlowdownByCause waiting;  // of these, beside collectives that waited
  bool has_forward = false, has_backward = false, has_optimizer = false;
};

void add_gpu(const RunResult& result, std::uint32_t gpu, double end, Sums& sums) {
  const auto& operations = result.operations;
  const auto phase_seconds = [&](TrainingPhase phase, bool& has) {
    const auto found = intervals(operations, gpu, in_phase(phase));
    has = has || !found.empty();
    return to_seconds(length(found));
  };
  sums.forward += phase_seconds(TrainingPhase::forward, sums.has_forward);
  sums.backward += phase_seconds(TrainingPhase::backward, sums.has_backward);
  sums.optimizer += phase_seconds(TrainingPhase::optimizer, sums.has_optimizer);
  const auto communication = intervals(operations, gpu, [](const OperationRecord& op) { return op.communication; });
  const auto compute = intervals(operations, gpu, [](const OperationRecord& op) { return !op.communication; });
  const double overlapped = to_seconds(overlap(communication, compute));
  sums.communication += to_seconds(length(communication));
  sums.exposed += to_seconds(length(communication)) - overlapped;
  sums.idle += end - busy_seconds(operations, gpu);
}

void add(SlowdownByCause& sum, const SlowdownByCause& more) {
  sum.compute_units += more.compute_units;
  sum.hbm += more.hbm;
  sum.cache += more.cache;
  sum.links += more.links;
}
SlowdownByCause scaled(const SlowdownByCause& causes, double factor) {
  return {causes.compute_units * factor, causes.hbm * factor, causes.cache * factor, causes.links * factor};
}

// The backward pass without communication beside it: what its kernels take alone, in the place of what they took.
// Where kernels of several streams ran at the same time the sum over kernels exceeds the union; it is scaled to it.
void add_backward(const RunResult& result, Sums& sums) {
  double together = 0;
  double alone = 0;
  SlowdownByCause causes;
  SlowdownByCause waiting;
  for (const OperationRecord& op : result.operations) {
    if (op.phase != TrainingPhase::backward || op.communication) continue;
    const double taken = op.end_s - op.early_s - op.start_s;
    together += taken;
    alone += op.undisturbed_s.value_or(taken);
    add(causes, op.causes);
    add(waiting, caused_by_waiting(op));
  }
  if (together <= 0) return;
  sums.backward_isolated = sums.backward * alone / together;
  const double sum = causes.compute_units + causes.hbm + causes.cache + causes.links;
  const double scale = sum == 0 ? 0 : (sums.backward - sums.backward_isolated) / sum;
  sums.causes = scaled(causes, scale);
  sums.waiting = scaled(waiting, scale);
}

std::vector<double> device_ends(const RunResult& result, std::uint32_t iterations) {
  std::vector<double> ends(iterations, 0);
  for (const OperationRecord& op : result.operations) ends[op.iteration] = std::max(ends[op.iteration], op.end_s);
  return ends;
}

}  // namespace

double busy_seconds(const std::vector<OperationRecord>& operations, std::uint32_t gpu) {
  return to_seconds(length(intervals(operations, gpu, [](const OperationRecord&) { return true; })));
}

void gather_iterations(const RunConfig& config, const std::vector<Program>& programs, const StepBounds& bounds,
                       RunResult& result) {
  const std::uint32_t iterations = programs.front().iterations;
  result.per_iteration_s = iteration_lengths(device_ends(result, iterations), bounds);
  double end = 0;
  for (const double s : result.per_iteration_s) end += s;
  Sums sums;
  for (std::uint32_t gpu = 0; gpu < config.gpus; ++gpu) add_gpu(result, gpu, end, sums);
  add_backward(result, sums);

  const double share = 1.0 / (static_cast<double>(config.gpus) * iterations);
  IterationTimes& times = result.iteration;
  times.time_s = end / iterations;
  if (sums.has_forward) times.forward_s = sums.forward * share;
  if (sums.has_backward) {
    times.backward_s = sums.backward * share;
    times.backward_isolated_s = sums.backward_isolated * share;
    times.backward_slowdown = sums.backward_isolated > 0 ? sums.backward / sums.backward_isolated : 1;
    result.slowdown_by_cause = scaled(sums.causes, share);
    result.slowdown_waiting = scaled(sums.waiting, share);
  }
  if (sums.has_optimizer) times.optimizer_s = sums.optimizer * share;
  times.communication_s = sums.communication * share;
  times.communication_exposed_s = sums.exposed * share;
  times.communication_overlapped_s = (sums.communication - sums.exposed) * share;
  times.idle_s = sums.idle * share;

  double samples = 0;
  double tokens = 0;
  for (const Program& program : programs) {
    samples += program.samples_per_iteration;
    tokens += program.tokens_per_iteration;
  }
  if (samples > 0 && times.time_s > 0) result.samples_per_s = samples / times.time_s;
  if (tokens > 0 && times.time_s > 0) result.tokens_per_s = tokens / times.time_s;
}

}  // namespace weft
