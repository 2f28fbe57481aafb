#include "cli/sweep/sweep_status.h"

#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

namespace weft {

namespace {

enum class RunState { done, failed, timeout, running, pending };

struct Run {
  RunState state = RunState::pending;
  std::string reason;
};

Run state_of(const std::string& key, const RunStore& store, std::chrono::seconds stale_after) {
  if (store.done(key)) return {RunState::done, ""};
  if (store.claimed(key, stale_after)) return {RunState::running, ""};
  const auto failure = store.failure(key);
  if (!failure) return {};
  return {failure->status == "timeout" ? RunState::timeout : RunState::failed, failure->reason};
}

}  // namespace

SweepStatus status_of(const Manifest& manifest, const RunStore& store, std::chrono::seconds stale_after) {
  std::unordered_map<std::string, Run> runs;
  SweepStatus status;
  double wall_s = 0;
  std::size_t done = 0, running = 0, left = 0;
  for (const std::string& key : runs_of(manifest)) {
    const Run& run = runs[key] = state_of(key, store, stale_after);
    running += run.state == RunState::running ? 1 : 0;
    left += run.state == RunState::pending ? 1 : 0;
    if (run.state != RunState::done) continue;
    const RunCost cost = store.cost(key);
    status.cpu_s += cost.cpu_s;
    wall_s += cost.wall_s;
    ++done;
  }
  if (done > 0 && running > 0) {
    // Those under way are taken to be half done.
    const double runs_left = static_cast<double>(left) + 0.5 * static_cast<double>(running);
    status.seconds_left = wall_s / static_cast<double>(done) * runs_left / static_cast<double>(running);
  }
  status.points = manifest.points.size();
  for (std::size_t p = 0; p < manifest.points.size(); ++p) {
    const SweepPoint& point = manifest.points[p];
    const Run run = point.key.empty() ? Run{RunState::failed, point.reason} : runs[point.key];
    switch (run.state) {
      case RunState::done:
        ++status.done;
        break;
      case RunState::failed:
        ++status.failed;
        break;
      case RunState::timeout:
        ++status.timeout;
        break;
      case RunState::running:
        ++status.running;
        break;
      case RunState::pending:
        ++status.pending;
        break;
    }
    if (!run.reason.empty()) status.reasons.emplace_back(p, run.reason);
  }
  return status;
}

std::string status_text(const SweepStatus& status) {
  std::string text = fmt::format("{} points: {} done, {} failed, {} timed out, {} running, {} pending\n", status.points,
                                 status.done, status.failed, status.timeout, status.running, status.pending);
  if (status.seconds_left > 0) text += fmt::format("about {} left\n", duration_text(status.seconds_left));
  constexpr std::size_t kShown = 10;
  for (std::size_t r = 0; r < status.reasons.size() && r < kShown; ++r) {
    text += fmt::format("  point {}: {}\n", status.reasons[r].first, status.reasons[r].second);
  }
  if (status.reasons.size() > kShown)
    text += fmt::format("  and {} more (results.csv has all)\n", status.reasons.size() - kShown);
  return text;
}

Json status_json(const SweepStatus& status) {
  return {{"points", status.points},
          {"done", status.done},
          {"failed", status.failed},
          {"timeout", status.timeout},
          {"running", status.running},
          {"pending", status.pending},
          {"cpu_s", status.cpu_s},
          {"seconds_left", status.seconds_left > 0 ? Json(status.seconds_left) : Json(nullptr)}};
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace weft
