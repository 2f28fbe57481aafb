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
constexpr double kStepsBesideKernels = 2;
// Over nodes, as many as a node has GPUs: so long it takes until all of them go at the pace of its NICs.
constexpr std::size_t kMany = 512;
// One look costs something for each group of warps of all GPUs.
constexpr std::int64_t kTransactions = 8192;
constexpr std::int64_t kFewestTransactions = 256;

// Of collectives alone, so many times more is left out each time: some get faster slowly. Of kernels,
// windows that are left out at most, and parts in which the L2 is told of them and of collectives in turn.
constexpr double kGrowth = 4;
constexpr double kMostWindows = 64;
constexpr std::uint64_t kParts = 8;
// Of a time that is to be whole waves of a kernel, so many are tried: as near as possible to whole turns of
// collectives, and nearer than this share.
constexpr int kTriedWaves = 64;
constexpr double kNear = 0.02;
constexpr double kNearEnough = 0.004;

// So many waves of those that fit into `time`, in seconds; 0: none is near to whole turns.
double whole_waves(double time, double wave, double turn) {
  const double most = std::floor(time / wave);
  if (turn <= 0) return most * wave;
  double best = 0;
  double nearest = kNear;
  for (int i = 0; i < kTriedWaves; ++i) {
    const double waves = (most - i) * wave;
    if (waves < time / 2) break;
    const double off = std::abs(std::round(waves / turn) * turn - waves) / waves;
    if (off >= nearest) continue;
    nearest = off;
    best = waves;
    if (off < kNearEnough) break;
  }
  return best;
}

std::uint64_t flag_of(std::uint32_t gpu, std::uint32_t flag) { return std::uint64_t{gpu} << 32U | flag; }
}  // namespace

SteadySteps::SteadySteps(Machine& machine)
    : machine_(&machine),
      between_(std::max(kFewestTransactions / machine.gpu(0).grain(),
                        kTransactions / static_cast<std::int64_t>(machine.gpus()))),
      steps_(std::max<double>(machine.gpus() < kMany ? kSteps : kStepsOfMany, machine.gpus_per_node())),
      kernels_(machine) {}

std::optional<SteadySteps::Mark> SteadySteps::mark(Time now) const {
  const Gpu& first = machine_->gpu(0);
  Mark mark{now + first.clock().to_time(first.skipped().at), {}, {}};
  std::vector<CollectiveSteps> found;
  for (std::uint32_t g = 0; g < machine_->gpus(); ++g) {
    found.clear();
    if (!machine_->gpu(g).stepping(found)) return std::nullopt;
    for (const CollectiveSteps& steps : found) mark.warps.push_back({g, steps});
  }
  if (!kernels_.mark(mark.kernels) || (mark.warps.empty() && mark.kernels.empty())) return std::nullopt;
  return mark;
}

double SteadySteps::phases(const Mark& from, const Mark& to) {
  double sum = 0;
  for (std::size_t i = 0; i < to.warps.size(); ++i) sum += to.warps[i].at.phases - from.warps[i].at.phases;
  return to.warps.empty() ? 0 : sum / static_cast<double>(to.warps.size());
}

// Collectives that only wait for what kernels will do, or free, hold up nothing.
bool SteadySteps::passed(const Mark& from, const Mark& to, bool waves) const {
  const double steps = phases(from, to);
  if (steps < (to.kernels.empty() ? steps_ : kStepsBesideKernels) && (to.kernels.empty() || steps > 0)) return false;
  return SteadyKernels::turned(from.kernels, to.kernels, waves);
}

void SteadySteps::look(Time now, const TouchElsewhere& elsewhere) {
  if (machine_->gpu(0).statistics().memory_transactions < next_look_) return;
  next_look_ = machine_->gpu(0).statistics().memory_transactions + between_;
  const std::optional<Mark> found = mark(now);
  const auto same_warps = [](const Warps& a, const Warps& b) { return a.gpu == b.gpu && a.at.agent == b.at.agent; };
  const auto of_others = [&](const Marks& marks) {
    return !marks.empty() && (!std::ranges::equal(marks.back().warps, found->warps, same_warps) ||
                              !SteadyKernels::same(marks.back().kernels, found->kernels));
  };
  if (!found || of_others(marks_) || of_others(wave_marks_)) {
    marks_.clear();
    wave_marks_.clear();
    most_ = kFewest;
    left_out_ = {};
    if (!found) return;
  }
  if (look(marks_, *found, false, elsewhere)) return;
  if (!found->kernels.empty() && look(wave_marks_, *found, true, elsewhere)) marks_.clear();
}

