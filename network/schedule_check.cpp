#include "network/schedule_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "network/generated_schedule.h"
#include "network/schedule_run.h"
#include "network/schedule_values.h"
#include "sim/error.h"

namespace weft {

namespace {

constexpr std::size_t kWaitsShown = 8;

void check_buffers(const CollectiveSchedule& schedule, const ScheduleRequest& request) {
  if (schedule.ranks() != request.ranks) {
    throw InputError(fmt::format("a schedule: expected {} ranks, got {}", request.ranks, schedule.ranks()));
  }
  for (std::uint32_t r = 0; r < request.ranks; ++r) {
    const auto check = [&](const char* buffer, std::int64_t expected, std::int64_t got) {
      if (expected != got) {
        throw InputError(fmt::format("rank {}: expected an {} of {} B, got {} B", r, buffer, expected, got));
      }
    };
    check("input", input_bytes_of(request, r), schedule.input_bytes(r));
    check("output", output_bytes_of(request, r), schedule.output_bytes(r));
  }
}

}  // namespace

void ScheduleRun::check_connections() const {
  for (const auto& [key, connection] : connections_) {
    if (connection.parcels.empty()) continue;
    const auto& [from, to, channel] = key;
    throw InputError(
        fmt::format("rank {}: expected to receive all that rank {} sends on channel {}, got {} pieces too "
                    "many",
                    to, from, channel, connection.parcels.size()));
  }
}

void ScheduleRun::report_deadlock() {
  std::string message = "a deadlock:";
  std::vector<std::uint32_t> waits_for_rank(request_.ranks, kNobody);
  std::size_t stuck = 0;
  for (const Agent& agent : agents_) {
    if (agent.done == agent.steps) continue;
    const Wait wait = waits_for(agent);
    if (waits_for_rank[agent.rank] == kNobody && wait.rank != agent.rank) waits_for_rank[agent.rank] = wait.rank;
    if (++stuck > kWaitsShown) continue;
    message += fmt::format("{} {} waits for {}", stuck > 1 ? ";" : "", describe(agent, agent.done), wait.what);
  }
  if (stuck > kWaitsShown) message += fmt::format("; and {} more", stuck - kWaitsShown);
  // Follow who waits for whom until a rank comes again: from there it is a circle.
  for (std::uint32_t start = 0; start < request_.ranks; ++start) {
    std::vector<std::uint32_t> path;
    std::uint32_t at = start;
    while (at != kNobody && std::find(path.begin(), path.end(), at) == path.end()) {
      path.push_back(at);
      at = waits_for_rank[at];
    }
    if (at == kNobody || path.empty()) continue;
    path.erase(path.begin(), std::find(path.begin(), path.end(), at));
    path.push_back(at);
    message += fmt::format(". In a circle: rank {}", fmt::join(path, " waits for rank "));
    break;
  }
  throw InputError(message);
}

void ScheduleRun::check_barrier() const {
  for (std::uint32_t r = 0; r < request_.ranks; ++r) {
    boost::dynamic_bitset<> started(request_.ranks);
    started.set(r);
    for (const Agent& agent : agents_) {
      if (agent.rank == r) started |= agent.known.started;
    }
    if (started.all()) continue;
    throw InputError(fmt::format("rank {}: expected to end after all ranks have begun, got no word of rank {}", r,
                                 (~started).find_first()));
  }
}

ScheduleRun::Cells ScheduleRun::result(std::uint32_t rank) const {
  const auto& memory = memory_[rank];
  const Cells& output = memory.at(static_cast<std::size_t>(ScheduleBuffer::output) - 1);
  if (!schedule_.in_place() || request_.kind != CollectiveKind::reduce_scatter) return output;
  const Cells& input = memory.at(static_cast<std::size_t>(ScheduleBuffer::input) - 1);
  const auto begin = input.begin() + rank * part_stride_of(request_) / request_.element_bytes;
  return {begin, begin + static_cast<long>(output.size())};
}

void ScheduleRun::check_result() const {
  if (request_.kind == CollectiveKind::barrier) return check_barrier();
  std::vector<std::uint64_t> sums;  // by element of the input
  for (std::int64_t e = 0; e < request_.bytes / request_.element_bytes; ++e) {
    sums.push_back(value_of(request_, {e, 0, true}));
  }
  for (std::uint32_t r = 0; r < request_.ranks; ++r) {
    const Cells output = result(r);
    for (std::size_t i = 0; i < output.size(); ++i) {
      const Cell& cell = output[i];
      const ExpectedElement expected = expected_element(request_, r, static_cast<std::int64_t>(i));
      if (cell.writer == kNobody) {
        throw InputError(fmt::format("rank {}, element {} of the output: expected to be written, got nothing", r, i));
      }
      const auto element = static_cast<std::size_t>(expected.element);
      if (cell.value == (expected.sum ? sums[element] : element_value(expected.rank, expected.element))) continue;
      const std::string place =
          cell.writer == kInitial ? fmt::format("rank {}", r) : describe(agents_[cell.writer], cell.step);
      throw InputError(fmt::format("{}: element {} of the output of rank {}: {}", place, i, r,
                                   explain_wrong_value(request_, expected, cell.value)));
    }
  }
}

ScheduleTotals check_schedule(const CollectiveSchedule& schedule, const ScheduleRequest& request, std::uint32_t slots) {
  WEFT_CHECK(slots > 0 && request.element_bytes > 0, "a connection without slots");
  check_buffers(schedule, request);
  ScheduleTotals totals;
  for (const bool backwards : {true, false}) {
    ScheduleRun run(schedule, request, slots);
    run.run(backwards);
    run.check_result();
    totals = run.take_totals();
  }
  return totals;
}

}  // namespace weft
