#include "cli/sampled/steady_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace weft {

namespace {
// Windows are so many marks long: loops of a ring of eight, some thirty phases, fit into the longest.
constexpr std::array<std::size_t, 8> kWindows = {16, 12, 8, 6, 4, 3, 2, 1};
// Steps between marks, on average. Of collectives alone over nodes, as many as a node has GPUs: so long it takes until
// all of them go at the pace of its NICs.
constexpr double kSteps = 2;
// One look costs something for each group of warps of all GPUs.
constexpr std::int64_t kTransactions = 8192;
constexpr std::int64_t kFewestTransactions = 256;
// Of so many like steps of many GPUs and more, this share comes first, at most so many, and each half of a window has
// so many at least. All are choices (docs/validation.md, Scale).
constexpr double kManySteps = 64;
constexpr double kFirstShare = 1.0 / 4;
constexpr double kFirstSteps = 32;
constexpr double kFewestSteps = 6;
}  // namespace

SteadySteps::SteadySteps(Machine& machine)
    : machine_(&machine),
      between_(std::max(kFewestTransactions / machine.gpu(0).grain(),
                        kTransactions / static_cast<std::int64_t>(machine.gpus()))),
      steps_(std::max<double>(kSteps, machine.gpus_per_node())),
      kernels_(machine) {}

std::optional<SteadySteps::Mark> SteadySteps::mark(Time now) const {
  const Gpu& first = machine_->gpu(0);
  const GpuProgress done = first.progress();
  Mark mark{.when = now + first.clock().to_time(first.skipped().at),
            .hbm = {static_cast<double>(done.hbm_read_bytes), static_cast<double>(done.hbm_write_bytes)},
            .warps = {},
            .kernels = {}};
  std::vector<CollectiveSteps> found;
  for (std::uint32_t g = 0; g < machine_->gpus(); ++g) {
    found.clear();
    if (!machine_->gpu(g).stepping(found)) return std::nullopt;
    for (const CollectiveSteps& steps : found) mark.warps.push_back({g, steps});
  }
  if (!kernels_.mark(mark.kernels) || (mark.warps.empty() && mark.kernels.empty())) return std::nullopt;
  return mark;
}

double SteadySteps::phases(const Mark& at) {
  double sum = 0;
  for (const Warps& warps : at.warps) sum += warps.at.phases;
  return at.warps.empty() ? 0 : sum / static_cast<double>(at.warps.size());
}

// Collectives that only wait for what kernels will do, or free, hold up nothing. Where some groups of warps of a GPU go
// through many phases for each one of others (pieces of what those reduce at once), the others count: how fast it goes
// changes from piece to piece.
bool SteadySteps::passed(const Mark& from, const Mark& to, bool waves) const {
  const double steps = phases(to) - phases(from);
  for (std::size_t i = 0; i < to.warps.size() && to.warps[i].gpu == 0 && steps > 0; ++i) {
    if (to.warps[i].at.phases - from.warps[i].at.phases < 1) return false;
  }
  if (steps < (to.kernels.empty() ? steps_ : kSteps) && (to.kernels.empty() || steps > 0)) return false;
  return SteadyKernels::turned(from.kernels, to.kernels, waves);
}

void SteadySteps::look(Time now, const TouchElsewhere& elsewhere) {
  if (machine_->gpu(0).statistics().memory_transactions < next_look_) return;
  next_look_ = machine_->gpu(0).statistics().memory_transactions + between_;
  repeats_.clear();
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
    next_known_ = 0;
    runs_.clear();
    if (!found) return;
  }
  if (leave_out_known(*found, elsewhere)) return;
  if (look(marks_, *found, false, elsewhere)) return;
  if (!found->kernels.empty() && look(wave_marks_, *found, true, elsewhere)) marks_.clear();
}

bool SteadySteps::look(Marks& marks, const Mark& found, bool waves, const TouchElsewhere& elsewhere) {
  if (!marks.empty() && !passed(marks.back(), found, waves)) return false;
  marks.push_back(found);
  for (std::uint32_t g = 0; g < machine_->gpus() && !found.kernels.empty(); ++g) machine_->gpu(g).note_rounds();
  // Longer windows scatter less, shorter ones need less.
  for (const std::size_t window : kWindows) {
    if (marks.size() <= 2 * window) continue;
    const Mark& from = marks[marks.size() - 1 - 2 * window];
    const Mark& middle = marks[marks.size() - 1 - window];
    const double before_s = to_seconds(middle.when - from.when);
    const double last_s = to_seconds(found.when - middle.when);
    const double before = (phases(middle) - phases(from)) / before_s;
    const double last = (phases(found) - phases(middle)) / last_s;
    double scatter = last + before > 0 ? std::abs(last - before) / (last + before) : 0;
    scatter = std::max(scatter, SteadyKernels::scatter({&from.kernels, &middle.kernels, before_s},
                                                       {&middle.kernels, &found.kernels, last_s}));
    const std::span<const Mark> both = std::span(marks).last(2 * window + 1);
    if (2 * scatter > WaveSkip::kSettled) continue;
    const std::optional<Turn> left_out = leave_out(both, scatter, waves, elsewhere);
    if (!left_out) continue;
    // Steps that are left out are part of a loop, which is still looked at.
    if (*left_out == Turn::loop) marks.clear();
    return true;
  }
  if (marks.size() > 2 * kWindows.front()) marks.erase(marks.begin());
  return false;
}

