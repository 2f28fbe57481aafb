// Shifts of long messages around a ring, of which each transfer takes what it takes by itself: between two GPUs nothing
// else is under way then. Two in a row are looked at once in detail, and then they only take their time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "cli/run/machine.h"
#include "cli/sampled/regime.h"

namespace weft {

// One that all GPUs begin at once, and another one right behind it.
struct ShiftByItself {
  std::vector<SubCycle> first, both;  // by GPU, from the beginning until it has sent and received all of it
  std::uint32_t shifts = 1;           // 1: there was none behind it
  Regime did;                         // one of them, on one GPU; links and switches of all that were simulated
};

// A message from one GPU to the next, in subcycles.
struct Transfer {
  SubCycle takes = 0;   // from where its sender begins until it has come
  SubCycle staged = 0;  // from where its receiver begins, at least: the NIC waits for that, the sender has it ready
  SubCycle sends = 0;   // until its sender is through, at least;
  SubCycle ahead = 0;   // so much sooner than it has come, at most
};
// `between_nodes`: by NICs, which have room for some of it.
[[nodiscard]] Transfer transfer_of(const ShiftByItself& shift, std::uint32_t from, std::uint32_t to,
                                   bool between_nodes);

class ShiftFlows {
 public:
  // `program` outlives it. `by_itself` of an operation. GPUs of a node are in a row.
  ShiftFlows(const Program& program, std::uint32_t gpus_per_node, std::function<const ShiftByItself&(OpId)> by_itself)
      : program_(&program),
        gpus_per_node_(gpus_per_node),
        by_itself_(std::move(by_itself)),
        timed_(program.ops.size(), false) {}

  // Of the machine's works: by op, which only take their time (GpuWork::timed_collectives).
  [[nodiscard]] const std::vector<bool>& timed() const { return timed_; }
  // Before the first window: which shifts, of those that no GPU has begun, only take their time. They do as long as no
  // other collective is under way.
  void choose(const Machine& machine);
  // Between two windows: the same, and when those end that run.
  void look(Machine& machine, Time now);

 private:
  [[nodiscard]] static bool has_begun(const Machine& machine, std::uint32_t op);

  // When what `from` sends with this one has come; -1: it cannot be said yet.
  [[nodiscard]] SubCycle come(const Machine& machine, std::uint32_t op, std::uint32_t from);
  [[nodiscard]] std::uint32_t receiver(const Machine& machine, std::uint32_t op, std::uint32_t from) const;
  [[nodiscard]] Transfer transfer(const Machine& machine, std::uint32_t op, std::uint32_t from) const;

  const Program* program_;
  std::uint32_t gpus_per_node_;
  std::function<const ShiftByItself&(OpId)> by_itself_;
  std::vector<bool> timed_;
  std::uint32_t next_ = 0;  // the first operation that no GPU has begun, or one before it
  struct Running {
    std::vector<SubCycle> starts, comes;  // by GPU; the latter of what it sends. -1: not known yet
  };
  std::map<std::uint32_t, Running> running_;  // by op
};

[[nodiscard]] bool is_shift(const ProgramOp& op);

}  // namespace weft