bool SteadySteps::look(Marks& marks, const Mark& found, bool waves, const TouchElsewhere& elsewhere) {
  if (!marks.empty() && !passed(marks.back(), found, waves)) return false;
  marks.push_back(found);
  for (std::uint32_t g = 0; g < machine_->gpus() && !found.kernels.empty(); ++g) machine_->gpu(g).note_rounds();
  // Longer windows scatter less, shorter ones need less.
  for (std::size_t window = kLongestWindow; window > 0; window /= 2) {
    if (marks.size() <= 2 * window) continue;
    const Mark& from = marks[marks.size() - 1 - 2 * window];
    const Mark& middle = marks[marks.size() - 1 - window];
    const double before_s = to_seconds(middle.when - from.when);
    const double last_s = to_seconds(found.when - middle.when);
    const double before = phases(from, middle) / before_s;
    const double last = phases(middle, found) / last_s;
    double scatter = last + before > 0 ? std::abs(last - before) / (last + before) : 0;
    scatter = std::max(scatter, SteadyKernels::scatter({&from.kernels, &middle.kernels, before_s},
                                                       {&middle.kernels, &found.kernels, last_s}));
    if (2 * scatter > WaveSkip::kSettled || !leave_out(from, found, scatter, waves, elsewhere)) continue;
    marks.clear();
    return true;
  }
  if (marks.size() > 2 * kLongestWindow) marks.erase(marks.begin());
  return false;
}

