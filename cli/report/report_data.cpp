#include "cli/report/report_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "cli/output/counters_csv.h"
#include "cli/output/kernels_csv.h"
#include "cli/output/result_json.h"
#include "cli/output/timeline_tracks.h"
#include "cli/report/report_figures.h"

namespace weft {

namespace {

constexpr std::size_t kKernelsThatLost = 20;
constexpr double kNoLoss = 1e-9;               // seconds: less is the rounding of times, not a loss
constexpr std::size_t kCounterSamples = 2000;  // more than a screen has columns

std::array<double, 4> in_order(const SlowdownByCause& causes) {
  return {causes.compute_units, causes.hbm, causes.cache, causes.links};
}

Json operation_row(const OperationRecord& operation, std::size_t stream, std::size_t name, std::uint64_t flow) {
  const auto signed_ns = [](double seconds) { return std::llround(seconds * 1e9); };
  const std::int64_t start = signed_ns(operation.start_s);
  Json row = {stream,
              name,
              static_cast<int>(operation.phase),
              operation.iteration,
              start,
              std::max<std::int64_t>(0, signed_ns(operation.end_s) - start),
              operation.isolated_s ? signed_ns(*operation.isolated_s) : -1,
              flow};
  const auto causes = in_order(operation.causes);
  std::size_t used = causes.size();
  while (used > 0 && signed_ns(causes[used - 1]) == 0) --used;
  for (std::size_t i = 0; i < used; ++i) row.push_back(signed_ns(causes[i]));
  return row;
}

Json counter_json(const CounterTrack& counter) {
  // The mean of each group keeps the area under the curve.
  const std::size_t group = (counter.values.size() + kCounterSamples - 1) / kCounterSamples;
  Json values = Json::array();
  for (std::size_t i = 0; i < counter.values.size(); i += group) {
    const std::size_t end = std::min(i + group, counter.values.size());
    double sum = 0;
    for (std::size_t k = i; k < end; ++k) sum += counter.values[k];
    const double mean = sum / static_cast<double>(end - i);
    // Five digits draw the same curve in a third of the bytes.
    const double step = mean == 0 ? 1 : std::pow(10.0, std::floor(std::log10(std::fabs(mean))) - 4);
    values.push_back(std::round(mean / step) * step);
  }
  return {{"name", counter.name},
          {"kind", to_string(counter.kind)},
          {"unit", counter.unit},
          {"limit", counter.limit ? Json(*counter.limit) : Json(nullptr)},
          {"gpu", counter.gpu ? Json(*counter.gpu) : Json(nullptr)},
          {"period_ns", counter.period_s * 1e9 * static_cast<double>(group)},
          {"values", values}};
}

Json timeline_json(const RunResult& result, std::size_t most_operations) {
  const std::vector<TimelineTrack> tracks = timeline_tracks(result);
  const std::vector<std::uint64_t> flows = collective_flows(result, tracks);
  std::map<std::uint32_t, std::size_t> operations_of_gpu;
  for (const TimelineTrack& track : tracks) operations_of_gpu[track.gpu] += track.operations.size();
  std::map<std::uint32_t, bool> shown;
  std::size_t total = 0;
  for (const auto& [gpu, count] : operations_of_gpu) {
    total += count;
    shown[gpu] = shown.empty() || total <= most_operations;
  }

  Json streams = Json::array(), names = Json::array(), operations = Json::array(), counters = Json::array();
  std::map<std::string, std::size_t> name_index;
  for (const TimelineTrack& track : tracks) {
    if (!shown.at(track.gpu)) continue;
    const std::size_t stream = streams.size();
    streams.push_back({{"gpu", track.gpu},
                       {"stream", track.stream},
                       {"overflow", track.overflow},
                       {"communication", track.communication && !track.compute}});
    for (const std::size_t i : track.operations) {
      const OperationRecord& operation = result.operations[i];
      // Compute and communication of one name are told apart by the name's entry.
      const auto [place, added] =
          name_index.try_emplace((operation.communication ? "c" : "k") + operation.name, names.size());
      if (added) names.push_back({operation.name, operation.communication ? 1 : 0});
      operations.push_back(operation_row(operation, stream, place->second, flows[i]));
    }
  }
  for (const CounterTrack& counter : result.counters) {
    if (!counter.values.empty()) counters.push_back(counter_json(counter));
  }
  const auto left_out = std::count_if(shown.begin(), shown.end(), [](const auto& entry) { return !entry.second; });
  return {{"streams", streams},
          {"names", names},
          {"operations", operations},
          {"counters", counters},
          {"gpus_left_out", left_out}};
}

}  // namespace

Json kernels_that_lost_most(const RunResult& result, std::size_t count) {
  struct Loss {
    TrainingPhase phase = TrainingPhase::other;
    std::int64_t calls = 0;
    double isolated = 0, lost = 0;
    std::array<double, 4> causes{};
  };
  std::map<std::pair<std::string, TrainingPhase>, Loss> losses;
  for (const OperationRecord* row : in_order_of_rows(result.operations)) {  // sums of a page read back are the same
    const OperationRecord& operation = *row;
    if (operation.communication || !operation.isolated_s) continue;
    Loss& loss = losses[{operation.name, operation.phase}];
    loss.phase = operation.phase;
    ++loss.calls;
    loss.isolated += *operation.isolated_s;
    loss.lost += duration_s(operation) - *operation.isolated_s;
    const auto causes = in_order(operation.causes);
    for (std::size_t i = 0; i < causes.size(); ++i) loss.causes[i] += causes[i];
  }
  std::vector<std::pair<std::string, Loss>> ordered;
  for (const auto& [key, loss] : losses) {
    if (loss.lost > kNoLoss) ordered.emplace_back(key.first, loss);
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.second.lost > b.second.lost; });
  Json rows = Json::array();
  for (const auto& [name, loss] : ordered) {
    if (rows.size() == count) break;
    rows.push_back({{"name", name},
                    {"phase", to_string(loss.phase)},
                    {"calls", loss.calls},
                    {"isolated_s", loss.isolated},
                    {"lost_s", loss.lost},
                    {"slowdown", loss.isolated > 0 ? Json(1 + loss.lost / loss.isolated) : Json(nullptr)},
                    {"causes", loss.causes}});
  }
  return rows;
}

Json report_data(const Json& document, const RunResult& records, std::size_t most_operations) {
  Json data;
  data["title"] = describe_run(document.value("config", Json::object()));
  data["verdict"] = verdict(document);
  data["figures"] = figures_json(figures_of(document));
  data["result"] = document;
  data["timeline"] = timeline_json(records, most_operations);
  data["lost"] = kernels_that_lost_most(records, kKernelsThatLost);
  return data;
}

}  // namespace weft
