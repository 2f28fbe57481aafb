#include "cli/run/collective_phases.h"

#include <algorithm>

namespace weft {

namespace {

Interval interval_of(const OperationRecord& operation) {
  return {seconds(operation.start_s), seconds(operation.end_s)};
}

// What lies in `all` and not in `taken`, both disjoint and sorted.
std::vector<Interval> without(const std::vector<Interval>& all, const std::vector<Interval>& taken) {
  std::vector<Interval> left;
  for (Interval rest : all) {
    for (const Interval& one : taken) {
      if (one.end <= rest.start || one.start >= rest.end) continue;
      left.push_back({rest.start, std::max(rest.start, one.start)});
      rest.start = std::min(rest.end, one.end);
    }
    left.push_back(rest);
  }
  return union_of(std::move(left));
}

}  // namespace

std::vector<CollectivePhases> collective_phases(const Scripts& scripts, const Machine& machine) {
  std::vector<CollectivePhases> phases(machine.gpus());
  for (const Scripts::Collective& collective : scripts.collectives()) {
    Time last;
    bool ended = true;
    const auto times = [&](const auto& member) { return machine.gpu(member.first).times()[member.second.value]; };
    const auto at = [&](const auto& member, SubCycle t) { return machine.gpu(member.first).clock().to_time(t); };
    for (const auto& member : collective.members) {
      last = std::max(last, at(member, times(member).began()));
      ended = ended && times(member).end >= 0;
    }
    if (!ended) continue;
    for (const auto& member : collective.members) {
      const Time start = at(member, times(member).began());
      const Time end = at(member, times(member).end);
      phases[member.first].waiting.push_back({start, std::min(last, end)});
      phases[member.first].moving.push_back({last, std::max(last, end)});
    }
  }
  for (CollectivePhases& gpu : phases) {
    gpu.moving = union_of(std::move(gpu.moving));
    gpu.waiting = without(union_of(std::move(gpu.waiting)), gpu.moving);
  }
  return phases;
}

void place_beside(const std::vector<CollectivePhases>& phases, std::vector<OperationRecord>& operations) {
  for (OperationRecord& operation : operations) {
    if (operation.communication) continue;
    const Interval ran = interval_of(operation);
    operation.beside_waiting_s = to_seconds(overlap(ran, phases[operation.gpu].waiting));
    operation.beside_moving_s = to_seconds(overlap(ran, phases[operation.gpu].moving));
  }
}

SlowdownByCause caused_by_waiting(const OperationRecord& operation) {
  const double beside = operation.beside_waiting_s + operation.beside_moving_s;
  if (beside <= 0) return {};  // what moved before has changed the cache
  SlowdownByCause causes = operation.causes;
  causes.compute_units *= operation.beside_waiting_s / beside;
  if (operation.beside_moving_s > 0) causes.hbm = causes.cache = causes.links = 0;
  return causes;
}

}  // namespace weft
