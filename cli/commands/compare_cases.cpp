#include "cli/commands/compare_cases.h"

#include <set>

#include "sim/json_reader.h"

namespace weft {

namespace {

std::string unused(const std::string& label, std::set<std::string>& used) {
  std::string name = label;
  for (int n = 2; !used.insert(name).second; ++n) name = label + "-" + std::to_string(n);
  return name;
}

void append(std::string& label, const std::string& part) { label += (label.empty() ? "" : "-") + part; }

}  // namespace

std::vector<CompareCase> compare_cases(const std::vector<std::string>& configs, const std::vector<std::string>& schemes,
                                       const std::vector<std::string>& algorithms,
                                       const std::vector<std::string>& movers, const std::vector<std::string>& sets) {
  std::vector<CompareCase> cases;
  std::set<std::string> used{"comparison.json", "report.html"};  // files beside the folders
  const std::vector<std::string> as_configured{""};
  for (const auto& config : configs) {
    for (const auto& scheme : schemes.empty() ? as_configured : schemes) {
      for (const auto& algorithm : algorithms.empty() ? as_configured : algorithms) {
        for (const auto& mover : movers.empty() ? as_configured : movers) {
          CompareCase one{"", config, sets};
          if (!scheme.empty()) one.sets.push_back("scheme.name=" + Json(scheme).dump());
          if (!algorithm.empty()) one.sets.push_back("all_reduce.algorithm=" + Json(algorithm).dump());
          if (!mover.empty()) one.sets.push_back("all_reduce.mover=" + Json(mover).dump());
          const bool varies = schemes.size() > 1 || algorithms.size() > 1 || movers.size() > 1;
          if (configs.size() > 1 || !varies) append(one.label, one.config.stem().string());
          if (schemes.size() > 1) append(one.label, scheme);
          if (algorithms.size() > 1) append(one.label, algorithm);
          if (movers.size() > 1) append(one.label, mover);
          one.label = unused(one.label, used);
          cases.push_back(std::move(one));
        }
      }
    }
  }
  return cases;
}

}  // namespace weft
