#include "cli/sampled/steady_collectives.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <cmath>
#include <limits>
#include <map>

namespace weft {

namespace {
// Between two looks, memory transactions of the first GPU for each of its groups of warps: some rounds.
constexpr std::int64_t kBetweenLooks = 512;
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
  std::map<std::uint64_t, std::uint32_t> kinds;
  for (const Warps& warps : mark.warps) ++kinds[warps.at.kind];
  return boost::hash_range(kinds.begin(), kinds.end());
}

SteadyCollectives::Rates SteadyCollectives::rates(const Mark& from, const Mark& to) {
  Rates done;
  std::unordered_map<std::uint64_t, double> groups;
  for (std::size_t i = 0; i < to.warps.size(); ++i) {
    done[to.warps[i].at.kind] += to.warps[i].at.done - from.warps[i].at.done;
    ++groups[to.warps[i].at.kind];
  }
  for (auto& [kind, rate] : done) rate /= groups[kind] * nanoseconds_of(to.when - from.when);
  return done;
}

// True: two windows in the same phases agree.
bool SteadyCollectives::measure(const Mark& mark, Pace& pace) {
  const auto same_phase = [](const Warps& a, const Warps& b) {
    return a.gpu == b.gpu && a.at.agent == b.at.agent && a.at.phase == b.at.phase;
  };
  if (!marks_.empty() && !std::ranges::equal(marks_.back().warps, mark.warps, same_phase)) marks_.clear();
  marks_.push_back(mark);
  if (marks_.size() < 3) return false;
  const Rates before = rates(marks_[0], marks_[1]);
  const Rates now = rates(marks_[1], marks_[2]);
  double scatter = 0;
  for (const auto& [kind, rate] : now) {
    const double sum = rate + before.at(kind);
    if (rate <= 0) scatter = 1;
    scatter = std::max(scatter, std::abs(rate - before.at(kind)) / sum);
  }
  marks_.erase(marks_.begin());
  if (2 * scatter > WaveSkip::kSettled) return false;
  for (const auto& [kind, rate] : now) pace.sum[kind] += (rate + before.at(kind)) / 2;
  pace.scatter += scatter;
  ++pace.samples;
  return true;
}

void SteadyCollectives::look(Time now) {
  steps_.look(now, [this](const LineStream& stream, const L2Cache::Lines& lines, bool stored) {
    if (machine_->folded_gpus() > 0 && machine_->gpus() == 1) touch_elsewhere(0, stream, lines, stored);
  });
  if (machine_->gpu(0).statistics().memory_transactions < next_look_) return;
  Mark mark{now, {}};
  const bool long_phases = all_in_long_phases(mark);
  const auto groups = std::ranges::count(mark.warps, 0U, &Warps::gpu);
  next_look_ = machine_->gpu(0).statistics().memory_transactions + kBetweenLooks * std::max<std::int64_t>(groups, 1);
  if (!long_phases) {
    marks_.clear();
    return;
  }
  Pace& pace = paces_[company_of(mark)];
  if (pace.samples < kSamples && !measure(mark, pace)) return;
  leave_out(mark, pace);
  marks_.clear();
}

void SteadyCollectives::leave_out(const Mark& mark, const Pace& pace) {
  double time = nanoseconds_of(machine_->timed_left());  // or until the first one is near the end of its phase
  const auto rate = [&](const PacedWarps& warps) { return pace.sum.at(warps.kind) / pace.samples; };
  for (const auto& [gpu, warps] : mark.warps) {
    time = std::min(time, (warps.rounds - margin(warps) - warps.ahead) / rate(warps));
  }
  time = std::floor(time * rate(mark.warps.front().at)) / rate(mark.warps.front().at);
  if (time <= 0) return;
  for (const auto& [gpu, warps] : mark.warps) {
    const auto rounds = static_cast<std::uint32_t>(std::lround(time * rate(warps)));
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
