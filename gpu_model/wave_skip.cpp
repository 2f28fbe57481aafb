#include "gpu_model/wave_skip.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft {

namespace {
constexpr std::size_t kMarksBeforeLongerTurns = 8;
}  // namespace

GpuProgress& GpuProgress::operator+=(const GpuProgress& more) {
  at += more.at;
  hbm_read_bytes += more.hbm_read_bytes;
  hbm_write_bytes += more.hbm_write_bytes;
  memory_transactions += more.memory_transactions;
  hbm_communication_bytes += more.hbm_communication_bytes;
  unit_seconds_compute += more.unit_seconds_compute;
  return *this;
}

GpuProgress GpuProgress::since(const GpuProgress& before) const {
  return {at - before.at,
          hbm_read_bytes - before.hbm_read_bytes,
          hbm_write_bytes - before.hbm_write_bytes,
          memory_transactions - before.memory_transactions,
          hbm_communication_bytes - before.hbm_communication_bytes,
          unit_seconds_compute - before.unit_seconds_compute};
}

GpuProgress GpuProgress::times(double factor) const {
  const auto scaled = [factor](std::int64_t n) { return std::llround(static_cast<double>(n) * factor); };
  return {scaled(at),
          scaled(hbm_read_bytes),
          scaled(hbm_write_bytes),
          scaled(memory_transactions),
          scaled(hbm_communication_bytes),
          unit_seconds_compute * factor};
}

WaveSkip::WaveSkip(std::uint64_t work, std::uint64_t done, std::uint64_t turn, double hbm_rate,
                   std::int64_t cache_bytes)
    : turn_(turn),
      hbm_rate_(hbm_rate),
      cache_bytes_(cache_bytes),
      next_mark_(work >= done + kFewestTurns * turn ? done + turn : std::numeric_limits<std::uint64_t>::max()) {}

double WaveSkip::time_of(const GpuProgress& like, double bytes) const {
  const auto time = static_cast<double>(like.at);
  if (like.hbm_bytes() <= 0 || time <= 0) return time;
  // Below half of its rate HBM decides nothing, from three quarters on everything.
  const double share = std::clamp((like.hbm_bytes() / (time * hbm_rate_) - 0.5) / 0.25, 0.0, 1.0);
  return time * (1 + share * (bytes / like.hbm_bytes() - 1));
}

bool WaveSkip::mark(const GpuProgress& now) {
  marks_.push_back(now);
  next_mark_ += turn_;
  if (marks_.size() < 3) return false;
  const GpuProgress first = marks_[marks_.size() - 2].since(marks_[marks_.size() - 3]);
  const GpuProgress second = now.since(marks_[marks_.size() - 2]);
  const double expected = time_of(first, second.hbm_bytes());
  const auto taken = static_cast<double>(second.at);
  if (std::abs(expected - taken) > kSettled * std::max(expected, taken)) {
    if (marks_.size() == kMarksBeforeLongerTurns) {  // it scatters: every second mark is left
      std::vector<GpuProgress> kept;
      for (std::size_t i = 1; i < marks_.size(); i += 2) kept.push_back(marks_[i]);
      marks_ = std::move(kept);
      next_mark_ += turn_;
      turn_ *= 2;
      asked_ = 0;
      moved_ = {};
    }
    return false;
  }
  GpuProgress both = first;
  both += second;
  const GpuProgress mean = both.times(0.5);
  const bool as_before =
      skipped_.at > 0 && std::abs(static_cast<double>(mean.at - mean_.at)) <= kSettled * static_cast<double>(mean_.at);
  most_turns_ = as_before ? 2 * most_turns_ : kMostTurns;
  mean_ = mean;
  scatter_ = static_cast<SubCycle>(std::abs(expected - taken) / 2);
  skipped_ = {};
  uncertainty_ = 0;
  marks_ = {now};
  return true;
}

// Else it may be that lines are still there which others left, and of which not much is left to be read.
bool WaveSkip::moves_the_same() const {
  if (asked_ < kMostTurns) return false;
  const bool hbm_decides = mean_.hbm_bytes() > 0.5 * static_cast<double>(mean_.at) * hbm_rate_;
  return !hbm_decides || moved_.fetched_bytes + moved_.written_back_bytes >= kFills * cache_bytes_;
}

L2Cache::Touched WaveSkip::usual(std::uint64_t turns) const {
  const double factor = static_cast<double>(turns) / static_cast<double>(asked_);
  return {std::llround(static_cast<double>(moved_.fetched_bytes) * factor),
          std::llround(static_cast<double>(moved_.written_back_bytes) * factor)};
}

bool WaveSkip::leave_out(std::uint64_t work, const L2Cache::Touched& moved, std::uint64_t turns) {
  const GpuProgress like = mean_.times(static_cast<double>(work) / static_cast<double>(turn_));
  const auto bytes = static_cast<double>(moved.fetched_bytes + moved.written_back_bytes);
  GpuProgress left_out = like.times(like.at > 0 ? time_of(like, bytes) / static_cast<double>(like.at) : 1);
  left_out.hbm_read_bytes = moved.fetched_bytes;
  left_out.hbm_write_bytes = moved.written_back_bytes;
  left_out.memory_transactions = like.memory_transactions;
  skipped_ += left_out;
  marks_.back() += left_out;
  uncertainty_ += scatter_ * static_cast<SubCycle>(turns);
  next_mark_ += work;
  const double most = static_cast<double>(like.at) * hbm_rate_;
  const bool alike = std::abs(bytes - like.hbm_bytes()) <= kAlike * std::max(like.hbm_bytes(), most / 2);
  if (!alike) {
    asked_ = 0;
    moved_ = {};
  } else if (turns == 1) {
    ++asked_;
    moved_ += moved;
  }
  return alike;
}

}  // namespace weft
