#include "cli/sampled/steady_collectives.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <cmath>
#include <functional>

#include "cli/sampled/settled_rates.h"

namespace weft {

namespace {
// Between two looks, memory transactions of the first GPU for each of its groups of warps: some rounds, and a window in
// which their pace is measured.
constexpr std::int64_t kBetweenLooks = 64;
constexpr std::int64_t kWindow = 512;
// Phases of one kind in which the pace is measured; then it is known.
constexpr std::uint32_t kSamples = 3;

// Rounds at both ends of a phase that are simulated: half of those that may be in flight.
std::uint32_t margin(const PacedWarps& warps) { return warps.stages / 2 + 2; }

double nanoseconds_of(Time time) { return to_seconds(time) * 1e9; }

}  // namespace

bool SteadyCollectives::all_in_long_phases(Mark& mark) const {
  std::vector<PacedWarps> found;
  for (std::uint32_t g = 0; g < machine_->gpus(); ++g) {
    found.clear();
    if (!machine_->gpu(g).paced(found)) return false;
    for (const PacedWarps& warps : found) {
      if (warps.done < margin(warps) || warps.ahead + margin(warps) >= warps.rounds) return false;
      mark.warps.push_back({g, warps});
    }
  }
  return !mark.warps.empty();
}

std::uint64_t SteadyCollectives::company_of(const Mark& mark) {
  std::size_t company = 0;
  for (const Warps& warps : mark.warps) boost::hash_combine(company, warps.at.kind);
  return company;
}

SteadyCollectives::Rates SteadyCollectives::rates(const Mark& from, const Mark& to) {
  Rates rates;
  for (std::size_t i = 0; i < to.warps.size(); ++i) {
    rates.push_back((to.warps[i].at.done - from.warps[i].at.done) / nanoseconds_of(to.when - from.when));
  }
  return rates;
}

// True: two windows in the same phases agree.
bool SteadyCollectives::measure(const Mark& mark, Pace& pace) {
  const auto same_phase = [](const Warps& a, const Warps& b) {
    return a.gpu == b.gpu && a.at.agent == b.at.agent && a.at.phase == b.at.phase;
  };
  if (!marks_.empty() && !std::ranges::equal(marks_.back().warps, mark.warps, same_phase)) marks_.clear();
  marks_.push_back(mark);
  if (marks_.size() < 3) return false;
  std::vector<std::uint64_t> kinds;
  for (const Warps& warps : mark.warps) kinds.push_back(warps.at.kind);
  const SettledRates settled = settled_rates(kinds, rates(marks_[0], marks_[1]), rates(marks_[1], marks_[2]));
  marks_.erase(marks_.begin());
  if (2 * settled.scatter > WaveSkip::kSettled || std::ranges::min(settled.rates) <= 0) return false;
  pace.sum.resize(settled.rates.size());
  std::ranges::transform(pace.sum, settled.rates, pace.sum.begin(), std::plus());
  pace.scatter += settled.scatter;
  ++pace.samples;
  return true;
}

void SteadyCollectives::look(Time now) {
  steps_.look(now, [this](const LineStream& stream, const L2Cache::Lines& lines, bool stored) {
    if (machine_->folded_gpus() > 0 && machine_->gpus() == 1) touch_elsewhere(0, stream, lines, stored);
  });
  const std::int64_t transactions = machine_->gpu(0).statistics().memory_transactions;
  if (transactions < next_look_) return;
  Mark mark{now, {}};
  if (all_in_long_phases(mark)) {
    Pace& pace = paces_[company_of(mark)];
    if (pace.samples == kSamples || measure(mark, pace)) {
      leave_out(mark, pace);
      marks_.clear();
    }
  } else {
    marks_.clear();
  }
  const auto groups = std::max<std::int64_t>(1, std::ranges::count(mark.warps, 0U, &Warps::gpu));
  next_look_ = transactions + groups * (marks_.empty() ? kBetweenLooks : kWindow);
}

void SteadyCollectives::leave_out(const Mark& mark, const Pace& pace) {
  double time = nanoseconds_of(machine_->timed_left());  // or until the first one is near the end of its phase
  const auto rate = [&](std::size_t i) { return pace.sum[i] / pace.samples; };
  for (std::size_t i = 0; i < mark.warps.size(); ++i) {
    const PacedWarps& warps = mark.warps[i].at;
    time = std::min(time, (warps.rounds - margin(warps) - warps.ahead) / rate(i));
  }
  time = std::floor(time * rate(0)) / rate(0);
  if (time <= 0) return;
  for (std::size_t i = 0; i < mark.warps.size(); ++i) {
    const auto& [gpu, warps] = mark.warps[i];
    const auto rounds = static_cast<std::uint32_t>(std::lround(time * rate(i)));
    machine_->gpu(gpu).leave_out(
        warps.agent, rounds, [this, sender = gpu](const LineStream& stream, const L2Cache::Lines& lines, bool stored) {
          touch_elsewhere(sender, stream, lines, stored);
        });
  }
  machine_->leave_out(time / 1e9);
  const SubCycle passed = machine_->gpu(0).clock().to_subcycles(nanoseconds(time));
  uncertainty_ += static_cast<SubCycle>(static_cast<double>(passed) * pace.scatter / pace.samples);
}

void SteadyCollectives::touch_elsewhere(std::uint32_t sender, const LineStream& stream, L2Cache::Lines lines,
                                        bool stored) {
  lines.partition = L2Cache::kNoPartition;
  if (stream.target == Target::remote) {
    machine_->gpu(machine_->stands_for(stream.gpu)).touch(lines, stored);
    return;
  }
  const MulticastGroup& group = machine_->multicast_group(stream.gpu);
  if (machine_->folded_gpus() == 0 || machine_->gpus() > 1) {
    for (const GpuId gpu : machine_->members(stream.gpu, GpuId{sender})) machine_->gpu(gpu.value).touch(lines, stored);
    return;
  }
  for (const MulticastImages& images : group.images) {
    if (lines.first < images.first || lines.first >= images.end) continue;
    for (std::uint32_t k = 0; k < machine_->folded_gpus_of_node(); ++k) {
      L2Cache::Lines image = lines;
      image.first = static_cast<LineAddress>(lines.first + images.stride * k);
      machine_->gpu(0).touch(image, stored);
    }
    return;
  }
}

}  // namespace weft
