// The few figures that a result is judged by, from its result.json document. Summaries and reports share them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/result.h"

namespace weft {

struct CauseFigure {
  const char* key;   // in slowdown_by_cause
  const char* name;  // for people
  double seconds = 0;
};

// Times in seconds, of one iteration. Absent: does not apply.
struct Figures {
  std::string status;
  std::optional<double> iteration_s, forward_s, backward_s, backward_isolated_s, backward_slowdown, optimizer_s;
  std::optional<double> communication_s, exposed_s, overlapped_s, idle_s;
  std::optional<double> compute_s;  // iteration less exposed communication and idle time: some kernel computes
  std::vector<CauseFigure> causes;  // the four of slowdown_by_cause in its order; empty when absent
  std::optional<double> samples_per_s, tokens_per_s, scaling_efficiency;
  // Over all collectives: bytes on the bus by their time, so that many small ones do not hide a large one.
  std::optional<double> busbw_GBps;
  std::size_t collectives = 0;
  // Of one GPU and iteration, mean over GPUs.
  std::optional<double> hbm_bytes, hbm_communication_bytes, compute_unit_seconds_communication;
};

// Throws InputError when `result` is no weft-result/1 document.
[[nodiscard]] Figures figures_of(const Json& result);

// The same for the page's scripts: keys as the members, null where absent, causes as [ { key, name, seconds } ].
[[nodiscard]] Json figures_json(const Figures& figures);

// What ran: "resnet50, batch 64 on 8 x dgx-a100, ring all-reduce". Says what the configuration holds, no more.
[[nodiscard]] std::string describe_run(const Json& config);

// One or two sentences: what the run shows, and why.
[[nodiscard]] std::string verdict(const Json& result);

// What differs between the runs and why, from their numbers; empty for fewer than two.
[[nodiscard]] std::string comparison_verdict(const std::vector<std::pair<std::string, Json>>& results);

}  // namespace weft
