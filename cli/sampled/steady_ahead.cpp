// What comes next when all goes on as it did, and leaving that out.
#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "cli/sampled/steady_steps.h"

namespace weft {

namespace {
// So many times more is left out each time, up to as many windows as are never ahead: of collectives whose groups of
// warps all do as many phases in a turn; and beside kernels, or of those that get faster slowly, since some wait for
// others' many phases, until their blocks are out of step.
constexpr double kGrowthAlone = 4;
constexpr double kGrowth = 2;
constexpr double kAllWindows = 1 << 20;
// Kernels are looked at all along: of them, at most so many windows at once, or this share of what is ahead of them.
constexpr double kMostWindows = 64;
constexpr double kShareAtOnce = 1.0 / 16;
// Turns of several kinds of phases that pass before others are watched.
constexpr double kFirstTurns = 2;
// Phases between two times that steps are looked for whose pace is known.
constexpr double kBetweenKnown = 0.5;
// Parts in which the L2 is told of them and of collectives in turn.
constexpr int kParts = 8;
// Of a time that is to be whole waves of a kernel, so many are tried: as near as possible to whole turns of
// collectives, and nearer than this share.
constexpr int kTriedWaves = 64;
constexpr double kNear = 0.02;
constexpr double kNearEnough = 0.004;
// Of what is left out, the L2 is told the end, which fills it so many times. A choice: an iteration of 256 Ki tokens in
// a ring is then 0.3 % shorter than if told all, with 2 it is 0.9 % (docs/validation.md). Collectives by themselves
// leave there what they touched last; what they move is known once HBM has moved so many times what the L2 holds. Both
// are choices, too: without the latter, writes that had not begun yet were 18 % too few on registered buffers.
constexpr double kToldFills = 32;
constexpr double kToldFillsAlone = 4;
constexpr double kFull = 2;

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

// What all groups of warps repeat.
std::uint64_t all_of(const std::vector<PhaseRepeats>& repeats) {
  std::size_t all = 0;
  for (const PhaseRepeats& one : repeats) boost::hash_combine(all, one.kind);
  return all;
}

std::uint64_t flag_of(std::uint32_t gpu, std::uint32_t flag) { return std::uint64_t{gpu} << 32U | flag; }
}  // namespace

// Each flag that a turn counts: its GPU, by how much, and how many turns of that are ahead.
template <class Visit>
void SteadySteps::for_each_count(const Mark& at, const std::vector<PhaseRepeats>& repeats, Visit&& visit) const {
  const bool folded = machine_->folded_gpus() > 0 && machine_->gpus() == 1;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const std::uint32_t own = at.warps[i].gpu;
    for (const PhaseRepeats::Count& count : repeats[i].counts) {
      const std::uint64_t turns = repeats[i].turns;
      if (count.target == Target::local) {
        visit(own, count.flag, count.by, turns);
      } else if (count.target == Target::remote) {
        visit(machine_->stands_for(count.gpu), count.flag, count.by, turns);
      } else if (folded) {  // all others' come, too
        visit(own, count.flag, count.by * machine_->folded_gpus_of_node(), turns);
      } else {
        for (const GpuId gpu : machine_->members(count.gpu, GpuId{own})) visit(gpu.value, count.flag, count.by, turns);
      }
    }
  }
}

double SteadySteps::turns_of_flags(const Mark& at, const std::vector<PhaseRepeats>& one) const {
  std::unordered_map<std::uint64_t, std::uint32_t> counted;
  for_each_count(at, one, [&](std::uint32_t gpu, std::uint32_t flag, std::uint32_t by, std::uint64_t /*turns*/) {
    counted[flag_of(gpu, flag)] += by;
  });
  auto most = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i < one.size(); ++i) {
    const std::uint32_t gpu = at.warps[i].gpu;
    for (const PhaseRepeats::Wait& wait : one[i].waits) {
      if (const auto found = counted.find(flag_of(gpu, wait.flag)); found != counted.end()) {
        if (found->second != wait.by) return 0;
        continue;
      }
      // Who counts it may be through with all it has to do.
      const std::uint32_t count = machine_->gpu(gpu).flag(wait.flag).count;
      if (wait.by == 0 || count < wait.next) return 0;
      most = std::min(most, 1.0 + (count - wait.next) / wait.by);
    }
  }
  return most;
}

