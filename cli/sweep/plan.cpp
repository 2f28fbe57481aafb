#include "cli/sweep/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>
#include <utility>

#include "cli/config/run_config.h"
#include "cli/sweep/condition.h"
#include "sim/config_file.h"
#include "sim/error.h"
#include "sim/hash.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

// Keys of a resolved configuration whose value is a file.
constexpr std::array<const char*, 3> kFiles{"/workload/trace", "/workload/demands", "/all_reduce/algorithm_file"};

class Planner {
 public:
  Planner(const SweepFile& sweep, std::string file, std::string program, const PlannedRun& planned)
      : sweep_(sweep), file_(std::move(file)), program_(std::move(program)), planned_(planned) {}

  // Adds the points of one combination of values, unless "where" leaves it out.
  void add(const std::vector<std::size_t>& chosen, Manifest& manifest) {
    SweepPoint point;
    Json document = sweep_.base;
    std::map<std::string, Json> labels;
    std::string unset;
    for (std::size_t f = 0; f < chosen.size(); ++f) {
      for (const SweepAxis& axis : sweep_.axes[f]) {
        const Json& shown = axis.shown[chosen[f]];
        point.values.push_back(shown);
        labels[axis.path] = shown;
        try {
          apply_set(document, axis.path + "=" + axis.values[chosen[f]].dump(), sweep_.base_file.string());
        } catch (const InputError& e) {
          unset = e.what();
        }
      }
    }
    if (!wanted(document, labels)) return;
    const std::vector<std::int64_t> own{own_seed(document)};
    for (const std::int64_t seed : sweep_.seeds.empty() ? own : sweep_.seeds) {
      for (point.repetition = 0; point.repetition < sweep_.repetitions; ++point.repetition) {
        const bool given = !sweep_.seeds.empty() || sweep_.repetitions > 1;
        if (given) document["seed"] = seed_of_repetition(seed, point.repetition);
        SweepPoint one = point;
        one.reason = unset;
        if (unset.empty()) resolve(document, one);
        manifest.points.push_back(std::move(one));
      }
    }
  }

 private:
  [[nodiscard]] bool wanted(const Json& document, const std::map<std::string, Json>& labels) const {
    for (std::size_t w = 0; w < sweep_.where.size(); ++w) {
      try {
        const bool holds = condition_holds(sweep_.where[w], [&](const std::string& path) {
          if (const auto label = labels.find(path); label != labels.end()) return label->second;
          return value_at(document, path);
        });
        if (!holds) return false;
      } catch (const InputError& e) {
        throw InputError(file_, "/where", e.what());
      }
    }
    return true;
  }

  static Json value_at(const Json& document, const std::string& path) {
    const Json* at = &document;
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find('.', begin), path.size());
      const auto found = at->is_object() ? at->find(path.substr(begin, end - begin)) : at->end();
      if (!at->is_object() || found == at->end()) {
        throw InputError(fmt::format("expected a path that the sweep or its base sets, got \"{}\"", path));
      }
      at = &*found;
      begin = end + 1;
    }
    return *at;
  }

  static std::int64_t own_seed(const Json& document) {
    const auto seed = document.find("seed");
    return seed != document.end() && seed->is_number_integer() ? seed->get<std::int64_t>()
                                                               : static_cast<std::int64_t>(RunConfig().seed);
  }

  // The point's key, or why it has none.
  void resolve(const Json& document, SweepPoint& point) {
    Json resolved;
    try {
      const RunConfig config = read_run_config(document, sweep_.base_file);
      point.seed = static_cast<std::int64_t>(config.seed);
      Json content = config.resolved;
      for (const char* file : kFiles) {
        const Json::json_pointer at(file);
        if (content.contains(at) && !content[at].get_ref<const std::string&>().empty()) {
          content[at] = hash_of_file(content[at].get<std::string>());
        }
      }
      point.key = sha256(program_ + content.dump());
      resolved = config.resolved;
    } catch (const InputError& e) {
      point.reason = e.what();
      return;
    }
    if (runs_.insert(point.key).second) planned_(point.key, resolved);
  }

  const std::string& hash_of_file(const std::string& file) {
    std::string& hash = hashes_[file];
    if (hash.empty()) hash = sha256(read_file(file));
    return hash;
  }

  const SweepFile& sweep_;
  std::string file_, program_;
  const PlannedRun& planned_;
  std::map<std::string, std::string> hashes_;  // of files that configurations name
  std::unordered_set<std::string> runs_;
};

}  // namespace

std::string program_sha256() { return sha256(read_file("/proc/self/exe")); }

std::string sweep_sha256(const SweepFile& sweep, const std::string& program) {
  Json all{{"program", program},
           {"base", sweep.base},
           {"where", sweep.where},
           {"seeds", sweep.seeds},
           {"repetitions", sweep.repetitions}};
  for (const auto& together : sweep.axes) {
    Json axes = Json::array();
    for (const auto& axis : together) axes.push_back({axis.path, axis.values, axis.shown});
    all["axes"].push_back(std::move(axes));
  }
  for (const auto& metric : sweep.metrics) all["metrics"].push_back({metric.name, metric.path});
  return sha256(all.dump());
}

std::int64_t seed_of_repetition(std::int64_t seed, std::int64_t repetition) {
  if (repetition == 0) return seed;
  // splitmix64 (Steele, Lea, Flood, OOPSLA 2014); 53 bits, which every reader of JSON keeps.
  std::uint64_t mixed = static_cast<std::uint64_t>(seed) + static_cast<std::uint64_t>(repetition) * 0x9e3779b97f4a7c15U;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<std::int64_t>((mixed ^ (mixed >> 31U)) >> 11U);
}

Manifest plan_sweep(const SweepFile& sweep, const fs::path& file, const std::string& program,
                    const PlannedRun& planned) {
  Manifest manifest;
  manifest.program_sha256 = program;
  manifest.sweep_sha256 = sweep_sha256(sweep, program);
  manifest.metrics = sweep.metrics;
  for (const auto& together : sweep.axes) {
    for (const auto& axis : together) manifest.paths.push_back(axis.path);
  }
  Planner planner(sweep, file.string(), program, planned);
  std::vector<std::size_t> chosen(sweep.axes.size(), 0);
  for (;;) {
    planner.add(chosen, manifest);
    std::size_t f = chosen.size();
    while (f > 0 && ++chosen[f - 1] == sweep.axes[f - 1].front().values.size()) chosen[--f] = 0;
    if (f == 0) break;
  }
  if (manifest.points.empty())
    throw InputError(file.string(), "/where", "expected conditions that leave a point, got none left");
  for (const SweepPoint& point : manifest.points) {
    if (!point.key.empty()) return manifest;
  }
  throw InputError(fmt::format("{}: expected a configuration that can be read at some point, got none: {}",
                               file.string(), manifest.points.front().reason));
}

}  // namespace weft
