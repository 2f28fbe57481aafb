#include "cli/config/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/config/collective_config.h"
#include "cli/config/config_paths.h"
#include "cli/config/sample_config.h"
#include "cli/config/spec_fields.h"
#include "cli/config/system_json.h"
#include "cli/config/system_of.h"
#include "cli/run/beside.h"
#include "cli/run/functional.h"
#include "sim/config_file.h"
#include "sim/error.h"
#include "sim/hash.h"
#include "traces/trace_file.h"
#include "workloads/model_zoo.h"
#include "workloads/single_sample/transformer.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

const EnumNames<Fidelity>& fidelity_table() {
  static const EnumNames<Fidelity> names{{Fidelity::cycle, "cycle"}, {Fidelity::sampled, "sampled"}};
  return names;
}
const EnumNames<ValueSet>& value_set_table() {
  static const EnumNames<ValueSet> names{{ValueSet::uniform, "uniform"},           {ValueSet::normal, "normal"},
                                         {ValueSet::cancellation, "cancellation"}, {ValueSet::overflow, "overflow"},
                                         {ValueSet::special, "special"},           {ValueSet::denormal, "denormal"}};
  return names;
}
const std::vector<std::string>& precision_names() {
  static const std::vector<std::string> names{"fp32", "tf32", "amp"};
  return names;
}

// Lists the fields of a workload; `Workload` is one of the variant's types.
template <class Fields>
void workload_fields(Fields& f, TraceWorkload& trace) {
  f.text("trace", trace.file);
  f.maybe("rank", trace.rank, [](auto& at, const char* key, std::uint32_t& rank) { at.count(key, rank, 0, 1 << 24); });
  f.number("host_time_scale", trace.host_time_scale, 0, 1000, Presence::optional);
  f.flag("recorded_waits", trace.recorded_waits, Presence::optional);
  f.flag("fit_overlapped", trace.fit_overlapped, Presence::optional);
  f.text("demands", trace.demands, Presence::optional);
  f.text("recorded_on", trace.recorded_on, Presence::optional);
}

template <class Fields>
void workload_fields(Fields& f, ModelWorkload& model) {
  f.text("model", model.model);
  f.count("batch", model.batch, 1, 1 << 24);
  f.text("precision", model.precision, Presence::optional);
  f.count("sequence", model.sequence, 0, 1 << 24, Presence::optional);
  f.count("layers", model.layers, 0, 1 << 24, Presence::optional);
  if (transformer_shape(model.model) != nullptr) f.count("key_heads", model.key_heads, 0, 1 << 16, Presence::optional);
}

void read_workload(JsonReader reader, const fs::path& file, RunConfig& config) {
  const std::vector<std::string> kinds{"trace", "model", "collective"};
  std::vector<std::string> present;
  for (const auto& kind : kinds) {
    if (reader.has(kind)) present.push_back(kind);
  }
  if (present.size() != 1) {
    if (present.empty() && !reader.value().empty()) reader.finish();
    reader.fail("", fmt::format(R"(expected exactly one of "trace", "model" and "collective", got {})",
                                present.empty() ? "none" : "\"" + present[0] + "\" and \"" + present[1] + "\""));
  }
  FieldReader fields(reader);
  if (present[0] == "trace") {
    workload_fields(fields, config.workload.emplace<TraceWorkload>());
  } else if (present[0] == "model" && reader.string("model") == "attention") {
    workload_fields(fields, config.workload.emplace<AttentionWorkload>());
  } else if (present[0] == "model" && reader.string("model") == "distributed_product") {
    workload_fields(fields, config.workload.emplace<ProductWorkload>());
  } else if (present[0] == "model" && reader.string("model") == "temporal_convolution") {
    workload_fields(fields, config.workload.emplace<TemporalWorkload>());
  } else if (present[0] == "model") {
    std::vector<std::string> names{"attention", "distributed_product", "temporal_convolution"};
    for (const auto& model : models()) names.push_back(model.name);
    static_cast<void>(reader.one_of("model", names));  // before what else it may lack
    auto& model = config.workload.emplace<ModelWorkload>();
    model.precision = "amp";
    workload_fields(fields, model);
    static_cast<void>(reader.one_of_or("precision", precision_names(), model.precision));
  } else {
    workload_fields(fields, config.workload.emplace<CollectiveWorkload>());
  }
  reader.finish();
  if (const auto* model = std::get_if<ModelWorkload>(&config.workload)) {
    try {
      validate(ModelSpec{.model = model->model,
                         .batch = model->batch,
                         .precision = model->precision,
                         .sequence = model->sequence,
                         .layers = model->layers});
    } catch (const InputError& error) {
      throw InputError(file.string(), "", error.what());
    }
  }
  if (auto* trace = std::get_if<TraceWorkload>(&config.workload)) {
    trace->file = find_input(trace->file, file).string();
    if (!trace->demands.empty()) trace->demands = find_input(trace->demands, file).string();
    if (!trace->recorded_on.empty())
      static_cast<void>(load_preset("systems", trace->recorded_on, file.string(), "/workload/recorded_on"));
  }
}

