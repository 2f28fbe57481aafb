#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <string>

#include "cli/report/report_pictures.h"

namespace weft {

namespace {

constexpr std::size_t kMostPairs = 3000;  // a drawing of more is a blot

// gpu2 before gpu10.
bool by_number(const std::string& a, const std::string& b) {
  std::size_t i = 0, k = 0;
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (i < a.size() && k < b.size()) {
    if (digit(a[i]) && digit(b[k])) {
      std::size_t i_end = i, k_end = k;
      while (i_end < a.size() && digit(a[i_end])) ++i_end;
      while (k_end < b.size() && digit(b[k_end])) ++k_end;
      if (i_end - i != k_end - k) return i_end - i < k_end - k;
      if (const int order = a.compare(i, i_end - i, b, k, k_end - k); order != 0) return order < 0;
      i = i_end, k = k_end;
    } else if (a[i++] != b[k++]) {
      return a[i - 1] < b[k - 1];
    }
  }
  return a.size() - i < b.size() - k;
}
struct ByNumber {
  bool operator()(const std::string& a, const std::string& b) const { return by_number(a, b); }
};
using Names = std::set<std::string, ByNumber>;
using Neighbours = std::map<std::string, Names, ByNumber>;

// Rows of nodes by their hops from a GPU.
std::vector<Names> levels_of(const Neighbours& neighbours) {
  Names row;
  for (const auto& node : neighbours) {
    if (node.first.starts_with("gpu")) row.insert(node.first);
  }
  if (row.empty()) {
    for (const auto& node : neighbours) row.insert(node.first);
  }
  std::vector<Names> levels;
  Names placed;
  while (!row.empty()) {
    placed.insert(row.begin(), row.end());
    Names above;
    for (const std::string& name : row) {
      for (const std::string& other : neighbours.at(name)) {
        if (!placed.contains(other)) above.insert(other);
      }
    }
    levels.push_back(std::move(row));
    row = std::move(above);
  }
  return levels;
}

// Rows above each other, or circles in each other where links join equals.
void place_nodes(const std::vector<Names>& levels, const Neighbours& neighbours, Figure& figure) {
  bool round = false;
  for (const Names& names : levels) {
    for (const std::string& name : names) {
      const Names& others = neighbours.at(name);
      round =
          round || std::any_of(others.begin(), others.end(), [&](const auto& other) { return names.contains(other); });
    }
  }
  for (std::size_t level = 0; level < levels.size(); ++level) {
    std::size_t i = 0;
    for (const std::string& name : levels[level]) {
      const double at = (static_cast<double>(i++) + 0.5) / static_cast<double>(levels[level].size());
      const double turn = 2 * std::numbers::pi * at + std::numbers::pi / 2,
                   out = 0.48 * (1 - 0.33 * static_cast<double>(level));
      const double rows = std::max<double>(1, static_cast<double>(levels.size()) - 1);
      figure.categories.push_back(name);
      figure.series[0].x.push_back(round ? 0.5 + 0.9 * out * std::cos(turn) : at);
      figure.series[0].y.push_back(round ? 0.5 + out * std::sin(turn) : static_cast<double>(level) / rows);
    }
  }
}

// "a->b.n": a and b.
std::optional<std::pair<std::string, std::string>> ends_of(const std::string& link) {
  const std::size_t arrow = link.find("->");
  if (arrow == std::string::npos) return std::nullopt;
  std::string to = link.substr(arrow + 2);
  const std::size_t dot = to.rfind('.');
  if (dot != std::string::npos && to.find_first_not_of("0123456789", dot + 1) == std::string::npos) to.resize(dot);
  return std::pair(link.substr(0, arrow), to);
}

}  // namespace

Figure topology_figure(const Json& links) {
  Figure figure{"topology", "The network and the load of its links", FigureKind::network, {}, {"", FigureUnit::share}};
  figure.cells = "share of the run in which the busier direction sends";
  figure.series = {{"nodes"}, {"links"}};
  std::map<std::pair<std::string, std::string>, double> loads;
  Neighbours neighbours;
  for (const Json& link : links) {
    auto ends = ends_of(link.at("name").get<std::string>());
    if (!ends) return figure;
    auto& [from, to] = *ends;
    neighbours[from].insert(to);
    neighbours[to].insert(from);
    if (by_number(to, from)) std::swap(from, to);
    double& load = loads[*ends];
    load = std::max(load, link.at("busy_fraction").get<double>());
  }
  if (loads.size() > kMostPairs) return figure;
  place_nodes(levels_of(neighbours), neighbours, figure);
  std::map<std::string, std::size_t> number;
  for (const std::string& name : figure.categories) number.emplace(name, number.size());
  for (const auto& [ends, load] : loads) {
    figure.series[1].x.push_back(static_cast<double>(number.at(ends.first)));
    figure.series[1].y.push_back(static_cast<double>(number.at(ends.second)));
    figure.series[1].z.push_back(load);
  }
  return figure;
}

}  // namespace weft
