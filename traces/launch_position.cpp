#include "traces/launch_position.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include "sim/error.h"

namespace weft {
namespace {

std::vector<Interval> intervals_of(const TraceRank& rank, TraceOpKind kind) {
  std::vector<Interval> out;
  for (const TraceOp& op : rank.ops)
    if (op.kind == kind) out.push_back({op.start, op.start + op.duration});
  return union_of(std::move(out));
}

// So long before it could start an operation was issued that its start did not wait for the host; and what starts later
// than that behind the one before waited for something that is not known.
constexpr Time kLongBefore = microseconds(20);

// By operation, the one before it on its stream.
std::vector<std::optional<std::uint32_t>> before_on_streams(const TraceRank& rank) {
  std::vector<std::optional<std::uint32_t>> before(rank.ops.size());
  std::map<std::uint32_t, std::uint32_t> last;
  for (std::uint32_t i = 0; i < rank.ops.size(); ++i) {
    if (rank.ops[i].kind == TraceOpKind::host_wait) continue;
    if (const auto found = last.find(rank.ops[i].stream); found != last.end()) before[i] = found->second;
    last[rank.ops[i].stream] = i;
  }
  return before;
}

std::optional<Time> behind(const TraceOp& op, const TraceOp& before, const std::vector<Interval>& collectives) {
  const Time end = before.start + before.duration;
  if (!op.waits.empty() || before.kind == TraceOpKind::collective || op.issued + kLongBefore > end) return std::nullopt;
  if (op.start < end || op.start > end + kLongBefore) return std::nullopt;
  if (overlap({before.start, op.start + op.duration}, collectives) > Time(0)) return std::nullopt;
  return op.start - end;
}

}  // namespace

std::vector<Interval> communication(const TraceRank& rank) { return intervals_of(rank, TraceOpKind::collective); }
std::vector<Interval> computation(const TraceRank& rank) { return intervals_of(rank, TraceOpKind::kernel); }

std::vector<LaunchPosition> launch_positions(const TraceRank& rank) {
  // Kernels are counted apart from copies and memsets, as in the study that gives the reference figures.
  using Counter = std::tuple<std::uint32_t, std::uint32_t, bool>;  // iteration, stream, kernel
  using Key = std::tuple<std::uint32_t, bool, std::uint32_t, std::string_view, std::array<std::uint32_t, 3>>;
  std::map<Counter, std::uint32_t> counters;
  std::map<Key, std::vector<std::uint32_t>> positions;
  for (std::uint32_t i = 0; i < rank.ops.size(); ++i) {
    const TraceOp& op = rank.ops[i];
    if (!op.iteration || op.kind == TraceOpKind::collective || op.kind == TraceOpKind::host_wait) continue;
    const bool kernel = op.kind == TraceOpKind::kernel;
    const std::uint32_t n = counters[{*op.iteration, op.stream, kernel}]++;
    const auto grid = op.shape ? op.shape->grid : std::array<std::uint32_t, 3>{};
    positions[{op.stream, kernel, n, op.name, grid}].push_back(i);
  }
  const std::vector<Interval> collectives = communication(rank);
  const auto before = before_on_streams(rank);
  std::vector<LaunchPosition> out;
  out.reserve(positions.size());
  for (auto& [key, ops] : positions) {
    LaunchPosition position;
    std::vector<Time> alone;
    std::vector<Time> overlapped;
    std::vector<Time> gaps;
    position.shortest = rank.ops[ops.front()].duration;
    for (const std::uint32_t i : ops) {
      const TraceOp& op = rank.ops[i];
      position.shortest = std::min(position.shortest, op.duration);
      const Time beside = overlap({op.start, op.start + op.duration}, collectives);
      if (beside == Time()) {
        alone.push_back(op.duration);
      } else if (static_cast<double>(beside.count()) >= 0.9 * static_cast<double>(op.duration.count())) {
        overlapped.push_back(op.duration);
      }
      if (!before[i]) continue;
      if (const auto gap = behind(op, rank.ops[*before[i]], collectives)) gaps.push_back(*gap);
    }
    if (!alone.empty()) position.alone = median(std::move(alone));
    if (!overlapped.empty()) position.overlapped = median(std::move(overlapped));
    if (!gaps.empty()) position.behind = median(std::move(gaps));
    position.ops = std::move(ops);
    out.push_back(std::move(position));
  }
  return out;
}

Time median(std::vector<Time> values) {
  WEFT_CHECK(!values.empty(), "median of nothing");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return Time(values[middle - 1].count() + (values[middle].count() - values[middle - 1].count()) / 2);
}

}  // namespace weft