// One turn of each group of warps. Null: some repeat nothing, or did not in all of the window what they repeat.
const std::vector<PhaseRepeats>* SteadySteps::repeats(std::span<const Mark> window, Turn turn) {
  const std::vector<Warps>& now = window.back().warps;
  std::vector<PhaseRepeats>& found = repeats_[turn];
  while (found.size() < now.size() && (found.empty() || found.back().turns >= 2)) {
    const Warps& warps = now[found.size()];
    found.push_back(machine_->gpu(warps.gpu).repeats(warps.at.agent, turn, 1));
  }
  if (found.empty() || found.back().turns < 2) return nullptr;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto does = [&](const Mark& mark) {
      return std::ranges::binary_search(found[i].works, mark.warps[i].at.work);
    };
    if (!std::ranges::all_of(window, does)) return nullptr;
  }
  return &found;
}

bool SteadySteps::too_soon(std::span<const Mark> window, Turn turn) {
  const Mark& now = window.back();
  if (machine_->gpus() == 1 || !now.kernels.empty()) return false;
  constexpr auto kMost = static_cast<std::uint64_t>(kFirstSteps / kFirstShare);
  const Warps& first = now.warps.front();
  const PhaseRepeats ahead = machine_->gpu(0).repeats(first.at.agent, turn, kMost);
  if (ahead.period == 0 || !ahead.even) return false;
  Run& run = runs_[turn];
  if (run.kind != ahead.kind) run = {.kind = ahead.kind, .began = first.at.phases};
  const double done = (first.at.phases - run.began) / ahead.period;
  const double all = done + static_cast<double>(ahead.turns);
  if (all < kManySteps) return false;
  const double half = (phases(now) - phases(window.front())) / 2 / ahead.period;
  return done < std::min(kFirstSteps, kFirstShare * all) || half < kFewestSteps;
}

std::optional<double> SteadySteps::whole_turn_of(std::span<const Mark> window, const std::vector<PhaseRepeats>& one) {
  std::vector<TurnsAt> marks;
  for (const Mark& mark : window) {
    double sum = 0;
    for (std::size_t i = 0; i < one.size(); ++i) sum += mark.warps[i].at.phases / one[i].period;
    marks.push_back({to_seconds(mark.when), sum / static_cast<double>(one.size())});
  }
  return whole_turn(marks);
}

// All agree on the number of turns, so many at most, or are ahead of them by their leads. None: there is nothing to
// leave out. Where one of all does not go on alike, as few phases as possible are looked at.
std::vector<PhaseRepeats> SteadySteps::turns_ahead(const Mark& at, const std::vector<PhaseRepeats>& one, Turn turn,
                                                   double most_turns, const std::vector<double>& leads) const {
  const auto lead = [&](std::size_t i) { return leads.empty() ? 1 : leads[i]; };
  // As many as the first GPU has ahead, but for one that stays, and those that it may be behind others.
  std::uint64_t stay = 1;
  if (machine_->gpus() > 1) {
    double least = std::numeric_limits<double>::max();
    double most = 0;  // turns that a group of warps has been through
    for (std::size_t i = 0; i < one.size(); ++i) {
      least = std::min(least, at.warps[i].at.phases / one[i].period);
      most = std::max(most, at.warps[i].at.phases / one[i].period);
    }
    stay += static_cast<std::uint64_t>(std::ceil(most - least));
  }
  std::uint64_t turns = stay + std::max<std::uint64_t>(1, static_cast<std::uint64_t>(most_turns));
  for (std::size_t i = 0; i < at.warps.size(); ++i) {
    const Warps& warps = at.warps[i];
    if (warps.gpu != 0) break;
    const auto its = static_cast<std::uint64_t>(std::ceil(static_cast<double>(turns) * lead(i)));
    const std::uint64_t found = machine_->gpu(0).repeats(warps.at.agent, turn, its).turns;
    turns = std::min(turns, static_cast<std::uint64_t>(static_cast<double>(found) / lead(i)));
  }
  if (turns <= stay) return {};
  turns -= stay;
  std::vector<PhaseRepeats> found;
  for (std::size_t i = 0; i < at.warps.size(); ++i) {
    const Warps& warps = at.warps[i];
    const auto its = static_cast<std::uint64_t>(std::llround(static_cast<double>(turns) * lead(i)));
    found.push_back(machine_->gpu(warps.gpu).repeats(warps.at.agent, turn, its));
    if (found.back().turns < its) return {};
    found.back().turns = its;
  }
  return found;
}

double SteadySteps::room(const Mark& at, const std::vector<PhaseRepeats>& one, const std::vector<double>& leads) const {
  const Gpu& gpu = machine_->gpu(0);
  auto most = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (leads[i] == 1) continue;
    if (at.warps[i].at.waits) return 0;
    for (const PhaseRepeats::Wait& wait : one[i].waits) {
      if (wait.by == 0) continue;
      const double left = static_cast<double>(gpu.flag(wait.flag).count) - wait.next;
      most = std::min(most, left / wait.by / (leads[i] - 1));
    }
    // Who waits for them would go on before.
    const auto awaited = [&](const PhaseRepeats::Count& count) {
      return gpu.flag(count.flag).waiter != WaitQueue::kNone;
    };
    if (std::ranges::any_of(one[i].counts, awaited)) return 0;
  }
  return std::max(0.0, most);
}

// Or a flag that all wait for is on its way.
bool SteadySteps::collectives_move() const {
  std::int64_t flags = 0;
  for (std::uint32_t g = 0; g < machine_->gpus(); ++g) {
    const Gpu& gpu = machine_->gpu(g);
    if (gpu.collectives_move()) return true;
    flags += gpu.statistics().flags_posted - gpu.statistics().flags_come;
  }
  return flags > 0;
}

}  // namespace weft
