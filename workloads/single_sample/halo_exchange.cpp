#include "workloads/single_sample/halo_exchange.h"

#include <algorithm>

namespace weft {

namespace {

// One side. Parts lie in the order of their places, so what comes from the nearest rank is next to the own rows.
TimeRows bring(TrainingStep& step, const TimeAxis& axis, const Matrix& own, std::int64_t wanted, bool from_before) {
  const std::int64_t own_steps = axis.own_steps();
  const std::int64_t elements_a_step = axis.batch * own.columns;
  const std::uint32_t ranks = axis.split.size();
  const std::int64_t count = std::min(wanted, (ranks - 1) * own_steps);
  const char* name = from_before ? "halo_from_before" : "halo_from_behind";
  const TensorId halo =
      step.temporary(name, count * elements_a_step * step.precision().element_bytes, MemoryClass::communication);
  std::int64_t there = 0;
  for (std::uint32_t away = 1; there < count; ++away) {
    const std::int64_t part = std::min(own_steps, count - there);
    const std::int64_t from = from_before ? own_steps - part : 0;
    const std::int64_t to = from_before ? count - there - part : there;
    const OpId op = communicate(step, name, CollectiveKind::shift, axis.split.gpus,
                                elements(step, own.tensor, from * elements_a_step, part * elements_a_step),
                                elements(step, halo, to * elements_a_step, part * elements_a_step));
    step.graph().node(op).collective.distance = from_before ? away : ranks - away;
    there += part;
  }
  return {halo, from_before ? axis.first_step() - count : axis.first_step() + own_steps, count};
}

}  // namespace

HaloedRows exchange_halos(TrainingStep& step, const TimeAxis& axis, const Matrix& own, std::int64_t before,
                          std::int64_t after) {
  HaloedRows rows{own, {{own.tensor, axis.first_step(), axis.own_steps()}}};
  if (axis.split.size() == 1) return rows;
  if (before > 0) rows.parts.insert(rows.parts.begin(), bring(step, axis, own, before, true));
  if (after > 0) rows.parts.push_back(bring(step, axis, own, after, false));
  return rows;
}

}  // namespace weft
