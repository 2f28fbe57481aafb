#include "cli/sampled/steady_turns.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include "gpu_model/wave_skip.h"

namespace weft {

namespace {

// How far apart groups may seem to go in a window though they go together, in phases of those that have the fewest: who
// waits stands at the beginning of a phase. Who has many phases to one of others' goes through them in bursts, but at
// the ends of windows, which hold whole ones of those, is equally far in them.
constexpr double kApart = 2;
constexpr double kApartInBursts = 0.25;
// Of the groups' turns in a window, from the fewest to the most as a share of their mean, for them to agree; and where
// all do alike and are told by the slowest one: behind it all that lies between is full and one passes on what the next
// has room for, which takes a quarter longer than in step (docs/validation.md, Scale).
constexpr double kAgree = 2 * WaveSkip::kSettled;
constexpr double kHeldUp = 0.3;

// Whole turns, of those that tell it, from which is seen who gets ahead of them.
constexpr double kTurnsOfLead = 3;

// Of the groups of warps that have the fewest phases in a turn, from the beginning of one to that of another. The first
// one is no measure: it begins with the kernel, and waits until there is something to do.
std::optional<double> turn_of_fewest(std::span<const SteppingWarps> from, std::span<const SteppingWarps> to,
                                     std::uint32_t fewest, const std::vector<PhaseRepeats>& repeats) {
  double sum = 0;
  std::size_t groups = 0;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i].period != fewest) continue;
    const std::uint32_t phases = to[i].at.phase - from[i].at.phase;
    if (phases == 0 || from[i].at.phase == 0) return std::nullopt;
    sum += to_seconds(to[i].at.entered - from[i].at.entered) * fewest / phases;
    ++groups;
  }
  return sum / static_cast<double>(groups);
}

// Turns that groups went through.
struct Turns {
  double least = std::numeric_limits<double>::max();
  double most = 0;
  double sum = 0;
  std::size_t groups = 0;

  void add(double turns) {
    least = std::min(least, turns);
    most = std::max(most, turns);
    sum += turns;
    ++groups;
  }
  [[nodiscard]] double mean() const { return sum / static_cast<double>(groups); }
  // `apart`: how far they may seem to be.
  [[nodiscard]] bool agree(double apart, double share = kAgree) const { return most - least <= share * mean() + apart; }
};

// Groups that do the same go on together; who is ahead of the slowest gets further ahead.
std::vector<double> leads_of(const std::vector<double>& turns, std::uint32_t fewest,
                             const std::vector<PhaseRepeats>& repeats) {
  std::map<std::uint64_t, Turns> roles;
  Turns slowest;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    roles[repeats[i].role].add(turns[i]);
    if (repeats[i].period == fewest) slowest.add(turns[i]);
  }
  if (slowest.mean() < kTurnsOfLead || !slowest.agree(kApartInBursts)) return {};
  std::vector<double> leads;
  for (const PhaseRepeats& of : repeats) {
    const Turns& role = roles.at(of.role);
    Turns both = slowest;
    both.add(role.mean());
    const bool ahead = role.mean() > slowest.mean();
    if (!role.agree(kApartInBursts) || (!ahead && !both.agree(kApartInBursts))) return {};
    leads.push_back(ahead && !both.agree(kApartInBursts) ? role.mean() / slowest.mean() : 1);
  }
  return leads;
}

}  // namespace

std::optional<SteadyTurn> turn_between(std::span<const SteppingWarps> from, std::span<const SteppingWarps> to,
                                       double window, const std::vector<PhaseRepeats>& repeats) {
  Turns all;
  std::vector<double> turns;
  std::uint32_t shortest = kLongestTurn;
  std::size_t rear = 0;
  bool alike = true;
  const PhaseRepeats& first = repeats.front();
  const auto place = [&](std::size_t i) { return from[i].at.phases / repeats[i].period; };
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (place(i) < place(rear)) rear = i;
    alike = alike && repeats[i].remote_lines * first.period == first.remote_lines * repeats[i].period;
    turns.push_back((to[i].at.phases - from[i].at.phases) / repeats[i].period);
    all.add(turns.back());
    shortest = std::min(shortest, repeats[i].period);
  }
  const double mean = all.mean();
  const bool unlike = std::ranges::any_of(repeats, [&](const PhaseRepeats& r) { return r.period != shortest; });
  const CollectiveSteps& before = from[rear].at;
  const CollectiveSteps& after = to[rear].at;
  const std::uint32_t phases = after.phase - before.phase;
  const bool rear_tells = alike && !unlike && phases > 0 && (repeats[rear].even || phases % repeats[rear].period == 0);
  std::vector<double> leads;
  if (!all.agree((unlike ? kApartInBursts : kApart) / shortest, rear_tells ? kHeldUp : kAgree)) {
    if (unlike) leads = leads_of(turns, shortest, repeats);
    if (leads.empty()) return std::nullopt;
  }
  if (unlike) {
    const auto seconds = turn_of_fewest(from, to, shortest, repeats);
    return seconds ? std::optional(SteadyTurn{*seconds, std::move(leads)}) : std::nullopt;
  }
  const double turn = window / mean;
  if (!rear_tells) return SteadyTurn{turn, {}};
  // From entry to entry, or by how far it is within its phases: one may have a beginning in it, the other is not exact.
  const double passed = (after.phases - before.phases) / repeats[rear].period;
  const double its_turn =
      std::min(to_seconds(after.entered - before.entered) * repeats[rear].period / phases, turn * mean / passed);
  return SteadyTurn{std::max(its_turn, turn), {}};
}

std::optional<double> whole_turn(std::span<const TurnsAt> marks) {
  const TurnsAt& last = marks.back();
  const double turns = std::floor(last.turns - marks.front().turns);
  if (turns < 1) return std::nullopt;
  std::size_t next = 0;  // mark after those turns began
  while (marks[next].turns < last.turns - turns) ++next;
  double began = marks[next].seconds;
  if (next > 0) {  // the first one may be it, and others that collectives beside kernels only waited between
    const TurnsAt& before = marks[next - 1];
    const double share = (last.turns - turns - before.turns) / (marks[next].turns - before.turns);
    began = before.seconds + share * (marks[next].seconds - before.seconds);
  }
  return (last.seconds - began) / turns;
}

}  // namespace weft
