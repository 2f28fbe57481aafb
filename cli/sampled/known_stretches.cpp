// Stretches of a program by their names: those that are known, and those that are simulated.
#include "cli/sampled/sampled_timeline.h"

namespace weft {

std::string SampledTimeline::key_up_to(const RegimeKeys::Stretch& stretch, const HostState& state, std::uint32_t end,
                                       std::uint32_t open_from, SubCycle now) const {
  const auto ops = static_cast<std::uint32_t>(program_->ops.size());
  while (end < ops && had_ended(*program_, state, end)) ++end;
  return stretch.before(OpId{end}, end < ops ? arrival_of(end, now) : -1, open_from);
}

// Of the operations up to here, all may have ended but for the last of one stream, for which the next other one waits.
const Regime* SampledTimeline::known_but_for_one_stream(const RegimeKeys::Stretch& stretch, const HostState& state,
                                                        std::uint32_t end, SubCycle now) {
  const SharedList<ProgramOp>& ops = program_->ops;
  const std::uint32_t first = state.first.value;
  for (std::uint32_t s = 0; s < streams_.size(); ++s) {
    const auto is_of_it = [&](std::uint32_t op) {
      return ops[op].kind != ProgramOpKind::host_wait && ops[op].stream.value == s;
    };
    if (is_of_it(end - 1)) continue;
    std::uint32_t next = end;
    while (next < ops.size() && is_of_it(next)) ++next;
    if (next == ops.size() || std::ranges::none_of(ops[next].waits, [&](OpId wait) { return is_of_it(wait.value); })) {
      continue;
    }
    for (auto open = streams_[s].begin() + static_cast<std::ptrdiff_t>(heads_[s]);
         open != streams_[s].end() && *open < end; ++open) {
      const std::string key = key_up_to(stretch, state, end, *open - first + 1, now);
      if (const Regime* regime = memory_->find(key, end - first)) return regime;
    }
  }
  return nullptr;
}

const Regime* SampledTimeline::known_stretch(const HostState& state, SubCycle now) {
  RegimeKeys::Stretch stretch(keys_, state, apart_);
  const std::set<std::size_t>* lengths = nullptr;
  for (std::uint32_t i = state.first.value; i < program_->ops.size(); ++i) {
    if (had_ended(*program_, state, i)) continue;
    stretch.add(OpId{i}, arrival_of(i, now));
    if (lengths == nullptr) lengths = &memory_->lengths(stretch.name());
    const std::size_t length = i + 1 - state.first.value;
    if (lengths->lower_bound(length) == lengths->end()) return nullptr;  // all are shorter
    if (!lengths->contains(length)) continue;
    const Regime* regime = memory_->find(key_up_to(stretch, state, i + 1, 0, now), length);
    if (regime == nullptr) regime = known_but_for_one_stream(stretch, state, i + 1, now);
    if (regime != nullptr) return regime;
  }
  return nullptr;
}

const Regime& SampledTimeline::simulated_stretch(const HostState& state, SubCycle now, bool by_itself) {
  Regime regime = lab_->company(state, by_itself, apart_);
  RegimeKeys::Stretch stretch(keys_, state, apart_);
  const std::uint32_t first = state.first.value;
  const auto end = first + static_cast<std::uint32_t>(regime.operations.size());
  std::uint32_t open_from = 0;  // none is
  std::string beginning;
  for (std::uint32_t i = first; i < end; ++i) {
    if (had_ended(*program_, state, i)) continue;
    stretch.add(OpId{i}, arrival_of(i, now));
    if (beginning.empty()) beginning = stretch.name();
    if (open_from == 0 && regime.operations[i - first].duration < 0) open_from = i - first + 1;
  }
  if (!by_itself) seen_ = {first, end};
  return memory_->add(key_up_to(stretch, state, end, open_from, now), std::move(regime), beginning);
}

}  // namespace weft
