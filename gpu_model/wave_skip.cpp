#include "gpu_model/wave_skip.h"

#include <algorithm>
#include <cmath>

namespace weft {

namespace {
constexpr std::size_t kMarksBeforeLongerTurns = 8;

bool agree(double a, double b, double within) { return std::abs(a - b) <= within * std::max(std::abs(a), std::abs(b)); }
}  // namespace

GpuProgress& GpuProgress::operator+=(const GpuProgress& more) {
  at += more.at;
  hbm_read_bytes += more.hbm_read_bytes;
  hbm_write_bytes += more.hbm_write_bytes;
  memory_transactions += more.memory_transactions;
  unit_seconds_compute += more.unit_seconds_compute;
  return *this;
}

GpuProgress GpuProgress::since(const GpuProgress& before) const {
  return {at - before.at, hbm_read_bytes - before.hbm_read_bytes, hbm_write_bytes - before.hbm_write_bytes,
          memory_transactions - before.memory_transactions, unit_seconds_compute - before.unit_seconds_compute};
}

GpuProgress GpuProgress::times(double factor) const {
  const auto scaled = [factor](std::int64_t n) { return std::llround(static_cast<double>(n) * factor); };
  return {scaled(at), scaled(hbm_read_bytes), scaled(hbm_write_bytes), scaled(memory_transactions),
          unit_seconds_compute * factor};
}

WaveSkip::WaveSkip(std::uint64_t blocks, std::uint64_t resident, double block_lines, double own_lines,
                   double cache_lines)
    : blocks_(blocks), turn_(resident), own_lines_(own_lines), cache_lines_(cache_lines) {
  const double wave_lines = std::max(1.0, block_lines * static_cast<double>(resident));
  turn_ *= static_cast<std::uint64_t>(std::max(1.0, std::ceil(kTurnLines / wave_lines)));
  // The first turn, two that agree, what is left out, and one in which the last wave ends as it would.
  if (blocks_ >= 5 * turn_) next_mark_ = turn_;
}

std::uint64_t WaveSkip::mark(std::uint64_t started, const GpuProgress& now) {
  marks_.push_back(now);
  next_mark_ += turn_;
  if (marks_.size() < 3) return 0;
  const GpuProgress first = marks_[marks_.size() - 2].since(marks_[marks_.size() - 3]);
  const GpuProgress second = now.since(marks_[marks_.size() - 2]);
  const auto traffic = [](const GpuProgress& p) { return static_cast<double>(p.hbm_read_bytes + p.hbm_write_bytes); };
  if (!agree(static_cast<double>(first.at), static_cast<double>(second.at), kSettled) ||
      !agree(traffic(first), traffic(second), kSettledTraffic)) {
    if (marks_.size() == kMarksBeforeLongerTurns) {  // it scatters: every second mark is left
      std::vector<GpuProgress> kept;
      for (std::size_t i = 1; i < marks_.size(); i += 2) kept.push_back(marks_[i]);
      marks_ = std::move(kept);
      next_mark_ += turn_;
      turn_ *= 2;
    }
    return 0;
  }
  const std::uint64_t left = blocks_ - started;
  std::uint64_t turns = left < 2 * turn_ ? 0 : left / turn_ - 1;
  if (const double passed = static_cast<double>(started) * own_lines_; passed < cache_lines_ && own_lines_ > 0) {
    const double part = kShortPart * cache_lines_ / (own_lines_ * static_cast<double>(turn_));
    turns = std::min(turns, static_cast<std::uint64_t>(std::max(1.0, part)));
  }
  if (turns == 0) {
    next_mark_ = 0;
    return 0;
  }
  GpuProgress both = first;
  both += second;
  skipped_ = both.times(static_cast<double>(turns) / 2);
  // Two turns say how much one scatters; what is left out takes the mean of both each time.
  uncertainty_ = turns * std::abs(first.at - second.at) / 2;
  marks_ = {now};
  next_mark_ += turns * turn_;
  return turns * turn_;
}

}  // namespace weft
