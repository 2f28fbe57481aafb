// Whether GPUs execute the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/program.h"

namespace weft {

// How programs are alike: operation by operation the same but for the GPU, for who else is in the groups of
// collectives, which are as large, and perhaps for where buffers lie, as where each rank keeps another part of what all
// get. That decides only what the L2 holds.
struct ProgramLikeness {
  std::string why_not;  // in words; empty: they are alike
  bool at_other_addresses = false;
};
[[nodiscard]] ProgramLikeness compare_programs(const std::vector<Program>& programs);

// Whether operation `later` of a program does the same as `op`, `ahead` places before it, but for where buffers lie.
[[nodiscard]] bool is_alike_later(const ProgramOp& op, const ProgramOp& later, std::uint32_t ahead);

}  // namespace weft