std::optional<SteadySteps::Ahead> SteadySteps::collectives_ahead(std::span<const Mark> window, Turn turn, Pace pace) {
  const Mark& from = window.front();
  const Mark& now = window.back();
  const double passed = to_seconds(now.when - from.when);
  const std::vector<PhaseRepeats>* repeated = too_soon(window, turn) ? nullptr : repeats(window, turn);
  if (repeated == nullptr) return std::nullopt;
  const std::vector<PhaseRepeats>& one = *repeated;
  const std::optional<SteadyTurn> found = turn_between(from.warps, now.warps, passed, one);
  if (!found) return std::nullopt;
  const double flags = turns_of_flags(now, one);
  if (flags < 1) return std::nullopt;
  const double watched = passed / found->seconds;
  pace.turn = found->seconds;
  double most = std::min(most_ * watched, flags);
  if (!found->leads.empty()) {
    // One GPU that stands for all: its flags are all that there are.
    if (machine_->gpus() > 1 || machine_->folded_gpus() == 0 || !now.kernels.empty()) return std::nullopt;
    most = std::min(most, room(now, one, found->leads));
    if (most < 1) return std::nullopt;
  }
  // Where a turn has phases of several kinds, each half of the window has to have them all, and what it tells is of
  // whole turns: some kinds take longer than others. In the first ones, groups of warps get out of step.
  const bool even = std::ranges::all_of(one, &PhaseRepeats::even);
  if (!even) {
    if (watched < 2 || from.warps.front().at.phases < kFirstTurns * one.front().period) return std::nullopt;
    const std::optional<double> whole = whole_turn_of(window, one);
    if (!whole) return std::nullopt;
    pace.turn = *whole;
  }
  Ahead ahead{.repeats = turns_ahead(now, one, turn, most, found->leads), .pace = pace};
  for (const PhaseRepeats& repeats : ahead.repeats)
    ahead.turns = ahead.turns == 0 ? repeats.turns : std::min(ahead.turns, repeats.turns);
  ahead.rest = even && static_cast<double>(ahead.turns) < std::floor(most);
  if (ahead.rest && now.kernels.empty()) paces_.insert_or_assign(all_of(one), pace);  // the run comes again
  if (ahead.repeats.empty()) return std::nullopt;
  // What lies between those that get ahead and others is full soon.
  const bool until_full = !found->leads.empty();
  if (turn == Turn::loop && !until_full && static_cast<double>(ahead.turns) < watched) return std::nullopt;
  ahead.time = static_cast<double>(ahead.turns) * ahead.pace.turn;
  return ahead;
}

// As much as kernels and collectives can both go on.
bool SteadySteps::fit(const Mark& from, const Mark& now, bool waves, Ahead& ahead) {
  const double window = to_seconds(now.when - from.when);
  const double limit = kernels_.limit({&from.kernels, &now.kernels, window}, waves);
  double time = std::min(limit, most_ * window);
  if (!now.kernels.empty()) time = std::min(time, std::max(kMostWindows * window, limit * kShareAtOnce));
  time = std::min(time, to_seconds(machine_->timed_left()));
  if (!ahead.repeats.empty()) time = std::min(time, ahead.time);
  const double wave = kernels_.longest_wave();
  const bool all = wave == 0 && !ahead.repeats.empty() && time >= ahead.time;
  if (wave > 0) {
    time = whole_waves(time, wave, ahead.pace.turn);
  } else if (ahead.pace.turn > 0 && !all) {
    time = std::floor(time / ahead.pace.turn) * ahead.pace.turn;
  }
  if (time < window / 2) return false;
  ahead.time = time;
  if (ahead.repeats.empty()) return true;
  if (all) return ahead.turns > 0;
  const double share = std::round(time / ahead.pace.turn) / static_cast<double>(ahead.turns);
  ahead.turns = static_cast<std::uint64_t>(std::llround(time / ahead.pace.turn));
  for (PhaseRepeats& repeats : ahead.repeats) {
    repeats.turns = static_cast<std::uint64_t>(std::llround(static_cast<double>(repeats.turns) * share));
    repeats.cursor = nullptr;  // it stands elsewhere
  }
  return ahead.turns > 0;
}

