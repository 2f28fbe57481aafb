#include "bench/gpu/plan/statistics.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace weft::gpu_probe {

double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

Summary summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return {samples.size(), quantile(samples, 0.5), quantile(samples, 0.25), quantile(samples, 0.75), samples.front()};
}

void to_json(nlohmann::json& json, const Summary& s) {
  json = {{"n", s.n}, {"median", s.median}, {"q1", s.q1}, {"q3", s.q3}, {"min", s.min}};
}

}  // namespace weft::gpu_probe
