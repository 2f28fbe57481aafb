// The books of a program's host, driven by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gpu_model/frontend.h"
#include "tests/gpu_model/small_gpu.h"

namespace weft {

inline constexpr SubCycle n(std::int64_t whole) { return cycles(whole); }

// The books of a program under the small GPU's launch times: 1000 a launch, 2000 on the way, 3000 a collective.
struct Host {
  explicit Host(std::vector<ProgramOp> ops, const HostSpec& host = {}, std::size_t streams = 2,
                const LaunchSpec& launch = small_gpu().launch)
      : program(program_of(std::move(ops), streams)), frontend(program, launch, host, ClockDomain(megahertz(1000))) {}
  // Issues all that the host can issue, each arriving at once; returns what may start.
  std::vector<std::uint32_t> issue_all(SubCycle from) {
    std::vector<std::uint32_t> ready;
    std::optional<SubCycle> at = from;
    while (at) {
      now = *at;
      const auto issue = frontend.step(now);
      if (!issue) break;
      if (issue->op && frontend.arrived(*issue->op)) ready.push_back(issue->op->value);
      at = issue->next_step;
    }
    return ready;
  }
  std::vector<std::uint32_t> complete(std::uint32_t op, SubCycle when) {
    std::vector<OpId> ready;
    host_goes_on = frontend.completed(OpId{op}, when, ready);
    std::vector<std::uint32_t> numbers;
    for (const OpId next : ready) numbers.push_back(next.value);
    return numbers;
  }
  Program program;
  Frontend frontend;
  SubCycle now = 0;
  bool host_goes_on = false;
};

inline ProgramOp op_on(std::uint32_t stream, std::vector<OpId> waits = {}) {
  ProgramOp op;
  op.stream = StreamId{stream};
  op.waits = std::move(waits);
  return op;
}

inline ProgramOp host_wait(std::vector<OpId> waits) {
  ProgramOp op;
  op.kind = ProgramOpKind::host_wait;
  op.waits = std::move(waits);
  return op;
}

}  // namespace weft