// Ranks drift apart over many steps, and get slower by it; what is left out holds that up. So all that was left out
// goes at the pace that was found last.
double SteadySteps::settle(const Ahead& ahead) {
  const std::uint64_t kind = ahead.repeats.front().kind;
  if (kind != left_out_.kind) left_out_ = {.kind = kind};
  left_out_.turns += static_cast<double>(ahead.turns);
  const double time = std::max(ahead.time / 2, left_out_.turns * ahead.pace.turn - left_out_.time);
  left_out_.time += time;
  return time;
}

void SteadySteps::go_on(const Mark& now, Ahead& ahead, double from, double to, Told told,
                        const TouchElsewhere& elsewhere) {
  if (!now.kernels.empty()) kernels_.leave_out(ahead.time, from, to, told);
  const auto turns_at = [&](double share, std::uint64_t all) {
    return share == 1 ? all : static_cast<std::uint64_t>(share * static_cast<double>(all));
  };
  for (std::size_t i = 0; i < ahead.repeats.size(); ++i) {
    const Warps& warps = now.warps[i];
    const bool first = warps.gpu == 0;
    if (!first && to < 1) continue;  // nothing is told of them: all at once
    const std::uint64_t all = ahead.repeats[i].turns;
    const std::uint64_t some = first ? turns_at(to, all) - turns_at(from, all) : all;
    if (some == 0) continue;
    if (some < all) ahead.repeats[i].cursor = nullptr;  // it stands behind all of them
    Gpu& gpu = machine_->gpu(warps.gpu);
    const double seconds = ahead.time * static_cast<double>(some) / static_cast<double>(all);
    gpu.leave_out_turns(warps.at.agent, ahead.repeats[i], some, gpu.clock().to_subcycles(nanoseconds(seconds * 1e9)),
                        first ? elsewhere : TouchElsewhere());
    ahead.remote_lines += some * ahead.repeats[i].remote_lines;
  }
}

std::optional<Turn> SteadySteps::leave_out(std::span<const Mark> window, double scatter, bool waves,
                                           const TouchElsewhere& elsewhere) {
  const Mark& from = window.front();
  const Mark& now = window.back();
  const bool step = phases(now) > phases(from);
  // What warps have handed to NICs, and links hold, goes on while they wait.
  if (!step && collectives_move()) return std::nullopt;
  const double passed = to_seconds(now.when - from.when);
  const Pace pace{
      .scatter = scatter,
      .hbm = {(now.hbm.read - from.hbm.read) / passed, (now.hbm.written - from.hbm.written) / passed},
  };
  std::optional<Ahead> ahead = step ? collectives_ahead(window, Turn::loop, pace) : Ahead{.repeats = {}, .pace = pace};
  if (!ahead && now.kernels.empty()) ahead = collectives_ahead(window, Turn::step, pace);
  if (!ahead || !fit(from, now, waves, *ahead)) return std::nullopt;
  if (now.kernels.empty()) ahead->time = settle(*ahead);
  leave_out(now, *ahead, elsewhere);
  if (ahead->rest && now.kernels.empty()) return Turn::step;
  const auto as_first = [&](const PhaseRepeats& repeats) { return repeats.period == ahead->repeats.front().period; };
  const bool alike = std::ranges::all_of(ahead->repeats, as_first);
  most_ = std::min((now.kernels.empty() && alike ? kGrowthAlone : kGrowth) * most_, kAllWindows);
  return Turn::loop;
}

