// How much longer a kernel and a collective take while they run beside each other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu_model/gpu_work.h"

namespace weft {

struct CompanyPace {
  double rate = 0;        // bytes a second of the message, by the collective by itself
  double seconds = 0;     // for which they were seen together
  double kernel = 1;      // times longer than by itself
  double collective = 1;  // the same
  KernelLedger ledger;    // what held the kernel up
};

// Of one kernel and one kind of collective at different rates, ascending.
using CompanyPaces = std::vector<CompanyPace>;

// Takes in one more: it counts for as long as it was seen, and those of nearly the same rate are one.
void learn(const CompanyPace& seen, CompanyPaces& paces);

// At that rate: between two that are known and not too far apart, or as one that is near. None: it has to be seen.
[[nodiscard]] std::optional<CompanyPace> pace_at(double rate, const CompanyPaces& paces);

// CBOR (RFC 8949). Throws InternalError for what is none.
[[nodiscard]] std::string to_bytes(const CompanyPaces& paces);
[[nodiscard]] CompanyPaces company_paces_from_bytes(const std::string& bytes);

}  // namespace weft
