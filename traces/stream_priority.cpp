#include "traces/stream_priority.h"

#include <algorithm>
#include <map>

namespace weft {

namespace {

// Of threads on a unit of all GPUs here: with fewer blocks on one, a kernel has more waves.
constexpr double kMostThreads = 2048;
// The others are choices: one recording, of several streams that compute, was there to look at (docs/validation.md).
constexpr double kManyWaves = 4;
// Blocks do not take equally long: who began before so many waves, and such a part of a kernel's time, from its end
// found it with blocks to place.
constexpr double kLastWaves = 2;
constexpr double kLastPart = 0.1;
constexpr std::uint32_t kFewest = 2;

struct Seen {
  std::uint32_t ahead = 0, behind = 0;
};

double waves_of(const TraceOp& op, std::uint32_t units) {
  if (op.kind != TraceOpKind::kernel || !op.shape) return 0;
  return static_cast<double>(op.shape->blocks()) * op.shape->threads_per_block() / (units * kMostThreads);
}

}  // namespace

std::vector<std::uint32_t> urgent_streams(const TraceRank& rank) {
  if (rank.compute_units == 0 || rank.device.starts_with("AMD")) return {};
  std::vector<const TraceOp*> by_start;
  for (const TraceOp& op : rank.ops) {
    if (op.kind == TraceOpKind::kernel || op.kind == TraceOpKind::collective) by_start.push_back(&op);
  }
  std::ranges::stable_sort(by_start, {}, &TraceOp::start);
  std::map<std::uint32_t, const TraceOp*> last;  // that had begun, by stream
  std::map<std::uint32_t, Seen> streams;
  for (const TraceOp* op : by_start) {
    for (const auto& [stream, other] : last) {
      const double waves = waves_of(*other, rank.compute_units);
      const Time left = other->start + other->duration - op->start;
      if (stream == op->stream || waves < kManyWaves || left <= Time()) continue;
      const bool blocks_waited =
          to_seconds(left) > to_seconds(other->duration) * std::max(kLastWaves / waves, kLastPart);
      ++(blocks_waited ? streams[op->stream].ahead : streams[op->stream].behind);
    }
    last[op->stream] = op;
  }
  std::vector<std::uint32_t> urgent;
  for (const auto& [stream, seen] : streams) {
    if (seen.ahead > seen.behind && seen.ahead >= kFewest) urgent.push_back(stream);
  }
  return urgent;
}

}  // namespace weft