// All agree on the number of turns, as many as may be left out at once at most; none: there is nothing to leave out.
std::vector<PhaseRepeats> SteadySteps::repeats(const Mark& from, const Mark& at) const {
  // Where one of all does not go on alike, as few phases as possible are looked at.
  std::uint32_t period = 1;
  double watched = 0;  // turns
  for (std::size_t i = 0; i < at.warps.size(); ++i) {
    const Warps& warps = at.warps[i];
    const PhaseRepeats next = machine_->gpu(warps.gpu).repeats(warps.at.agent, 1);
    if (next.turns < 2) return {};
    period = std::max(period, next.period);
    watched += (warps.at.phases - from.warps[i].at.phases) / next.period;
  }
  watched /= static_cast<double>(at.warps.size());
  // As many as the first GPU has ahead, but for those that it may be behind others, and one that stays.
  const auto [least, most] = std::ranges::minmax(at.warps, {}, [](const Warps& warps) { return warps.at.phases; });
  const auto stay = 1 + static_cast<std::uint64_t>(std::ceil((most.at.phases - least.at.phases) / period));
  std::uint64_t turns = stay + std::max<std::uint64_t>(1, static_cast<std::uint64_t>(most_ * watched));
  for (const Warps& warps : at.warps) {
    if (warps.gpu != 0) break;
    turns = std::min(turns, machine_->gpu(0).repeats(warps.at.agent, turns).turns);
  }
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
  const bool folded = machine_->folded_gpus() > 0 && machine_->gpus() == 1;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const std::uint32_t own = at.warps[i].gpu;
    for (const PhaseRepeats::Count& count : repeats[i].counts) {
      if (count.target == Target::local) {
        visit(own, count.flag, count.by);
      } else if (count.target == Target::remote) {
        visit(machine_->stands_for(count.gpu), count.flag, count.by);
      } else if (folded) {  // all others' come, too
        visit(own, count.flag, count.by * machine_->folded_gpus_of_node());
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

std::optional<SteadySteps::Ahead> SteadySteps::collectives_ahead(const Mark& from, const Mark& now) {
  Ahead ahead{.repeats = repeats(from, now)};
  if (ahead.repeats.empty() || !flags_agree(now, ahead.repeats)) return std::nullopt;
  ahead.turns = ahead.repeats.front().turns;
  const std::optional<double> turn =
      turn_between(from.warps, now.warps, to_seconds(now.when - from.when), ahead.repeats);
  if (!turn) return std::nullopt;
  const double watched = to_seconds(now.when - from.when) / *turn;
  if (static_cast<double>(ahead.turns) < watched) return std::nullopt;
  // Where a turn has phases of several kinds, each window has to have them all.
  if (watched < 2 && !std::ranges::all_of(ahead.repeats, &PhaseRepeats::even)) return std::nullopt;
  ahead.turn = *turn;
  ahead.time = static_cast<double>(ahead.turns) * ahead.turn;
  return ahead;
}

bool SteadySteps::collectives_move() const {
  for (std::uint32_t g = 0; g < machine_->gpus(); ++g) {
    if (machine_->gpu(g).collectives_move()) return true;
  }
  return false;
}

// As much as kernels and collectives can both go on.
bool SteadySteps::fit(const Mark& from, const Mark& now, bool waves, Ahead& ahead) {
  const double window = to_seconds(now.when - from.when);
  double time = std::min(kernels_.limit({&from.kernels, &now.kernels, window}, waves), most_ * window);
  time = std::min(time, to_seconds(machine_->timed_left()));
  if (!ahead.repeats.empty()) time = std::min(time, ahead.time);
  const double wave = kernels_.longest_wave();
  const bool all = wave == 0 && !ahead.repeats.empty() && time >= ahead.time;
  if (wave > 0) {
    time = whole_waves(time, wave, ahead.turn);
  } else if (ahead.turn > 0 && !all) {
    time = std::floor(time / ahead.turn) * ahead.turn;
  }
  if (time < window / 2) return false;
  ahead.time = time;
  if (ahead.repeats.empty()) return true;
  if (all) return ahead.turns > 0;
  ahead.turns = static_cast<std::uint64_t>(std::llround(time / ahead.turn));
  for (PhaseRepeats& repeats : ahead.repeats) repeats.cursor = nullptr;  // it stands elsewhere
  return ahead.turns > 0;
}

// Ranks drift apart over many steps, and get slower by it; what is left out holds that up. So all that was left out
// goes at the pace that was found last.
double SteadySteps::settle(const Ahead& ahead) {
  const std::uint64_t kind = ahead.repeats.front().kind;
  if (kind != left_out_.kind) left_out_ = {.kind = kind};
  left_out_.turns += static_cast<double>(ahead.turns);
  const double time = std::max(ahead.time / 2, left_out_.turns * ahead.turn - left_out_.time);
  left_out_.time += time;
  return time;
}

bool SteadySteps::leave_out(const Mark& from, const Mark& now, double scatter, bool waves,
                            const TouchElsewhere& elsewhere) {
  const bool step = phases(from, now) > 0;
  // What warps have handed to NICs, and links hold, goes on while they wait.
  if (!step && collectives_move()) return false;
  std::optional<Ahead> ahead = step ? collectives_ahead(from, now) : Ahead();
  if (!ahead || !fit(from, now, waves, *ahead)) return false;
  if (now.kernels.empty()) ahead->time = settle(*ahead);
  const std::uint64_t turns = ahead->turns;
  const std::uint64_t parts = now.kernels.empty() ? 1 : kParts;
  std::uint64_t remote_lines = 0;
  for (std::uint64_t part = 0; part < parts; ++part) {
    const auto share = [&](std::uint64_t p) { return static_cast<double>(p) / static_cast<double>(parts); };
    if (!now.kernels.empty()) kernels_.leave_out(ahead->time, share(part), share(part + 1));
    const std::uint64_t some = turns * (part + 1) / parts - turns * part / parts;
    for (std::size_t i = 0; i < ahead->repeats.size() && some > 0; ++i) {
      machine_->gpu(now.warps[i].gpu)
          .leave_out_turns(now.warps[i].at.agent, ahead->repeats[i], some,
                           now.warps[i].gpu == 0 ? elsewhere : TouchElsewhere());
      remote_lines += some * ahead->repeats[i].remote_lines;
    }
  }
  for_each_count(now, ahead->repeats, [&](std::uint32_t gpu, std::uint32_t flag, std::uint32_t by) {
    machine_->gpu(gpu).count_left_out(flag, static_cast<std::uint32_t>(turns * by));
  });
  machine_->leave_out(ahead->time);
  machine_->gpu(0).move_left_out(remote_lines);
  uncertainty_ += machine_->gpu(0).clock().to_subcycles(nanoseconds(scatter * ahead->time * 1e9));
  most_ = now.kernels.empty() ? kGrowth * most_ : std::min(2 * most_, kMostWindows);
  return true;
}

}  // namespace weft
