#include "cli/sampled/company_pace.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/sampled/ledger_members.h"
#include "sim/error.h"

namespace weft {

namespace {

// Choices. What a collective takes of memory goes with its rate, and is a part of what it takes at all: within a tenth,
// paces differ by a hundredth or two, and between rates of which one is up to so many times the other they go straight.
constexpr double kSame = 0.02;
constexpr double kNear = 0.1;
constexpr double kFarApart = 2.5;
constexpr std::size_t kMost = 16;  // rates of one name: further ones are not kept

// So much of `b`.
CompanyPace between(const CompanyPace& a, const CompanyPace& b, double share) {
  const auto mixed = [share](double of_a, double of_b) { return of_a + share * (of_b - of_a); };
  CompanyPace pace = share < 0.5 ? a : b;  // the ledger of the nearer one
  pace.rate = mixed(a.rate, b.rate);
  pace.kernel = mixed(a.kernel, b.kernel);
  pace.collective = mixed(a.collective, b.collective);
  return pace;
}

template <class Pace, class Visit>
void visit_pace(Pace& p, Visit&& visit) {
  visit(p.rate, p.seconds, p.kernel, p.collective);
  visit_ledger(p.ledger, visit);
}

}  // namespace

void learn(const CompanyPace& seen, CompanyPaces& paces) {
  const auto after =
      std::ranges::find_if(paces, [&](const CompanyPace& p) { return p.rate * (1 + kSame) >= seen.rate; });
  if (after != paces.end() && after->rate <= seen.rate * (1 + kSame)) {
    const double all = after->seconds + seen.seconds;
    *after = between(*after, seen, all > 0 ? seen.seconds / all : 0);
    after->seconds = all;
    return;
  }
  if (paces.size() < kMost) paces.insert(after, seen);
}

std::optional<CompanyPace> pace_at(double rate, const CompanyPaces& paces) {
  const auto above = std::ranges::find_if(paces, [&](const CompanyPace& p) { return p.rate >= rate; });
  const auto is_near = [&](const CompanyPace& p) {
    return p.rate <= rate * (1 + kNear) && rate <= p.rate * (1 + kNear);
  };
  if (above != paces.end() && above != paces.begin() && above->rate <= kFarApart * std::prev(above)->rate) {
    const CompanyPace& below = *std::prev(above);
    return between(below, *above, (rate - below.rate) / (above->rate - below.rate));
  }
  if (above != paces.end() && is_near(*above)) return *above;
  if (above != paces.begin() && is_near(*std::prev(above))) return *std::prev(above);
  return std::nullopt;
}

std::string to_bytes(const CompanyPaces& paces) {
  nlohmann::json all = nlohmann::json::array();
  for (const CompanyPace& pace : paces) {
    nlohmann::json one = nlohmann::json::array();
    visit_pace(pace, [&](const auto&... members) { (one.push_back(members), ...); });
    all.push_back(std::move(one));
  }
  const std::vector<std::uint8_t> bytes = nlohmann::json::to_cbor(all);
  return {bytes.begin(), bytes.end()};
}

CompanyPaces company_paces_from_bytes(const std::string& bytes) {
  try {
    CompanyPaces paces;
    for (const nlohmann::json& one : nlohmann::json::from_cbor(bytes)) {
      std::size_t next = 0;
      visit_pace(paces.emplace_back(), [&](auto&... members) { (one.at(next++).get_to(members), ...); });
    }
    for (std::size_t i = 0; i < paces.size(); ++i) {
      const auto [rate, seconds, kernel, collective, ledger] = paces[i];
      const bool positive = rate > 0 && seconds >= 0 && kernel > 0 && collective > 0;
      if (!positive || !std::isfinite(rate + seconds + kernel + collective) || (i > 0 && rate <= paces[i - 1].rate)) {
        throw InternalError("remembered paces: not what was seen at ascending rates");
      }
    }
    return paces;
  } catch (const nlohmann::json::exception& e) {
    throw InternalError(std::string("remembered paces: ") + e.what());
  }
}

}  // namespace weft
