#include "cli/sampled/steady_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "sim/error.h"

namespace weft {

namespace {
// Windows are so many marks long at most.
constexpr std::size_t kLongestWindow = 4;
// Steps between marks, on average, and of many warps, whose average is known better.
constexpr double kSteps = 4;
constexpr double kStepsOfMany = 2;
constexpr std::size_t kMany = 512;
// One look costs something for each group of warps of all GPUs.
constexpr std::int64_t kTransactions = 8192;
constexpr std::int64_t kFewestTransactions = 256;

std::uint64_t flag_of(std::uint32_t gpu, std::uint32_t flag) { return std::uint64_t{gpu} << 32U | flag; }
}  // namespace

SteadySteps::SteadySteps(Machine& machine)
    : machine_(&machine),
      between_(std::max(kFewestTransactions, kTransactions / static_cast<std::int64_t>(machine.gpus()))),
      steps_(machine.gpus() < kMany ? kSteps : kStepsOfMany) {}

std::optional<SteadySteps::Mark> SteadySteps::mark(Time now) const {
  const Gpu& first = machine_->gpu(0);
  Mark mark{now + first.clock().to_time(first.skipped().at), {}};
  std::vector<Gpu::Steps> found;
  for (std::uint32_t g = 0; g < machine_->gpus(); ++g) {
    found.clear();
    if (!machine_->gpu(g).stepping(found)) return std::nullopt;
    for (const Gpu::Steps& steps : found) mark.warps.push_back({g, steps});
  }
  return mark.warps.empty() ? std::nullopt : std::optional(std::move(mark));
}

double SteadySteps::phases(const Mark& from, const Mark& to) {
  double sum = 0;
  for (std::size_t i = 0; i < to.warps.size(); ++i) sum += to.warps[i].at.phases - from.warps[i].at.phases;
  return sum / static_cast<double>(to.warps.size());
}

void SteadySteps::look(Time now, const TouchElsewhere& elsewhere) {
  if (machine_->gpu(0).statistics().memory_transactions < next_look_) return;
  next_look_ = machine_->gpu(0).statistics().memory_transactions + between_;
  std::optional<Mark> found = mark(now);
  const auto same_warps = [](const Warps& a, const Warps& b) { return a.gpu == b.gpu && a.at.agent == b.at.agent; };
  if (!found || (!marks_.empty() && !std::ranges::equal(marks_.back().warps, found->warps, same_warps))) {
    marks_.clear();
    if (!found) return;
  }
  if (!marks_.empty() && phases(marks_.back(), *found) < steps_) return;
  marks_.push_back(*std::move(found));
  // Longer windows scatter less, shorter ones need less.
  for (std::size_t window = kLongestWindow; window > 0; window /= 2) {
    if (marks_.size() <= 2 * window) continue;
    const Mark& from = marks_[marks_.size() - 1 - 2 * window];
    const Mark& middle = marks_[marks_.size() - 1 - window];
    const double before = phases(from, middle) / to_seconds(middle.when - from.when);
    const double last = phases(middle, marks_.back()) / to_seconds(marks_.back().when - middle.when);
    const double scatter = std::abs(last - before) / (last + before);
    if (2 * scatter > WaveSkip::kSettled || !leave_out(from, marks_.back(), scatter, elsewhere)) continue;
    marks_.clear();
    return;
  }
  if (marks_.size() > 2 * kLongestWindow) marks_.erase(marks_.begin());
}

// All agree on the number of turns; none: there is nothing to leave out.
std::vector<PhaseRepeats> SteadySteps::repeats(const Mark& at) const {
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max() / kLongestTurn;
  // Where one of all does not go on alike, as few phases as possible are looked at.
  for (const Warps& warps : at.warps) {
    if (machine_->gpu(warps.gpu).repeats(warps.at.agent, 1).turns < 2) return {};
  }
  // As many as the first GPU has ahead, but for those that it may be behind others, and one that stays.
  std::uint64_t turns = kAll;
  std::uint32_t period = 1;
  for (const Warps& warps : at.warps) {
    if (warps.gpu != 0) break;
    const PhaseRepeats ahead = machine_->gpu(0).repeats(warps.at.agent, turns);
    turns = std::min(turns, ahead.turns);
    period = std::max(period, ahead.period);
  }
  const auto [least, most] = std::ranges::minmax(at.warps, {}, [](const Warps& warps) { return warps.at.phases; });
  const auto stay = 1 + static_cast<std::uint64_t>(std::ceil((most.at.phases - least.at.phases) / period));
  if (turns <= stay) return {};
  turns -= stay;
  std::vector<PhaseRepeats> found;
  for (const Warps& warps : at.warps) {
    found.push_back(machine_->gpu(warps.gpu).repeats(warps.at.agent, turns));
    if (found.back().turns < turns) return {};
    found.back().turns = turns;
  }
  return found;
}

// Each flag that a turn counts: its GPU, and by how much.
template <class Visit>
void SteadySteps::for_each_count(const Mark& at, const std::vector<PhaseRepeats>& repeats, Visit&& visit) const {
  const bool folded = machine_->folded_gpus() > 0;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const std::uint32_t own = at.warps[i].gpu;
    for (const PhaseRepeats::Count& count : repeats[i].counts) {
      if (count.target == Target::local || (folded && count.target == Target::remote)) {
        visit(own, count.flag, count.by);
      } else if (count.target == Target::remote) {
        visit(std::uint32_t{count.gpu}, count.flag, count.by);
      } else if (folded) {  // all others' come, too
        visit(own, count.flag, count.by * machine_->folded_gpus());
      } else {
        for (const GpuId gpu : machine_->members(count.gpu, GpuId{own})) visit(gpu.value, count.flag, count.by);
      }
    }
  }
}