bool SteadySteps::leave_out_known(const Mark& now, const TouchElsewhere& elsewhere) {
  if (paces_.empty() || !now.kernels.empty()) return false;
  const double at = phases(now);
  if (at < next_known_) return false;
  next_known_ = at + kBetweenKnown;
  const std::vector<PhaseRepeats>* repeated = repeats({&now, 1}, Turn::step);
  if (repeated == nullptr) return false;
  const std::vector<PhaseRepeats>& one = *repeated;
  const auto known = paces_.find(all_of(one));
  if (known == paces_.end()) return false;
  const double flags = turns_of_flags(now, one);
  if (flags < 1) return false;
  Ahead ahead{.repeats = turns_ahead(now, one, Turn::step, std::min(flags, kAllWindows)), .pace = known->second};
  if (ahead.repeats.empty()) return false;
  ahead.turns = ahead.repeats.front().turns;
  ahead.time = static_cast<double>(ahead.turns) * ahead.pace.turn;
  if (ahead.time > to_seconds(machine_->timed_left())) return false;
  ahead.time = settle(ahead);
  leave_out(now, ahead, elsewhere);
  return true;
}

// Once dirty lines leave the L2 as fast as others get dirty, collectives by themselves move what they did when they
// were looked at, whatever it makes of what it is told: that has the right lines, but not the order in which they come.
GpuProgress SteadySteps::not_told(const HbmBytes& moved, const GpuProgress& told) {
  const std::int64_t read = std::llround(moved.read) - told.hbm_read_bytes;
  const std::int64_t written = std::llround(moved.written) - told.hbm_write_bytes;
  return {.hbm_read_bytes = read, .hbm_write_bytes = written, .hbm_communication_bytes = read + written};
}

void SteadySteps::leave_out(const Mark& now, Ahead& ahead, const TouchElsewhere& elsewhere) {
  const bool alone = now.kernels.empty();
  const Gpu& first = machine_->gpu(0);
  const bool known = alone && first.fills_of_l2(now.hbm.read + now.hbm.written) > kFull;
  const HbmBytes moved{ahead.pace.hbm.read * ahead.time, ahead.pace.hbm.written * ahead.time};
  // Long before the end of what moves much, the L2 is not told of it. Where that is not known, it moves as much as the
  // end does.
  const double fills = first.fills_of_l2(moved.read + moved.written);
  const double told = std::min(1.0, (known ? kToldFillsAlone : kToldFills) / std::max(fills, 1e-9));
  if (told < 1) go_on(now, ahead, 0, 1 - told, Told::nothing, {});
  std::vector<GpuProgress> before;
  for (std::uint32_t g = 0; g < machine_->gpus(); ++g) before.push_back(machine_->gpu(g).skipped());
  const int parts = alone ? 1 : kParts;
  for (int part = 0; part < parts; ++part) {
    const auto share = [&](int p) { return p == parts ? 1.0 : 1 - told + told * p / parts; };
    go_on(now, ahead, share(part), share(part + 1), Told::all, elsewhere);
  }
  for (std::uint32_t g = 0; g < machine_->gpus(); ++g) {
    Gpu& gpu = machine_->gpu(g);
    GpuProgress more = gpu.skipped().since(before[g]).times(1 / told - 1);
    if (known && g == 0) more = not_told(moved, gpu.skipped().since(before[g]));
    gpu.add_left_out(more, g == 0 ? ahead.remote_lines : 0);
  }
  for_each_count(now, ahead.repeats, [&](std::uint32_t gpu, std::uint32_t flag, std::uint32_t by, std::uint64_t turns) {
    machine_->gpu(gpu).count_left_out(flag, static_cast<std::uint32_t>(turns * by),
                                      static_cast<std::uint32_t>(ahead.turns * by));
  });
  machine_->leave_out(ahead.time);
  uncertainty_ += machine_->gpu(0).clock().to_subcycles(nanoseconds(ahead.pace.scatter * ahead.time * 1e9));
}

}  // namespace weft
