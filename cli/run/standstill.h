// Runs in which nothing goes on although not all is done.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "cli/run/machine.h"
#include "cli/run/scripts.h"

namespace weft {

// Of a part of a run that is simulated by itself: the whole run tells what happens (status "deadlock").
class Standstill : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Why, of a machine that did not come to the end of its programs: packets that wait for each other, blocks of a
// collective without a place on a compute unit, for which those that have one wait, or a collective that not all of its
// GPUs come to. Empty: none of these.
[[nodiscard]] std::string why_at_a_standstill(const Machine& machine, const std::vector<Program>& programs,
                                              const std::vector<Scripts::Collective>& collectives);

}  // namespace weft
