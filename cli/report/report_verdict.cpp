#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/report/report_figures.h"
#include "cli/report/report_units.h"

namespace weft {

namespace {

// Below this, two times count as equal: the noise of arbitration and of rounding.
constexpr double kSame = 0.005;

std::string text_at(const Json& config, const char* pointer) {
  const Json::json_pointer place(pointer);
  return config.contains(place) && config.at(place).is_string() ? config.at(place).get<std::string>() : "";
}

std::string workload_text(const Json& config) {
  if (!config.contains("workload") || !config.at("workload").is_object()) return "";
  const Json& workload = config.at("workload");
  std::string text;
  for (const char* key : {"model", "collective", "trace", "graph"}) {
    if (workload.contains(key) && workload.at(key).is_string()) text = workload.at(key).get<std::string>();
    if (!text.empty()) break;
  }
  text = text.substr(text.find_last_of('/') + 1);
  if (workload.contains("batch") && workload.at("batch").is_number()) {
    text += fmt::format(", batch {}", workload.at("batch").get<std::int64_t>());
  }
  if (workload.contains("bytes") && workload.at("bytes").is_number()) {
    text += " of " + binary_size_text(workload.at("bytes").get<double>());
  }
  return text;
}

const CauseFigure* largest_cause(const Figures& figures) {
  const auto largest = std::max_element(figures.causes.begin(), figures.causes.end(),
                                        [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  return largest == figures.causes.end() || largest->seconds <= 0 ? nullptr : &*largest;
}

std::string unfinished_verdict(const Json& result) {
  if (!result.contains("out_of_memory")) return "The run stopped in a deadlock: no operation could go on.";
  const Json& oom = result.at("out_of_memory");
  std::string text = fmt::format("Does not fit: GPU {} is {} over at {}.", oom.at("gpu").get<std::uint32_t>(),
                                 bytes_text(oom.at("bytes_over").get<double>()), oom.at("at").get<std::string>());
  const Json& holders = oom.at("largest_holders");
  if (holders.empty()) return text;
  return text + fmt::format(" The largest holder is {} with {}.", holders[0].at("what").get<std::string>(),
                            bytes_text(holders[0].at("bytes").get<double>()));
}

std::string exposed_text(const Figures& figures) {
  // A collective run alone has nothing to hide behind.
  if (figures.communication_s.value_or(0) <= 0 || figures.compute_s.value_or(0) <= 0) return "";
  const double hidden = 1 - figures.exposed_s.value_or(0) / *figures.communication_s;
  return fmt::format(" {} of communication, {} of it hidden behind compute.", time_text(*figures.communication_s),
                     percent_text(hidden));
}

std::string backward_verdict(const Figures& figures) {
  const double added = *figures.backward_s - *figures.backward_isolated_s;
  if (std::fabs(added) < kSame * *figures.backward_isolated_s) {
    return fmt::format("Communication does not slow the backward pass: {}, as alone.", time_text(*figures.backward_s)) +
           exposed_text(figures);
  }
  std::string text = fmt::format("Backward runs {} as long beside communication: {} instead of {}.",
                                 factor_text(*figures.backward_slowdown), time_text(*figures.backward_s),
                                 time_text(*figures.backward_isolated_s));
  if (const CauseFigure* cause = largest_cause(figures); cause != nullptr && added > 0) {
    text += fmt::format(" {} of the added {} comes from {}.", percent_text(cause->seconds / added), time_text(added),
                        cause->name);
  }
  return text + exposed_text(figures);
}

// The part of the iteration in which two runs differ most: what happened to it, and what lies behind.
std::string difference(const Figures& from, const Figures& to) {
  const auto delta = [](const std::optional<double>& a, const std::optional<double>& b) {
    return a && b ? *b - *a : 0.0;
  };
  const double compute = delta(from.compute_s, to.compute_s);
  const double exposed = delta(from.exposed_s, to.exposed_s);
  const double idle = delta(from.idle_s, to.idle_s);
  const double most = std::max({std::fabs(compute), std::fabs(exposed), std::fabs(idle)});
  const auto change = [](double seconds) { return time_text(std::fabs(seconds)) + (seconds < 0 ? " less" : " more"); };
  if (most <= 0) return "";
  if (most == std::fabs(exposed)) {
    return fmt::format(" Most of it is exposed communication: {} ({} against {}).", change(exposed),
                       time_text(*to.exposed_s), time_text(*from.exposed_s));
  }
  if (most == std::fabs(idle)) return fmt::format(" Most of it is idle time: {}.", change(idle));
  std::string text = fmt::format(" Most of it is compute time: {}", change(compute));
  double cause_change = 0;
  const char* cause = nullptr;
  for (std::size_t i = 0; i < std::min(from.causes.size(), to.causes.size()); ++i) {
    const double one = to.causes[i].seconds - from.causes[i].seconds;
    if (one * compute > 0 && std::fabs(one) > std::fabs(cause_change)) {
      cause_change = one;
      cause = to.causes[i].name;
    }
  }
  if (cause == nullptr) return text + ".";
  return text + fmt::format(", of which {} by {} in the backward pass.", time_text(std::fabs(cause_change)), cause);
}

std::string resources(const Figures& from, const Figures& to) {
  if (!from.hbm_communication_bytes || !to.hbm_communication_bytes) return "";
  const double before = *from.hbm_communication_bytes, after = *to.hbm_communication_bytes;
  if (std::fabs(after - before) <= kSame * before) return "";
  std::string text = fmt::format(" Its communication takes {} of HBM traffic a GPU instead of {}", bytes_text(after),
                                 bytes_text(before));
  const double unit_before = from.compute_unit_seconds_communication.value_or(0);
  const double unit_after = to.compute_unit_seconds_communication.value_or(0);
  if (unit_before > 0 && std::fabs(unit_after - unit_before) > kSame * unit_before) {
    text += fmt::format(", and {} the compute-unit time", factor_text(unit_after / unit_before));
  }
  return text + ".";
}

// Whether iterations have as many samples; where that is not known they are taken to.
bool same_work(const Figures& a, const Figures& b) {
  if (!a.samples_per_s || !b.samples_per_s) return true;
  const double samples = *a.samples_per_s * *a.iteration_s;
  return std::fabs(*b.samples_per_s * *b.iteration_s - samples) <= kSame * samples;
}

// Of `to` against `from`, both of which have finished: by the iteration of the same work, else by throughput.
double speed(const Figures& from, const Figures& to) {
  return same_work(from, to) ? *from.iteration_s / *to.iteration_s : *to.samples_per_s / *from.samples_per_s;
}

std::string throughput_verdict(const std::string& from_label, const Figures& from, const std::string& to_label,
                               const Figures& to) {
  const double ratio = speed(from, to);
  const auto iteration = [](const Figures& f) {
    const double samples = *f.samples_per_s * *f.iteration_s;
    return fmt::format("{:.4g} sample{} in {}", samples, std::fabs(samples - 1) < kSame ? "" : "s",
                       time_text(*f.iteration_s));
  };
  const std::string compared = std::fabs(ratio - 1) < kSame
                                   ? "the same"
                                   : factor_text(ratio > 1 ? ratio : 1 / ratio) + (ratio > 1 ? " faster" : " slower");
  return fmt::format(
      "{} does {:.4g} samples/s against {:.4g} with {}: {}. Iterations are not the same work: {} against {}.", to_label,
      *to.samples_per_s, *from.samples_per_s, from_label, compared, iteration(to), iteration(from));
}

std::string pair_verdict(const std::string& from_label, const Figures& from, const std::string& to_label,
                         const Figures& to) {
  if (!from.iteration_s || !to.iteration_s) {
    const bool from_failed = !from.iteration_s, to_failed = !to.iteration_s;
    if (from_failed && to_failed) return fmt::format("Neither {} nor {} finishes.", from_label, to_label);
    return fmt::format("{} does not finish ({}); {} does.", from_failed ? from_label : to_label,
                       from_failed ? from.status : to.status, from_failed ? to_label : from_label);
  }
  if (!same_work(from, to)) return throughput_verdict(from_label, from, to_label, to);
  const double ratio = speed(from, to);
  if (std::fabs(ratio - 1) < kSame) {
    return fmt::format("{} and {} take the same time to {}: {} against {}.", to_label, from_label, percent_text(kSame),
                       time_text(*to.iteration_s), time_text(*from.iteration_s)) +
           resources(from, to);
  }
  std::string text = fmt::format("{} takes {} an iteration against {} with {}: {} {}.", to_label,
                                 time_text(*to.iteration_s), time_text(*from.iteration_s), from_label,
                                 factor_text(ratio > 1 ? ratio : 1 / ratio), ratio > 1 ? "faster" : "slower");
  text += difference(from, to);
  if (from.backward_slowdown && to.backward_slowdown) {
    text += fmt::format(" Backward slows down {} instead of {}.", factor_text(*to.backward_slowdown),
                        factor_text(*from.backward_slowdown));
  }
  return text + resources(from, to);
}

}  // namespace

std::string describe_run(const Json& config) {
  if (!config.is_object()) return "";
  std::string system = text_at(config, "/system");
  if (system.empty()) system = text_at(config, "/system/name");
  std::string text = workload_text(config);
  if (config.contains("gpus") && config.at("gpus").is_number()) {
    text += (text.empty() ? "" : " on ") +
            fmt::format("{} GPU{}", config.at("gpus").get<std::int64_t>(), config.at("gpus") == 1 ? "" : "s");
    if (!system.empty()) text += " of ";
  } else if (!system.empty() && !text.empty()) {
    text += " on ";
  }
  text += system;
  const std::string scheme = text_at(config, "/scheme/name");
  if (!scheme.empty() && scheme != "data_parallel") text += (text.empty() ? "" : ", ") + scheme;
  std::string algorithm = text_at(config, "/all_reduce/algorithm");
  std::replace(algorithm.begin(), algorithm.end(), '_', '-');
  if (!algorithm.empty()) text += (text.empty() ? "" : ", ") + algorithm + " all-reduce";
  return text;
}

std::string verdict(const Json& result) {
  const Figures figures = figures_of(result);
  if (figures.status != "ok") return unfinished_verdict(result);
  if (figures.backward_s && figures.backward_isolated_s && figures.backward_slowdown) return backward_verdict(figures);
  std::string text = fmt::format("One iteration takes {}.", time_text(figures.iteration_s.value_or(0)));
  if (figures.busbw_GBps) {
    text += fmt::format(" {} collective{} at {} bus bandwidth.", figures.collectives,
                        figures.collectives == 1 ? "" : "s", bandwidth_text(*figures.busbw_GBps));
  }
  return text + exposed_text(figures);
}

std::string comparison_verdict(const std::vector<std::pair<std::string, Json>>& results) {
  if (results.size() < 2) return "";
  const Figures first = figures_of(results.front().second);
  // With more than two, the fastest of the others speaks for them.
  std::size_t best = 1;
  Figures best_figures = figures_of(results[1].second);
  for (std::size_t i = 2; i < results.size(); ++i) {
    Figures figures = figures_of(results[i].second);
    if (figures.iteration_s && (!best_figures.iteration_s || speed(best_figures, figures) > 1)) {
      best = i;
      best_figures = std::move(figures);
    }
  }
  return pair_verdict(results.front().first, first, results[best].first, best_figures);
}

}  // namespace weft
