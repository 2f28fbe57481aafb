#include "gpu_model/wave_skip.h"

#include <algorithm>
#include <cmath>

namespace weft {

namespace {
constexpr std::uint64_t kWindowsBeforeLonger = 8;
constexpr std::uint64_t kGrowth = 4;
// Two turns together are as those that are known, within this share of their time.
constexpr double kAsBefore = 0.08;
// What is known is of so many windows at most: it may change slowly.
constexpr std::uint64_t kMostKnown = 16;
// Blocks of a wave begin together; until they go out of step, rounds get faster. How long that takes, and how many
// samples a wave needs, was seen on a layer of attention on H100 (docs/validation.md).
constexpr std::uint64_t kSettlingTurns = 128;
constexpr std::uint64_t kSettlingShare = 4;  // of all turns, one in so many at most
constexpr std::uint64_t kSamplesOfWave = 12;
constexpr std::uint64_t kMostLooks = 8;
constexpr std::uint64_t kLooksOfBatch = 4;
// So many looks one after another, at most, until turns are as they were again, which took 12 to 20 rounds on V100
// (docs/validation.md). Where these were too few, turns scatter, and all count.
constexpr std::uint64_t kMostWarming = 6;
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

double hbm_rate_of(const GpuSpec& gpu) {
  return static_cast<double>(gpu.hbm.bandwidth.count()) /
         (static_cast<double>(gpu.clock.count()) * static_cast<double>(kCycle));
}

double time_of_bytes(double time, double bytes, double now, double hbm_rate) {
  if (bytes <= 0 || time <= 0) return time;
  const double share = std::clamp((bytes / (time * hbm_rate) - 0.5) / 0.25, 0.0, 1.0);
  return time * (1 + share * (now / bytes - 1));
}

TurnSampling WaveSkip::of_rounds(std::uint64_t turns_of_wave) {
  const std::uint64_t most = std::max(TurnSampling().most, turns_of_wave / kSamplesOfWave);
  return {.settling = kSettlingTurns, .most = most, .looks = std::min(kMostLooks, most / 2)};
}

WaveSkip::WaveSkip(std::uint64_t work, std::uint64_t turn, const TurnSampling& sampling, double hbm_rate,
                   std::int64_t cache_bytes)
    : turn_(turn),
      sampling_(sampling),
      hbm_rate_(hbm_rate),
      cache_bytes_(cache_bytes),
      next_mark_(work >= kFewestTurns * turn
                     ? std::clamp<std::uint64_t>(work / turn / kSettlingShare, 1, sampling.settling) * turn
                     : kNever),
      most_turns_(sampling.most) {}

GpuProgress WaveSkip::turn_of(std::uint64_t turns, std::uint64_t back) const {
  const std::size_t last = marks_.size() - 1 - back;
  return marks_[last].since(marks_[last - turns]).times(1.0 / static_cast<double>(turns));
}

bool WaveSkip::mark(const GpuProgress& now) {
  marks_.push_back(now);
  next_mark_ += turn_;
  if (sampling_.looks > 0) {
    if (!looked_at()) return false;
  } else {
    if (marks_.size() <= 2 * window_) return false;
    if (!as_known() && !windows_agree()) return false;
  }
  skipped_ = {};
  marks_ = {now};
  return true;
}

bool WaveSkip::looked_at() {
  const std::uint64_t turns = sampling_.looks;
  const std::uint64_t done = marks_.size() - 1;
  if (done == 0 || done % turns != 0) return false;
  const SubCycle before = mean_.at;
  const bool settled = settled_again();
  if (!settled && done < kMostWarming * turns) return false;
  mean_ = turn_of(settled ? turns : done);
  if (left_out_before_) warming_ += (mean_.at - turn_of(done).at) * static_cast<SubCycle>(done);
  left_out_before_ = false;
  double squares = 0;
  for (std::size_t i = marks_.size() - turns; i < marks_.size(); ++i) {
    const auto off = static_cast<double>(marks_[i].at - marks_[i - 1].at - mean_.at);
    squares += off * off;
  }
  // Turns that follow each other are alike: from one look to the next they may differ by more.
  const double apart = before > 0 ? static_cast<double>(mean_.at - before) : 0;
  scatter_ = std::max(std::sqrt(squares / static_cast<double>((turns - 1) * turns)), std::abs(apart) / std::sqrt(2.0));
  if (looks_++ % kLooksOfBatch == 0) batches_.emplace_back();
  asked_ = 0;
  moved_ = {};
  return true;
}

// What blocks queue for is at other banks and channels behind what was left out: until the same ones wait for each
// other again, they are faster or slower. That is not looked at, and takes as long as if nothing had been left out.
bool WaveSkip::settled_again() const {
  const std::uint64_t turns = sampling_.looks;
  if (mean_.at == 0) return true;
  const auto taken = static_cast<double>(turn_of(turns).at);
  const auto alike = [taken](const GpuProgress& turn) {
    const auto expected = static_cast<double>(turn.at);
    return std::abs(expected - taken) <= kSettled * std::max(expected, taken);
  };
  return alike(mean_) || (marks_.size() > 2 * turns && alike(turn_of(turns, turns)));
}

double WaveSkip::slowly() const {
  Batch all;
  for (const Batch& batch : batches_) {
    all.turns += batch.turns;
    all.time += batch.time;
  }
  double squares = 0;
  for (const Batch& batch : batches_) {
    const double off = batch.time - batch.turns * (all.turns > 0 ? all.time / all.turns : 0);
    squares += off * off;
  }
  return squares;
}

// Short turns scatter by more than what is to be known: those that are as what is known count together with it.
bool WaveSkip::as_known() {
  if (known_ == 0) return false;
  const std::uint64_t turns = 2 * window_;
  const GpuProgress seen = turn_of(turns);
  const double expected = time_of(mean_, seen.hbm_bytes());
  const auto taken = static_cast<double>(seen.at);
  if (std::abs(expected - taken) > kAsBefore * std::max(expected, taken)) return false;
  const double share = static_cast<double>(turns) / static_cast<double>(known_ + turns);
  mean_ = mean_.times(1 - share);
  mean_ += seen.times(share);
  known_ = std::min(known_ + turns, kMostKnown * window_);
  most_turns_ *= kGrowth;
  scatter_ = std::abs(expected - taken) * share;
  return true;
}

bool WaveSkip::windows_agree() {
  const GpuProgress first = turn_of(window_, window_);
  const GpuProgress second = turn_of(window_);
  const double expected = time_of(first, second.hbm_bytes());
  const auto taken = static_cast<double>(second.at);
  if (std::abs(expected - taken) > kSettled * std::max(expected, taken)) {
    if (marks_.size() >= kWindowsBeforeLonger * window_) window_ *= 2;  // it scatters
    return false;
  }
  mean_ = turn_of(2 * window_);
  if (known_ > 0) most_turns_ = std::max(sampling_.most, most_turns_ / kGrowth);
  known_ = 2 * window_;
  scatter_ = std::abs(expected - taken) / 2;
  asked_ = 0;
  moved_ = {};
  return true;
}

// Else it may be that lines are still there which others left, and of which not much is left to be read.
bool WaveSkip::moves_the_same() const {
  if (mean_.memory_transactions * kLineBytes >= kFills * cache_bytes_) return true;
  if (asked_ < kAskedTurns) return false;
  const bool hbm_decides = mean_.hbm_bytes() > 0.5 * static_cast<double>(mean_.at) * hbm_rate_;
  return !hbm_decides || moved_.fetched_bytes + moved_.written_back_bytes >= kFills * cache_bytes_;
}

L2Cache::Touched WaveSkip::usual(double turns) const {
  if (asked_ == 0) {
    const GpuProgress all = mean_.times(turns);
    return {all.hbm_read_bytes, all.hbm_write_bytes};
  }
  const double factor = turns / static_cast<double>(asked_);
  return {std::llround(static_cast<double>(moved_.fetched_bytes) * factor),
          std::llround(static_cast<double>(moved_.written_back_bytes) * factor)};
}

bool WaveSkip::leave_out(std::uint64_t work, const L2Cache::Touched& moved, std::uint64_t turns) {
  const GpuProgress like = mean_.times(static_cast<double>(work) / static_cast<double>(turn_));
  const auto bytes = static_cast<double>(moved.fetched_bytes + moved.written_back_bytes);
  GpuProgress left_out = like.times(like.at > 0 ? time_of(like, bytes) / static_cast<double>(like.at) : 1);
  const SubCycle warm_up =
      std::max(warming_, -left_out.at);  // time does not run backwards: the next turns take the rest
  left_out.at += warm_up;
  warming_ -= warm_up;
  left_out_before_ = true;
  left_out.hbm_read_bytes = moved.fetched_bytes;
  left_out.hbm_write_bytes = moved.written_back_bytes;
  left_out.memory_transactions = like.memory_transactions;
  skipped_ += left_out;
  marks_.back() += left_out;
  const double uncertain = scatter_ * static_cast<double>(turns);
  together_ += uncertain;
  squares_ += uncertain * uncertain;
  if (!batches_.empty()) {
    batches_.back().turns += static_cast<double>(turns);
    batches_.back().time += static_cast<double>(turns) * static_cast<double>(mean_.at);
  }
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