bool SteadySteps::flags_agree(const Mark& at, const std::vector<PhaseRepeats>& repeats) {
  std::unordered_map<std::uint64_t, std::uint32_t> counted;
  for_each_count(at, repeats,
                 [&](std::uint32_t gpu, std::uint32_t flag, std::uint32_t by) { counted[flag_of(gpu, flag)] += by; });
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    for (const FlagWait& wait : repeats[i].waits) {
      const auto at_flag = counted.find(flag_of(at.warps[i].gpu, wait.flag));
      if (at_flag == counted.end() || at_flag->second != wait.value) return false;
    }
  }
  return true;
}

// None: some warps went on faster than others. They then fill what lies between them, and it does not stay so.
std::optional<double> SteadySteps::turns_between(const Mark& from, const Mark& to,
                                                 const std::vector<PhaseRepeats>& repeats) {
  double least = std::numeric_limits<double>::max();
  double most = 0;
  double sum = 0;
  std::uint32_t shortest = kLongestTurn;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const double turns = (to.warps[i].at.phases - from.warps[i].at.phases) / repeats[i].period;
    least = std::min(least, turns);
    most = std::max(most, turns);
    sum += turns;
    shortest = std::min(shortest, repeats[i].period);
  }
  const double mean = sum / static_cast<double>(repeats.size());
  // Who waits stands at the beginning of a phase.
  if (most - least > 2 * WaveSkip::kSettled * mean + 2.0 / shortest) return std::nullopt;
  return mean;
}

bool SteadySteps::leave_out(const Mark& from, const Mark& now, double scatter, const TouchElsewhere& elsewhere) {
  std::vector<PhaseRepeats> found = repeats(now);
  if (found.empty() || !flags_agree(now, found)) return false;
  const std::uint64_t turns = found.front().turns;
  const std::optional<double> watched = turns_between(from, now, found);
  if (!watched || static_cast<double>(turns) < *watched) return false;
  // Where a turn has phases of several kinds, each window has to have them all.
  if (*watched < 2 && !std::ranges::all_of(found, &PhaseRepeats::even)) return false;
  const double seconds = to_seconds(now.when - from.when) * static_cast<double>(turns) / *watched;
  std::uint64_t remote_lines = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    machine_->gpu(now.warps[i].gpu)
        .leave_out_turns(now.warps[i].at.agent, found[i], turns, now.warps[i].gpu == 0 ? elsewhere : TouchElsewhere());
    remote_lines += turns * found[i].remote_lines;
  }
  for_each_count(now, found, [&](std::uint32_t gpu, std::uint32_t flag, std::uint32_t by) {
    machine_->gpu(gpu).count_left_out(flag, static_cast<std::uint32_t>(turns * by));
  });
  for (std::size_t g = 0; g < machine_->gpus(); ++g) {
    Gpu& gpu = machine_->gpu(g);
    gpu.leave_out(gpu.clock().to_subcycles(nanoseconds(seconds * 1e9)));
  }
  machine_->gpu(0).move_left_out(remote_lines);
  uncertainty_ += machine_->gpu(0).clock().to_subcycles(nanoseconds(scatter * seconds * 1e9));
  return true;
}

}  // namespace weft
