#include "cli/sampled/settled_rates.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace weft {

SettledRates settled_rates(std::span<const std::uint64_t> kinds, std::span<const double> before,
                           std::span<const double> last) {
  struct Kind {
    double groups = 0, before = 0, last = 0;
    double noise = 0, spread = 0;  // squares
    [[nodiscard]] double mean() const { return (before + last) / (2 * groups); }
  };
  std::unordered_map<std::uint64_t, Kind> all;
  const auto rate = [&](std::size_t i) { return (before[i] + last[i]) / 2; };
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    Kind& kind = all[kinds[i]];
    kind.groups += 1;
    kind.before += before[i];
    kind.last += last[i];
    kind.noise += std::pow((last[i] - before[i]) / 2, 2);
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    Kind& kind = all[kinds[i]];
    kind.spread += std::pow(rate(i) - kind.mean(), 2);
  }
  SettledRates settled;
  for (const auto& [name, kind] : all) {
    settled.scatter = std::max(settled.scatter, std::abs(kind.last - kind.before) / (kind.last + kind.before));
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Kind& kind = all[kinds[i]];
    const double own = kind.spread > kind.noise ? 1 - kind.noise / kind.spread : 0;
    settled.rates.push_back(kind.mean() + own * (rate(i) - kind.mean()));
  }
  return settled;
}

}  // namespace weft
