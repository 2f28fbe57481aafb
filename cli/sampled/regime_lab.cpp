#include "cli/sampled/regime_lab.h"

#include <algorithm>
#include <cmath>

#include "cli/run/standstill.h"
#include "cli/sampled/coarse_system.h"
#include "cli/sampled/gpus_apart.h"
#include "cli/sampled/kernel_paces.h"
#include "gpu_model/l2_of_addresses.h"
#include "cli/sampled/observed_regime.h"
#include "cli/sampled/repeated_steps.h"
#include "cli/sampled/steady_collectives.h"
#include "gpu_model/kernel_signature.h"

namespace weft {

namespace {
// Of GPUs that are simulated one by one, of whose collectives steps and rounds are left out, and whose drift is chance
// in part: up to 2.7 % were seen (docs/validation.md, Ranks that stay apart).
constexpr double kApartScatter = 0.0075;
// By one tree, where units may have only so many stores under way: 256 MiB on 8 H100 +8 % (docs/validation.md, Long
// collectives).
constexpr double kGrainScatterOfTrees = 0.1;
// Where they meet in routers, a few nanoseconds decide who comes first: `cycle` itself scatters by 0.4 to 3.3 % (eight
// launch latencies, six networks of 8 A100; docs/validation.md).
constexpr double kMeetingScatter = 0.02;

std::uint32_t first_collective_of(const Program& program) {
  const auto is_one = [](const ProgramOp& op) { return op.kind == ProgramOpKind::collective; };
  return static_cast<std::uint32_t>(std::ranges::find_if(program.ops, is_one) - program.ops.begin());
}

}  // namespace

RegimeLab::RegimeLab(const RunConfig& config, const std::vector<Program>& programs, const Scripts* scripts,
                     const RegimeLab* quiet)
    : config_(&config),
      programs_(&programs),
      scripts_(scripts),
      quiet_(quiet),
      like_(quiet != nullptr ? quiet->like_ : std::make_shared<LikeKernels>(config.system.gpu, programs.front())),
      first_collective_(first_collective_of(programs.front())),
      uneven_(uneven_operations(programs.front(), scripts)) {}

RegimeLab::~RegimeLab() = default;

std::optional<std::string> RegimeLab::why_not_folded() const {
  if (grains_.empty()) return std::nullopt;
  return grains_.begin()->second.folded->why_not();
}

// Nothing but collectives runs from there on, and the first one is uneven.
bool RegimeLab::is_uneven_row(std::uint32_t op) const {
  const SharedList<ProgramOp>& ops = programs_->front().ops;
  return scripts_ != nullptr && uneven_[op] &&
         std::all_of(ops.begin() + op, ops.end(), [](const ProgramOp& o) { return o.kind != ProgramOpKind::kernel; });
}

bool RegimeLab::next_begins_apart(OpId op) {
  const SharedList<ProgramOp>& ops = programs_->front().ops;
  const std::uint32_t next = op.value + 1;
  if (scripts_ == nullptr || !uneven_[op.value]) return false;
  if (next == ops.size() || ops[next].kind != ProgramOpKind::collective) return false;
  const FoldedMachine& folded = *at_grain(1).folded;
  return folded.why_not().empty() ? folded.standing() > 1 : is_uneven_row(op.value);
}

std::uint32_t RegimeLab::standing() const { return grains_.empty() ? 0 : grains_.begin()->second.folded->standing(); }

bool RegimeLab::has_alike_trees() const {
  return !grains_.empty() && grains_.begin()->second.folded->has_alike_trees();
}

L2Cache RegimeLab::l2_before(OpId op) {
  if (l2_ && l2_at_ == op.value) return *l2_;
  if (flow_ != nullptr && flow_next_ == op.value) {
    L2Cache l2 = flow_->l2();
    l2.rest();
    return l2;
  }
  if (quiet_ != nullptr) {
    if (const auto found = quiet_->kept_.find(op.value); found != quiet_->kept_.end()) return found->second;
  }
  // From the last time that it was known, with what has been touched since then.
  const bool of_flow = flow_ != nullptr && flow_next_ < op.value;
  const bool of_stretch = l2_ && l2_at_ < op.value && (!of_flow || l2_at_ > flow_next_);
  if (of_flow || of_stretch) {
    L2Cache l2 = of_stretch ? *l2_ : flow_->l2();
    const OpId from{of_stretch ? l2_at_ : flow_next_};
    if (touch_operations(config_->system.gpu, programs_->front(), from, op, scripts_ != nullptr, l2)) return l2;
  }
  return l2_of_addresses(config_->system.gpu, programs_->front(), op, scripts_ != nullptr);
}

void RegimeLab::keep_l2(const L2Cache& l2, std::uint32_t next) {
  l2_ = l2;
  l2_->rest();
  l2_at_ = next;
}

// All from `first` on has arrived and nothing runs.
HostState RegimeLab::state_before(std::uint32_t first) const {
  const auto ops = static_cast<std::uint32_t>(programs_->front().ops.size());
  return {OpId{first}, ops, std::vector<SubCycle>(ops - first, 0), {}};
}

// Collectives end at once.
GpuWork RegimeLab::quiet_work() {
  if (!copies_) copies_.emplace(*config_, *programs_);
  GpuWork work = copies_->work(0);
  for (std::size_t i = 0; i < work.scripts.size(); ++i) {
    if (work.program->ops[i].kind == ProgramOpKind::collective) work.scripts[i] = &nothing_;
  }
  return work;
}

std::unique_ptr<Machine> RegimeLab::quiet_machine(const HostState& state) {
  std::vector<GpuWork> work{quiet_work()};
  work.front().from = &state;
  work.front().skip_waves = true;
  return std::make_unique<Machine>(config_->system, work);
}

std::unique_ptr<Machine> RegimeLab::machine_from(const std::vector<HostState>& states, Grain& at, bool round_rings) {
  std::vector<GpuWork> work;
  if (at.folded->why_not().empty()) {
    for (std::uint32_t g = 0; g < at.folded->standing(); ++g) {
      work.push_back(at.folded->work(g));
      work.back().from = &states.front();
      work.back().skip_waves = at.folded->standing() == 1;
      work.back().kernels_timed = round_rings && g > 0;
    }
    return at.folded->machine(at.system, work);
  }
  for (std::size_t g = 0; g < programs_->size(); ++g) {
    work.push_back(at.each->work(g));
    work.back().from = &states[states.size() > 1 ? g : 0];
  }
  return std::make_unique<Machine>(at.system, work, at.each->multicast_groups(), CarriedValues(),
                                   at.each->aggregation_groups(), config_->seed);
}

void RegimeLab::count(const Machine& machine) {
  for (std::size_t g = 0; g < machine.gpus(); ++g) {
    memory_transactions_ += machine.gpu(g).statistics().memory_transactions;
  }
  for (const Machine::Link& link : machine.links()) packets_ += link.statistics->packets;
}

Regime RegimeLab::company(const HostState& state, bool by_itself, const std::vector<SubCycle>& apart) {
  const bool round_rings = !by_itself && goes_round_rings();
  if (round_rings && grain_from(state.first.value) > 1) return long_ring(state, grain_from(state.first.value));
  std::uint32_t grain = 1;
  if (by_itself) grain = grain_of(state.first);
  if (!by_itself && is_uneven_row(state.first.value)) grain = grain_from(state.first.value);
  const std::unique_ptr<Grain> by_fewer = by_itself && apart.empty() ? folded_alone(state.first, grain) : nullptr;
  const std::vector<HostState> states = apart.empty() ? std::vector{state} : states_of(state, apart);
  const std::unique_ptr<Machine> machine =
      scripts_ == nullptr ? quiet_machine(state)
                          : machine_from(states, by_fewer ? *by_fewer : at_grain(grain), round_rings);
  const bool one_by_one = scripts_ != nullptr && !by_fewer && !at_grain(grain).folded->why_not().empty();
  // One by one, GPUs that are apart begin the next stretch so; but a row of collectives is one.
  const bool waits_for_all = !one_by_one || is_uneven_row(state.first.value);
  const L2Cache before = l2_before(state.first);
  machine->set_l2(grain == 1 ? before : at_grain(before, 1, grain));
  SteadyCollectives steady(*machine);
  SteadySequence sequence(*machine, programs_->front(), state.first.value);
  KernelPaces paces = paces_of(*machine);
  const ProgramPlace from{state.first.value, std::max(state.first.value, state.end)};
  const Program& program = programs_->front();
  const auto [to, after, all_at_once] = machine->run_until_quiet(
      from, config_->threads,
      [&](Time now) {
        if (round_rings) paces.look(now);
        steady.look(now);
        sequence.look(now);
      },
      [&](const std::vector<std::uint32_t>& ended) {
        const bool to_wait = !by_itself && waits_for_all && ended_apart(*machine, program, uneven_, ended);
        if (to_wait) sequence.begin();
        return to_wait;
      });
  if (to == from) throw Standstill("a stretch of the program comes to a standstill");
  Waits waits = one_by_one ? Waits::never : Waits::each_collective;
  if (all_at_once) waits = Waits::at_the_end;
  Regime regime =
      observed_regime(*machine, program, state, by_itself ? state.first.value + 1 : to.end, waits, round_rings);
  regime.uncertainty =
      steady.uncertainty() + sequence.uncertainty() + std::llround(std::sqrt(machine->gpu(0).skip_variance()));
  if (grain > 1) tell_real_network(*machine, grain, regime);
  count(*machine);
  SubCycle last = 0;
  for (std::uint32_t i = state.first.value; i < to.end; ++i) last = std::max(last, machine->gpu(0).times()[i].end);
  const bool by_tree = uneven_[state.first.value] &&
                       programs_->front().ops[state.first.value].collective.kind == CollectiveKind::all_reduce;
  const bool few_stores = config_->system.gpu.compute_unit.max_outstanding_stores > 0;
  double scatter = 0;
  if (grain > 1) scatter = by_tree && few_stores ? kGrainScatterOfTrees : kGrainScatter;
  if (scripts_ != nullptr) {
    const FoldedMachine& folded = *(by_fewer ? *by_fewer : at_grain(grain)).folded;
    const double of_each = flows_meet() ? kMeetingScatter : kApartScatter;
    scatter += folded.why_not().empty() ? folded.scatter(state.first.value, to.end) : of_each;
  }
  SubCycle whole = last;  // the first GPU may be through before others
  for (const Regime::Operation& op : regime.operations) whole = std::max(whole, op.duration + op.late);
  regime.uncertainty += static_cast<SubCycle>(scatter * static_cast<double>(whole));
  simulated_ += machine->gpu(0).clock().to_time(last - machine->gpu(0).skipped().at);
  keep_l2(grain == 1 ? after : at_grain(after, grain, 1), to.first);
  keep_before_first_collective(OpId{to.first});
  return regime;
}

}  // namespace weft
