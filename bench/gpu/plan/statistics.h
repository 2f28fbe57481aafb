// What is kept of repeated measurements.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace weft::gpu_probe {

struct Summary {
  std::size_t n = 0;
  double median = 0, q1 = 0, q3 = 0, min = 0;
};

// Quantiles lie between neighbours where they fall between them (linear). Nothing measured: all 0.
[[nodiscard]] Summary summarize(std::vector<double> samples);
[[nodiscard]] double quantile(const std::vector<double>& sorted, double share);

void to_json(nlohmann::json& json, const Summary& summary);

}  // namespace weft::gpu_probe