// Everything but the system and the workload.
template <class Fields>
void experiment_fields(Fields& f, RunConfig& config) {
  f.object(
      "scheme",
      [&](auto& scheme) {
        scheme.choice("name", config.scheme.sample, scheme_table(), Presence::optional);
        scheme.flag("overlap", config.scheme.overlap, Presence::optional);
        scheme.number("bucket_MiB", config.scheme.bucket_MiB, 1e-6, 1e6, Presence::optional);
        scheme.number("first_bucket_MiB", config.scheme.first_bucket_MiB, 1e-6, 1e6, Presence::optional);
        if (is_sample_workload(config)) sample_fields(scheme, config);
      },
      Presence::optional);
  f.object(
      "all_reduce", [&](auto& all_reduce) { all_reduce_fields(all_reduce, config); }, Presence::optional);
  f.object(
      "host",
      [&](auto& host) {
        host.count("gpus_per_process", config.host.gpus_per_process, 1, config.gpus, Presence::optional);
        host.flag("cuda_graph", config.host.cuda_graph, Presence::optional);
        host.refuse_unless(!config.host.cuda_graph || config.system.gpu.launch.graph_node > Time(0), "cuda_graph",
                           fmt::format("expected false (gpu.launch.graph_node_ns of {} is not given), got true",
                                       Json(config.system.name).dump()));
      },
      Presence::optional);
  f.object(
      "private",
      [&](auto& parts) {
        parts.flag("compute_units", config.private_parts.compute_units, Presence::optional);
        parts.flag("cache", config.private_parts.cache, Presence::optional);
        parts.flag("hbm", config.private_parts.hbm, Presence::optional);
        parts.flag("links", config.private_parts.links, Presence::optional);
      },
      Presence::optional);
  beside_fields(f, config.beside);
  f.maybe("functional", config.functional, [](auto& at, const char* key, FunctionalConfig& functional) {
    at.object(key, [&](auto& fields) {
      fields.choice("values", functional.values, value_set_table(), Presence::optional);
      fields.count("seed", functional.seed, 0, INT64_MAX, Presence::optional);
    });
  });
  f.count("iterations", config.iterations, 1, 1000000, Presence::optional);
  f.choice("fidelity", config.fidelity, fidelity_table(), Presence::optional);
  f.count("seed", config.seed, 0, INT64_MAX, Presence::optional);
}

Json resolve(RunConfig config) {
  Json resolved = Json::object();
  resolved["system"] = system_to_json(config.system);
  FieldWriter fields(resolved);
  fields.count("gpus", config.gpus, 1, config.system.max_gpus);
  fields.object("workload", [&](auto& workload) {
    std::visit([&](auto& alternative) { workload_fields(workload, alternative); }, config.workload);
  });
  experiment_fields(fields, config);
  return resolved;
}

}  // namespace

namespace {
// `nodes` of a cluster stands for all of their GPUs.
void read_nodes(JsonReader& top, RunConfig& config) {
  const auto& cluster = config.system.network.cluster;
  if (!cluster) top.fail("nodes", "expected a system of several nodes, got one of a single node");
  if (top.has("gpus")) top.fail("nodes", R"(expected either "nodes" or "gpus", got both)");
  const std::int64_t most = std::max(1U, config.system.max_gpus / cluster->gpus_per_node);
  config.gpus = std::min(config.system.max_gpus,
                         static_cast<std::uint32_t>(top.integer("nodes", 1, most)) * cluster->gpus_per_node);
}

// A trace is replayed on as many GPUs as it was recorded on, where the system has them.
void take_recorded_gpus(RunConfig& config) {
  const auto* trace = std::get_if<TraceWorkload>(&config.workload);
  if (trace == nullptr) return;
  const std::uint32_t recorded = recorded_world_size(trace->file).value_or(config.gpus);
  if (recorded <= config.system.max_gpus) config.gpus = recorded;
}

}  // namespace

void have_links_among(std::uint32_t gpus, std::uint32_t before, SystemSpec& system) {
  NetworkSpec& network = system.network;
  const std::uint32_t all = network.cluster ? network.cluster->gpus_per_node : system.max_gpus;
  gpus = std::min(gpus, all);
  before = std::min(before, all);
  if (network.topology != TopologyKind::fully_connected || gpus == before || before < 2) return;
  network.links_per_gpu = network.links_per_gpu / (before - 1) * (gpus - 1);
}

bool is_sweep(const Json& document) {
  return document.is_object() && (document.contains("base") || document.contains("grid") || document.contains("zip"));
}

RunConfig read_run_config(const Json& document, const fs::path& file) {
  if (is_sweep(document)) {
    throw InputError(
        file.string(), "",
        fmt::format("expected a configuration, got a sweep, whose points run by: weft sweep {}", file.string()));
  }
  JsonReader top(document, file.string());
  // Asked for first, so that a misspelt key is named before what it leaves missing.
  for (const char* key : {"system", "workload", "gpus", "nodes", "scheme", "all_reduce", "host", "private", "beside",
                          "functional", "iterations", "fidelity", "seed", "threads", "gpu", "network", "switch_reduce",
                          "network_reduce", "collectives"}) {
    static_cast<void>(top.has(key));
  }
  top.finish();

  RunConfig config;
  config.system = system_of(top);
  FieldReader fields(top);
  config.gpus = config.system.max_gpus;
  if (top.has("nodes")) read_nodes(top, config);
  fields.count("gpus", config.gpus, 1, config.system.max_gpus, Presence::optional);
  fields.count("threads", config.threads, 1, 1024, Presence::optional);
  read_workload(top.object("workload"), file, config);
  if (!top.has("gpus") && !top.has("nodes")) take_recorded_gpus(config);
  experiment_fields(fields, config);
  check_sample(config, file.string());
  load_algorithm(config, file);
  check_collectives(config, file.string());
  check_functional(config, file.string());
  check_beside(config, file.string());
  config.resolved = resolve(config);
  config.sha256 = sha256(config.resolved.dump());
  have_links_among(config.gpus, config.system.max_gpus, config.system);
  return config;
}

RunConfig read_run_config(const fs::path& file, const std::vector<std::string>& sets) {
  Json document = load_configuration(file);
  for (const auto& assignment : sets) apply_set(document, assignment, file.string());
  return read_run_config(document, file);
}

}  // namespace weft
