#include "bench/gpu/plan/options.h"

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <sstream>

namespace weft::gpu_probe {
namespace {

// Short ones first: they are bounded, and the pairs take what is left.
constexpr std::array kAllSuites{Suite::describe, Suite::units, Suite::drain,
                                Suite::machine,  Suite::cache, Suite::pairs};

// Expected, on a Hopper GPU; that of the pairs follows from the plan.
double estimated_s(Suite suite, const Options& options) {
  switch (suite) {
    case Suite::describe:
      return 45;
    case Suite::launch:
    case Suite::cache:
      return 15;
    case Suite::units:
      return 20;
    case Suite::drain:
    case Suite::machine:
      return 25;
    case Suite::pairs:
      break;
  }
  return estimated_s(plan_pairs(options.selection), options.pair_ms);
}

std::optional<std::regex> pattern(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return std::regex(text);
}

std::string joined(int argc, const char* const* argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) text += (i == 0 ? "" : " ") + std::string(argv[i]);
  return text;
}

}  // namespace

const char* to_string(Suite suite) {
  switch (suite) {
    case Suite::describe:
      return "describe";
    case Suite::launch:
      return "launch";
    case Suite::units:
      return "units";
    case Suite::drain:
      return "drain";
    case Suite::machine:
      return "machine";
    case Suite::cache:
      return "cache";
    case Suite::pairs:
      break;
  }
  return "pairs";
}

std::optional<Options> parse_options(int argc, const char* const* argv, int& exit_code) {
  Options options;
  options.command = joined(argc, argv);
  std::string suite = "all", victim, aggressor;
  CLI::App app("Measures on one GPU what a collective's thread blocks do to kernels beside them.");
  app.add_option("--suite", suite, "What to measure")
      ->check(CLI::IsMember({"pairs", "units", "drain", "machine", "cache", "describe", "launch", "all"}))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->capture_default_str();
  app.add_flag("--list", options.list, "Names of victims and aggressors; needs no GPU");
  app.add_flag("--dry-run", options.dry_run, "What would be measured and how long it takes; needs no GPU");
  app.add_option("--victim", victim, "Victims whose names match this regular expression");
  app.add_option("--aggressor", aggressor, "Aggressors whose names match this regular expression");
  app.add_option("--budget-s", options.budget_s, "Begin no measurement after so many seconds")
      ->check(CLI::PositiveNumber)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->capture_default_str();
  app.add_option("--pair-ms", options.pair_ms, "Time of one pair, from which its repetitions follow")
      ->check(CLI::Range(5.0, 10000.0))
      ->capture_default_str();
  app.add_flag("--resume", options.resume, "Keep what the output holds and measure the rest");
  app.add_option("-o,--output", options.output, "File of results")->capture_default_str();
  app.add_option("--libraries", options.libraries, "Folders with the libraries of cuBLAS, cuDNN and CUPTI");
  try {
    app.parse(argc, argv);
    options.selection = {pattern(victim), pattern(aggressor)};
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error);
    return std::nullopt;
  } catch (const std::regex_error& error) {
    std::fprintf(stderr, "not a regular expression: %s\n", error.what());
    exit_code = 64;
    return std::nullopt;
  }
  for (const Suite one : kAllSuites) {
    if (suite == "all" || suite == to_string(one)) options.suites.push_back(one);
  }
  if (suite == to_string(Suite::launch)) options.suites.push_back(Suite::launch);
  return options;
}

std::string list_text() {
  std::ostringstream out;
  for (const Victim& victim : victims())
    out << "victim " << victim.name << ' ' << victim.kernel_class << ' ' << to_string(victim.half) << '\n';
  for (const auto* set : {&core_aggressors(), &surface_aggressors()}) {
    for (const Aggressor& aggressor : *set) out << "aggressor " << aggressor.name << '\n';
  }
  return out.str();
}

std::string dry_run_text(const Options& options) {
  std::ostringstream out;
  double total = 0;
  for (const Suite suite : options.suites) {
    const double seconds = estimated_s(suite, options);
    total += seconds;
    out << to_string(suite) << ": about " << static_cast<int>(seconds) << " s";
    if (suite == Suite::pairs) {
      std::size_t pairs = 0;
      const auto plan = plan_pairs(options.selection);
      for (const VictimPlan& one : plan) pairs += one.aggressors.size();
      out << ", " << pairs << " pairs";
    }
    out << '\n';
  }
  out << "together about " << static_cast<int>(total) << " s; begins nothing after " << options.budget_s << " s\n";
  return out.str();
}

}  // namespace weft::gpu_probe
