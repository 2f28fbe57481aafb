#include "traces/late_starts.h"

#include <algorithm>
#include <numeric>

#include "workloads/graph.h"

namespace weft {
namespace {

bool on_device(const TraceOp& op) { return op.kind != TraceOpKind::host_wait; }

}  // namespace

std::vector<Time> late_starts(const TraceRank& rank) {
  std::vector<std::uint32_t> order(rank.ops.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return rank.ops[i].start; });
  std::vector<Time> late(rank.ops.size());
  std::optional<Time> idle_from;  // nothing: no operation was seen yet, what the device was at is not known
  for (const std::uint32_t i : order) {
    const TraceOp& op = rank.ops[i];
    if (!on_device(op)) continue;
    if (idle_from && op.kind != TraceOpKind::collective)
      late[i] = std::max(Time(0), op.start - std::max(op.issued, *idle_from) - kLaunching);
    idle_from = std::max(idle_from.value_or(Time(0)), op.start + op.duration);
  }
  return late;
}

std::optional<std::uint32_t> begun_late(const TraceRank& rank) {
  std::optional<std::uint32_t> first;
  for (std::uint32_t i = 0; i < rank.ops.size(); ++i) {
    const TraceOp& op = rank.ops[i];
    if (op.iteration && on_device(op) && (!first || op.start < rank.ops[*first].start)) first = i;
  }
  if (!first) return std::nullopt;
  const TraceOp& op = rank.ops[*first];
  const bool waits = std::ranges::any_of(
      op.waits, [&](std::uint32_t wait) { return rank.ops[wait].iteration.has_value() && on_device(rank.ops[wait]); });
  if (waits || op.kind == TraceOpKind::collective || op.start - op.issued <= kLaunching) return std::nullopt;
  return first;
}

}  // namespace weft
