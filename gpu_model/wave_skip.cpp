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

WaveSkip::WaveSkip(std::uint64_t work, std::uint64_t turn, double hbm_rate)
    : turn_(turn),
      hbm_rate_(hbm_rate),
      next_mark_(work >= kFewestTurns * turn ? turn : std::numeric_limits<std::uint64_t>::max()) {}

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
    }
    return false;
  }
  GpuProgress both = first;
  both += second;
  mean_ = both.times(0.5);
  scatter_ = static_cast<SubCycle>(std::abs(expected - taken) / 2);
  skipped_ = {};
  uncertainty_ = 0;
  marks_ = {now};
  return true;
}

bool WaveSkip::leave_out(std::uint64_t work, const L2Cache::Touched& moved) {
  const GpuProgress like = mean_.times(static_cast<double>(work) / static_cast<double>(turn_));
  const auto bytes = static_cast<double>(moved.fetched_bytes + moved.written_back_bytes);
  GpuProgress turn = like.times(like.at > 0 ? time_of(like, bytes) / static_cast<double>(like.at) : 1);
  turn.hbm_read_bytes = moved.fetched_bytes;
  turn.hbm_write_bytes = moved.written_back_bytes;
  turn.memory_transactions = like.memory_transactions;
  skipped_ += turn;
  uncertainty_ += scatter_;
  next_mark_ += work;
  const double most = static_cast<double>(like.at) * hbm_rate_;
  return std::abs(bytes - like.hbm_bytes()) <= kAlike * std::max(like.hbm_bytes(), most / 2);
}

}  // namespace weft
