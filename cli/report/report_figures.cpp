#include "cli/report/report_figures.h"

#include <algorithm>

#include "sim/error.h"

namespace weft {

namespace {

std::optional<double> number_at(const Json& json, const char* pointer) {
  const Json::json_pointer place(pointer);
  if (!json.contains(place) || !json.at(place).is_number()) return std::nullopt;
  return json.at(place).get<double>();
}

void collect_collectives(const Json& result, Figures& figures) {
  double bus_gigabytes = 0, seconds = 0;
  for (const Json& collective : result.at("collectives")) {
    const double time = collective.at("end_s").get<double>() - collective.at("start_s").get<double>();
    bus_gigabytes += collective.at("busbw_GBps").get<double>() * time;
    seconds += time;
    ++figures.collectives;
  }
  if (seconds > 0) figures.busbw_GBps = bus_gigabytes / seconds;
}

void collect_gpus(const Json& result, Figures& figures) {
  const Json& gpus = result.at("gpus");
  const auto iterations = std::max<std::size_t>(1, result.at("iteration").at("per_iteration").size());
  if (gpus.empty() || figures.status != "ok") return;
  double all = 0, communication = 0, unit_seconds = 0;
  for (const Json& gpu : gpus) {
    all += gpu.at("hbm_read_bytes").get<double>() + gpu.at("hbm_write_bytes").get<double>();
    communication += gpu.at("hbm_communication_bytes").get<double>();
    unit_seconds += gpu.at("compute_unit_seconds").at("communication").get<double>();
  }
  const double share = 1.0 / static_cast<double>(gpus.size() * iterations);
  figures.hbm_bytes = all * share;
  figures.hbm_communication_bytes = communication * share;
  figures.compute_unit_seconds_communication = unit_seconds * share;
}

Figures collect(const Json& result) {
  Figures figures;
  figures.status = result.at("status").get<std::string>();
  figures.iteration_s = number_at(result, "/iteration/time_s");
  figures.forward_s = number_at(result, "/iteration/forward_s");
  figures.backward_s = number_at(result, "/iteration/backward_s");
  figures.backward_isolated_s = number_at(result, "/iteration/backward_isolated_s");
  figures.backward_slowdown = number_at(result, "/iteration/backward_slowdown");
  figures.optimizer_s = number_at(result, "/iteration/optimizer_s");
  figures.communication_s = number_at(result, "/iteration/communication_s");
  figures.exposed_s = number_at(result, "/iteration/communication_exposed_s");
  figures.overlapped_s = number_at(result, "/iteration/communication_overlapped_s");
  figures.idle_s = number_at(result, "/iteration/idle_s");
  if (figures.iteration_s && figures.exposed_s && figures.idle_s) {
    figures.compute_s = std::max(0.0, *figures.iteration_s - *figures.exposed_s - *figures.idle_s);
  }
  if (result.at("slowdown_by_cause").is_object()) {
    const auto seconds = [&](const char* key) { return result.at("slowdown_by_cause").at(key).get<double>(); };
    figures.causes = {{"compute_units", "compute units", seconds("compute_units")},
                      {"hbm", "HBM", seconds("hbm")},
                      {"cache", "cache", seconds("cache")},
                      {"links", "links", seconds("links")}};
  }
  figures.samples_per_s = number_at(result, "/throughput/samples_per_s");
  figures.tokens_per_s = number_at(result, "/throughput/tokens_per_s");
  figures.scaling_efficiency = number_at(result, "/throughput/scaling_efficiency");
  collect_collectives(result, figures);
  collect_gpus(result, figures);
  return figures;
}

}  // namespace

Figures figures_of(const Json& result) {
  if (!result.is_object() || result.value("schema", "") != "weft-result/1") {
    throw InputError("", "/schema", "expected a document of schema weft-result/1, got another");
  }
  try {
    return collect(result);
  } catch (const Json::exception& error) {
    throw InputError("", "", std::string("expected a complete weft-result/1 document, got: ") + error.what());
  }
}

Json figures_json(const Figures& figures) {
  const auto number = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  Json causes = Json::array();
  for (const CauseFigure& cause : figures.causes) {
    causes.push_back({{"key", cause.key}, {"name", cause.name}, {"seconds", cause.seconds}});
  }
  return {{"status", figures.status},
          {"iteration_s", number(figures.iteration_s)},
          {"forward_s", number(figures.forward_s)},
          {"backward_s", number(figures.backward_s)},
          {"backward_isolated_s", number(figures.backward_isolated_s)},
          {"backward_slowdown", number(figures.backward_slowdown)},
          {"optimizer_s", number(figures.optimizer_s)},
          {"communication_s", number(figures.communication_s)},
          {"exposed_s", number(figures.exposed_s)},
          {"overlapped_s", number(figures.overlapped_s)},
          {"idle_s", number(figures.idle_s)},
          {"compute_s", number(figures.compute_s)},
          {"causes", causes},
          {"samples_per_s", number(figures.samples_per_s)},
          {"tokens_per_s", number(figures.tokens_per_s)},
          {"scaling_efficiency", number(figures.scaling_efficiency)},
          {"busbw_GBps", number(figures.busbw_GBps)},
          {"collectives", figures.collectives},
          {"hbm_bytes", number(figures.hbm_bytes)},
          {"hbm_communication_bytes", number(figures.hbm_communication_bytes)},
          {"compute_unit_seconds_communication", number(figures.compute_unit_seconds_communication)}};
}

}  // namespace weft
