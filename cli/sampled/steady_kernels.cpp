#include "cli/sampled/steady_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft {

namespace {
// Blocks that are within this share of a wave of whole waves are those: blocks that began together stay together.
constexpr double kNearWave = 0.1;

// GPUs with the same kernel whose rates are closer to their mean leave out as many waves. A choice: in windows of one
// wave the rates of GPUs that went on alike were 4 % apart.
constexpr double kSameRate = 0.05;

double rounds_of_wave(const KernelWork& kernel) { return static_cast<double>(kernel.resident) * kernel.rounds; }
std::uint64_t whole_waves_ahead(const KernelWork& kernel) {
  return kernel.resident > 0 ? kernel.blocks_ahead / kernel.resident : 0;
}
}  // namespace

bool SteadyKernels::mark(Mark& found) const {
  std::vector<KernelWork> works;
  for (std::uint32_t g = 0; g < machine_->gpus(); ++g) {
    works.clear();
    if (!machine_->gpu(g).working(works)) return false;
    for (const KernelWork& work : works) found.push_back({g, work});
  }
  return true;
}

bool SteadyKernels::same(const Mark& a, const Mark& b) {
  return std::ranges::equal(a, b, [](const Kernel& x, const Kernel& y) {
    return x.gpu == y.gpu && x.at.slot == y.at.slot && x.at.sequence == y.at.sequence;
  });
}

bool SteadyKernels::turned(const Mark& from, const Mark& to, bool waves) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const KernelWork& at = to[i].at;
    if (at.resident > 0 && at.done - from[i].at.done < (waves ? std::max(at.turn, rounds_of_wave(at)) : at.turn)) {
      return false;
    }
  }
  return true;
}

double SteadyKernels::scatter(const Window& before, const Window& last) {
  double most = 0;
  for (std::size_t i = 0; i < last.to->size(); ++i) {
    const auto rate = [i](const Window& window) {
      return ((*window.to)[i].at.done - (*window.from)[i].at.done) / window.seconds;
    };
    const double sum = rate(last) + rate(before);
    if (sum > 0) most = std::max(most, std::abs(rate(last) - rate(before)) / sum);
  }
  return most;
}

double SteadyKernels::limit(const Window& window, bool waves) {
  going_.clear();
  for (std::size_t i = 0; i < window.to->size(); ++i) {
    const Kernel& kernel = (*window.to)[i];
    Going going{kernel.gpu, kernel.at};
    going.rate = (kernel.at.done - (*window.from)[i].at.done) / window.seconds;
    if (going.rate <= 0) continue;  // it waits
    // Who gets all places that its blocks leave still has as many of them.
    const auto resident = static_cast<double>(kernel.at.resident);
    const bool keeps = std::abs(resident - static_cast<double>((*window.from)[i].at.resident)) <= kNearWave * resident;
    going.in_waves = waves && keeps && whole_waves_ahead(kernel.at) >= 2;
    going_.push_back(going);
  }
  level_waves();
  auto time = std::numeric_limits<double>::max();
  for (const Going& kernel : going_) {
    const double rounds = kernel.in_waves
                              ? static_cast<double>(whole_waves_ahead(kernel.at) - 1) * rounds_of_wave(kernel.at)
                              : machine_->gpu(kernel.gpu).share_rounds(kernel.at.slot, 1) - kernel.at.turn;
    time = std::min(time, rounds / kernel.rate);
  }
  return time;
}

void SteadyKernels::level_waves() {
  for (Going& first : going_) {
    if (first.gpu != 0 || !first.in_waves) continue;
    const auto is_same = [&](const Going& other) {
      return other.in_waves && other.at.sequence == first.at.sequence && other.at.resident == first.at.resident;
    };
    double sum = 0;
    std::size_t count = 0;
    for (const Going& other : going_) {
      if (!is_same(other)) continue;
      sum += other.rate;
      ++count;
    }
    const double mean = sum / static_cast<double>(count);
    for (Going& other : going_) {
      if (is_same(other) && std::abs(other.rate - mean) <= kSameRate * mean) other.rate = mean;
    }
  }
}

double SteadyKernels::longest_wave() const {
  double longest = 0;
  for (const Going& kernel : going_) {
    if (kernel.gpu == 0 && kernel.in_waves) longest = std::max(longest, rounds_of_wave(kernel.at) / kernel.rate);
  }
  return longest;
}

double SteadyKernels::blocks_of(const Going& kernel, double seconds) {
  const double blocks = kernel.rate * seconds / kernel.at.rounds;
  const auto wave = static_cast<double>(kernel.at.resident);
  const double whole = std::round(blocks / wave) * wave;
  return std::abs(blocks - whole) < kNearWave * wave ? whole : blocks;
}

void SteadyKernels::leave_out(double seconds, double from, double to, Told told) {
  for (const Going& kernel : going_) {
    Gpu& gpu = machine_->gpu(kernel.gpu);
    if (kernel.in_waves) {
      const double blocks = blocks_of(kernel, seconds);
      gpu.leave_out_blocks_of(kernel.at.slot,
                              static_cast<std::uint64_t>(std::llround(blocks * to)) -
                                  static_cast<std::uint64_t>(std::llround(blocks * from)),
                              told);
    } else {
      gpu.leave_out_rounds_of(kernel.at.slot, kernel.rate * seconds * (to - from),
                              gpu.clock().to_subcycles(nanoseconds(seconds * (to - from) * 1e9)), told);
    }
  }
}

}  // namespace weft
