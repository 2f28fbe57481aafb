// How much longer a kernel takes while a collective has blocks on the units beside it: measured in detail, on the first
// of the GPUs that stand for all, from the moment at which both begin.
#pragma once

#include <cstdint>

#include "cli/sampled/symmetry.h"

namespace weft {

// The operation in a program of its own, in which nothing holds it back.
[[nodiscard]] ProgramOp at_once(ProgramOp op);

struct PaceBeside {
  double times_longer = 1;  // than by itself, to come as far
  KernelLedger ledger;      // what held it up
  std::int64_t memory_transactions = 0, packets = 0;
  Time simulated;
};

// `folded`: of the whole program, whose GPUs begin with what is in `l2`. Until the kernel has ended or the collective
// has, but no longer than a millisecond.
[[nodiscard]] PaceBeside pace_beside(const RunConfig& config, const FoldedMachine& folded, const Program& program,
                                     OpId kernel, OpId collective, const L2Cache& l2);

}  // namespace weft
