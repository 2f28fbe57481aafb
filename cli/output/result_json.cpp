#include "cli/output/result_json.h"

#include <cmath>

#include "cli/config/config_paths.h"
#include "sim/error.h"

namespace weft {

namespace {

Json number(double value) {
  WEFT_CHECK(std::isfinite(value), "a number of the result is not finite");
  return value;
}

Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json out_of_memory_json(const OutOfMemory& oom) {
  Json holders = Json::array();
  for (const auto& [what, bytes] : oom.largest_holders) holders.push_back({{"what", what}, {"bytes", bytes}});
  return {{"gpu", oom.gpu}, {"at", oom.at}, {"bytes_over", oom.bytes_over}, {"largest_holders", holders}};
}

Json iteration_json(const RunResult& result) {
  const IterationTimes& times = result.iteration;
  const bool finished = result.status == "ok";
  const auto time = [&](const std::optional<double>& value) { return finished ? number(value) : Json(nullptr); };
  Json per_iteration = Json::array();
  for (const double seconds : result.per_iteration_s) per_iteration.push_back(number(seconds));
  Json json;
  json["time_s"] = time(times.time_s);
  json["forward_s"] = time(times.forward_s);
  json["backward_s"] = time(times.backward_s);
  json["backward_isolated_s"] = time(times.backward_isolated_s);
  json["backward_slowdown"] = time(times.backward_slowdown);
  json["communication_s"] = time(times.communication_s);
  json["communication_exposed_s"] = time(times.communication_exposed_s);
  json["communication_overlapped_s"] = time(times.communication_overlapped_s);
  json["optimizer_s"] = time(times.optimizer_s);
  json["idle_s"] = time(times.idle_s);
  json["per_iteration"] = per_iteration;
  return json;
}

Json causes_json(const SlowdownByCause& causes) {
  Json json;
  json["compute_units"] = number(causes.compute_units);
  json["hbm"] = number(causes.hbm);
  json["cache"] = number(causes.cache);
  json["links"] = number(causes.links);
  return json;
}

// What collectives that wait cost, and those that move.
Json phases_json(const RunResult& result) {
  const SlowdownByCause& all = *result.slowdown_by_cause;
  const SlowdownByCause& waiting = result.slowdown_waiting;
  Json json;
  json["waiting"] = causes_json(waiting);
  json["moving"] = causes_json({all.compute_units - waiting.compute_units, all.hbm - waiting.hbm,
                                all.cache - waiting.cache, all.links - waiting.links});
  return json;
}

Json throughput_json(const RunResult& result) {
  const bool finished = result.status == "ok";
  Json json;
  json["samples_per_s"] = finished ? number(result.samples_per_s) : Json(nullptr);
  json["tokens_per_s"] = finished ? number(result.tokens_per_s) : Json(nullptr);
  json["scaling_efficiency"] = finished ? number(result.scaling_efficiency) : Json(nullptr);
  return json;
}

Json collective_json(const CollectiveResult& collective) {
  Json json;
  json["name"] = collective.name;
  json["kind"] = collective.kind;
  json["algorithm"] = collective.algorithm;
  json["protocol"] = collective.protocol.empty() ? Json(nullptr) : Json(collective.protocol);
  json["channels"] = collective.channels;
  json["bytes"] = collective.bytes;
  json["ranks"] = collective.ranks;
  json["start_s"] = number(collective.start_s);
  json["end_s"] = number(collective.end_s);
  json["waiting_s"] = number(collective.waiting_s);
  json["algbw_GBps"] = number(collective.algbw_GBps);
  json["busbw_GBps"] = number(collective.busbw_GBps);
  return json;
}

template <class Items, class Convert>
Json array_of(const Items& items, Convert convert) {
  Json array = Json::array();
  for (const auto& item : items) array.push_back(convert(item));
  return array;
}

Json beside_json(const BesideResult& row) {
  return {{"work", row.work},
          {"blocks", row.blocks},
          {"loaded_bytes", row.loaded_bytes},
          {"stored_bytes", row.stored_bytes},
          {"loaded_GBps", number(row.loaded_GBps)},
          {"stored_GBps", number(row.stored_GBps)}};
}

Json gpu_json(const GpuResult& gpu) {
  Json memory;
  for (std::size_t i = 0; i < kMemoryClassCount; ++i) {
    memory[to_string(static_cast<MemoryClass>(i))] = or_null(gpu.memory[i]);
  }
  Json json;
  json["id"] = gpu.id;
  json["peak_memory_bytes"] = or_null(gpu.peak_memory_bytes);
  json["memory"] = memory;
  json["fits"] = or_null(gpu.fits);
  json["hbm_read_bytes"] = gpu.hbm_read_bytes;
  json["hbm_write_bytes"] = gpu.hbm_write_bytes;
  json["hbm_communication_bytes"] = gpu.hbm_communication_bytes;
  json["compute_unit_seconds"] = {{"compute", number(gpu.compute_unit_seconds_compute)},
                                  {"communication", number(gpu.compute_unit_seconds_communication)}};
  json["busy_fraction"] = number(gpu.busy_fraction);
  if (!gpu.beside.empty()) json["beside"] = array_of(gpu.beside, beside_json);
  if (gpu.power) {
    json["power"] = {{"energy_J", number(gpu.power->energy_J)},
                     {"mean_W", number(gpu.power->mean_W)},
                     {"highest_W", number(gpu.power->highest_W)},
                     {"mean_clock_MHz", number(gpu.power->mean_clock_MHz)},
                     {"lowest_clock_MHz", number(gpu.power->lowest_clock_MHz)}};
  }
  json["chunks_summed"] = gpu.chunks_summed;
  json["chunks_sent_again"] = gpu.chunks_sent_again;
  return json;
}

Json link_json(const LinkResult& link) {
  return {{"name", link.name},
          {"bytes", link.bytes},
          {"wire_bytes", link.wire_bytes},
          {"busy_fraction", number(link.busy_fraction)},
          {"peak_fraction", number(link.peak_fraction)},
          {"stall_s", number(link.stall_s)},
          {"queue_high_water_packets", link.queue_high_water_packets}};
}

Json switch_json(const SwitchResult& one) {
  Json stalls = Json::array();
  for (const double stall_s : one.port_stall_s) stalls.push_back(number(stall_s));
  return {{"name", one.name},
          {"reduced_bytes", one.reduced_bytes},
          {"multicast_bytes", one.multicast_bytes},
          {"table_high_water_bytes", one.table_high_water_bytes},
          {"table_stall_s", number(one.table_stall_s)},
          {"port_stall_s", std::move(stalls)},
          {"table_entries_opened", one.table_entries_opened},
          {"table_mean_entries", number(one.table_mean_entries)},
          {"table_residence_s", number(one.table_residence_s)},
          {"table_refused", one.table_refused},
          {"wasted_replies", one.wasted_replies},
          {"table_evictions", one.table_evictions},
          {"table_timeouts", one.table_timeouts},
          {"adder_busy_fraction", number(one.adder_busy_fraction)},
          {"slots_high_water", one.slots_high_water},
          {"stalled_packets", one.stalled_packets},
          {"duplicates", one.duplicates},
          {"lost_packets", one.lost_packets}};
}

Json functional_json(const FunctionalResult& functional) {
  Json json;
  json["type"] = functional.type;
  json["accumulator"] = functional.accumulator;
  json["order"] = functional.order.empty() ? Json(nullptr) : Json(functional.order);
  json["elements"] = functional.elements;
  json["not_finite"] = functional.not_finite;
  json["correctly_rounded"] = functional.correctly_rounded;
  json["wrong"] = functional.wrong;
  json["same_on_all_ranks"] = or_null(functional.same_on_all_ranks);
  json["max_absolute_error"] = number(functional.max_absolute_error);
  json["max_relative_error"] = number(functional.max_relative_error);
  json["max_error_ulps"] = number(functional.max_error_ulps);
  json["max_bound_share"] = number(functional.max_bound_share);
  json["digest"] = functional.digest;
  return json;
}

Json engine_json(const EngineResult& engine) {
  Json json;
  json["wall_s"] = number(engine.wall_s);
  json["threads"] = engine.threads;
  json["memory_transactions"] = engine.memory_transactions;
  json["packets"] = engine.packets;
  json["simulated_s"] = number(engine.simulated_s);
  json["skipped_fraction"] = number(engine.skipped_fraction);
  json["sampling_error_estimate"] = number(engine.sampling_error_estimate);
  json["peak_rss_bytes"] = engine.peak_rss_bytes;
  return json;
}

}  // namespace

Json result_to_json(const RunResult& result) {
  Json json;
  json["schema"] = "weft-result/1";
  json["version"] = version();
  json["config"] = result.config;
  json["config_sha256"] = result.config_sha256;
  if (result.trace_sha256) json["trace_sha256"] = *result.trace_sha256;
  json["status"] = result.status;
  if (result.out_of_memory) json["out_of_memory"] = out_of_memory_json(*result.out_of_memory);
  json["iteration"] = iteration_json(result);
  const bool has_causes = result.slowdown_by_cause && result.status == "ok";
  json["slowdown_by_cause"] = has_causes ? causes_json(*result.slowdown_by_cause) : Json(nullptr);
  json["slowdown_by_phase"] = has_causes ? phases_json(result) : Json(nullptr);
  json["throughput"] = throughput_json(result);
  json["collectives"] = array_of(result.collectives, collective_json);
  json["gpus"] = array_of(result.gpus, gpu_json);
  json["links"] = array_of(result.links, link_json);
  json["switches"] = array_of(result.switches, switch_json);
  if (result.functional) json["functional"] = functional_json(*result.functional);
  json["engine"] = engine_json(result.engine);
  json["notes"] = result.notes;
  return json;
}

std::string json_text(const Json& document) {
  // Names come from traces and may hold bytes that are no UTF-8: replace those rather than lose the run.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

double duration_s(const OperationRecord& operation) { return operation.end_s - operation.start_s; }

std::optional<double> slowdown(const OperationRecord& operation) {
  if (!operation.isolated_s || *operation.isolated_s <= 0) return std::nullopt;
  return duration_s(operation) / *operation.isolated_s;
}

}  // namespace weft
