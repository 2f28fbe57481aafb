#include "cli/sampled/second_samples.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <cmath>
#include <unordered_map>

#include "gpu_model/demand_size.h"

namespace weft {

namespace {

std::size_t likeness_of(const ProgramOp& op) {
  std::size_t seed = 0;
  const KernelDemand& kernel = op.kernel;
  boost::hash_combine(seed, op.name);
  for (const auto& size : {kernel.shape.grid, kernel.shape.block}) boost::hash_range(seed, size.begin(), size.end());
  boost::hash_range(seed, kernel.flops.begin(), kernel.flops.end());
  for (const auto* operands : {&kernel.reads, &kernel.writes}) {
    for (const Operand& operand : *operands) {
      boost::hash_combine(seed, operand.bytes_per_block);
      boost::hash_combine(seed, operand.divisor);
      boost::hash_combine(seed, operand.modulo);
      boost::hash_combine(seed, operand.shared_by);
    }
  }
  boost::hash_combine(seed, kernel.extra_cycles_per_block);
  boost::hash_combine(seed, kernel.extra_waits);
  return seed;
}

// Roughly, in seconds: only shares of it count. As much as its busiest pipe or the L2 takes, and its launch.
double expected_time(const GpuSpec& gpu, const KernelDemand& kernel) {
  double cycles = static_cast<double>(streamed_bytes(kernel)) / (1.0 * gpu.l2.slices * gpu.l2.bytes_per_cycle);
  for (std::size_t pipe = 0; pipe < kPipeCount; ++pipe) {
    const double rate = gpu.compute_unit.flops_per_cycle.at(pipe) * gpu.compute_units;
    if (rate > 0) cycles = std::max(cycles, kernel.flops.at(pipe) / rate);
  }
  return cycles / static_cast<double>(gpu.clock.count()) + to_seconds(gpu.launch.device_latency);
}

}  // namespace

SecondSamples::SecondSamples(const GpuSpec& gpu, const Program& program) : demand_of_(program.ops.size(), 0) {
  std::unordered_map<std::size_t, std::uint32_t> known;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const ProgramOp& op = program.ops[i];
    if (op.kind != ProgramOpKind::kernel) continue;
    const std::size_t likeness = likeness_of(op);
    const auto [at, fresh] = known.try_emplace(likeness, static_cast<std::uint32_t>(demands_.size()));
    if (fresh) {
      demands_.push_back({.too_long = streamed_bytes(op.kernel) > kMostBytes,
                          .chance = std::ldexp(static_cast<double>(likeness >> 11U), -53)});
    }
    demand_of_[i] = at->second;
    Demand& demand = demands_[at->second];
    if (demand.too_long) continue;
    const double expected = expected_time(gpu, op.kernel);
    demand.expected += expected;
    expected_ += expected;
  }
}

bool SecondSamples::wanted(OpId kernel) {
  Demand& demand = demands_[demand_of_[kernel.value]];
  if (demand.too_long || demand.decided) return false;
  demand.decided = true;
  return demand.chance * expected_ < demand.expected * kAsked;
}

void SecondSamples::count(OpId kernel, double duration, double second) {
  Demand& demand = demands_[demand_of_[kernel.value]];
  if (demand.too_long) return;
  counted_ += duration;
  if (second > 0) {
    demand.decided = true;
    demand.first += duration;
    demand.difference += second - duration;
  }
}

// Launches that ask for the same are off by the same, not by chance.
SecondSamples::Off SecondSamples::off(double time) const {
  double first = 0, difference = 0, squares = 0;
  for (const Demand& demand : demands_) {
    first += demand.first;
    difference += demand.difference;
    squares += demand.difference * demand.difference;
  }
  if (first <= 0 || time <= 0) return {};
  const double share = counted_ / time / first;
  return {std::abs(difference) * share, std::sqrt(squares) * share};
}

}  // namespace weft
