#include "cli/sampled/paced_company.h"

#include <algorithm>

namespace weft {

namespace {
constexpr double kFastest = 0.1;  // whatever was seen of several others together
}

void PacedCompany::come_to(double now) {
  for (Running& one : running_) {
    const double passed = now - one.since;
    one.left = std::max(0.0, one.left - passed / one.pace);
    one.since = now;
    if (one.has_company) one.together += passed;
  }
}

void PacedCompany::set_paces() {
  for (Running& one : running_) {
    one.pace = 1;
    one.has_company = false;
    for (const Running& other : running_) {
      if (other.collective == one.collective) continue;
      const CompanyPace* pace = one.collective ? known_(other.op, one.op) : known_(one.op, other.op);
      if (pace == nullptr) continue;
      one.pace += (one.collective ? pace->collective : pace->kernel) - 1;
      one.beside = pace;
      one.has_company = true;
    }
    one.pace = std::max(one.pace, kFastest);
  }
}

void PacedCompany::begin(OpId op, bool collective, double alone, double now) {
  come_to(now);
  running_.push_back({.op = op, .collective = collective, .left = alone, .since = now});
  set_paces();
}

std::optional<double> PacedCompany::next_end() const {
  const auto first = std::ranges::min_element(running_, {}, &Running::end);
  return first == running_.end() ? std::nullopt : std::optional(first->end());
}

std::optional<PacedCompany::Ended> PacedCompany::end_one(double now) {
  const auto first = std::ranges::min_element(running_, {}, &Running::end);
  if (first == running_.end() || first->end() > now) return std::nullopt;
  const OpId op = first->op;
  come_to(now);
  const auto at = std::ranges::find(running_, op, &Running::op);
  Ended ended{.op = op, .ledger = {}, .together = at->together};
  if (!at->collective && at->beside != nullptr) ended.ledger = at->beside->ledger;
  running_.erase(at);
  set_paces();
  return ended;
}

}  // namespace weft
