// What a comparison runs: configurations, each under several algorithms or schemes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weft {

struct CompareCase {
  std::string label;  // names its column and its folder; no two cases share one
  std::filesystem::path config;
  std::vector<std::string> sets;

  bool operator==(const CompareCase&) const = default;
};

// The product of configurations, schemes, all-reduce algorithms and movers (empty: what the configuration says),
// configurations outermost. A label is made of what varies: the configuration's name, the scheme, the algorithm, the
// mover; repeated ones get a number. `sets` come before what the case itself overrides.
[[nodiscard]] std::vector<CompareCase> compare_cases(const std::vector<std::string>& configs,
                                                     const std::vector<std::string>& schemes,
                                                     const std::vector<std::string>& algorithms,
                                                     const std::vector<std::string>& movers,
                                                     const std::vector<std::string>& sets);

}  // namespace weft
