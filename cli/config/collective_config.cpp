#include "cli/config/collective_config.h"

#include <algorithm>

#include "cli/config/config_paths.h"
#include "network/collective_algorithm.h"
#include "network/protocol.h"
#include "network/user_algorithm.h"
#include "sim/error.h"
#include "workloads/collective_series.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMaxCollectiveBytes = std::int64_t{1} << 46;
constexpr double kMaxDelayUs = 1e9;

// What this version can simulate; docs/formats.md says the same.
const EnumNames<AllReduceAlgorithm>& algorithm_table() {
  static const EnumNames<AllReduceAlgorithm> names{{AllReduceAlgorithm::automatic, "auto"},
                                                   {AllReduceAlgorithm::ring, "ring"},
                                                   {AllReduceAlgorithm::in_switch, "in_switch"},
                                                   {AllReduceAlgorithm::in_network, "in_network"},
                                                   {AllReduceAlgorithm::tree, "tree"},
                                                   {AllReduceAlgorithm::double_binary_tree, "double_binary_tree"},
                                                   {AllReduceAlgorithm::halving_doubling, "halving_doubling"},
                                                   {AllReduceAlgorithm::direct, "direct"},
                                                   {AllReduceAlgorithm::hierarchical, "hierarchical"}};
  return names;
}
const EnumNames<CollectiveProtocol>& protocol_table() {
  static const EnumNames<CollectiveProtocol> names{{CollectiveProtocol::automatic, "auto"},
                                                   {CollectiveProtocol::simple, "Simple"},
                                                   {CollectiveProtocol::ll, "LL"},
                                                   {CollectiveProtocol::ll128, "LL128"}};
  return names;
}
const EnumNames<Mover>& mover_table() {
  static const EnumNames<Mover> names{{Mover::compute_units, to_string(Mover::compute_units)},
                                      {Mover::copy_engine, to_string(Mover::copy_engine)},
                                      {Mover::endpoint_engine, to_string(Mover::endpoint_engine)},
                                      {Mover::near_memory, to_string(Mover::near_memory)}};
  return names;
}
const EnumNames<NumberFormat>& number_format_table() {
  static const EnumNames<NumberFormat> names = [] {
    EnumNames<NumberFormat> all;
    for (const NumberFormat format : {NumberFormat::fp32, NumberFormat::fp16, NumberFormat::bf16,
                                      NumberFormat::fp8_e4m3, NumberFormat::fp8_e5m2, NumberFormat::int32}) {
      all.emplace_back(format, to_string(format));
    }
    return all;
  }();
  return names;
}
DataType data_type_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::fp32:
      return DataType::fp32;
    case NumberFormat::fp16:
      return DataType::fp16;
    case NumberFormat::bf16:
      return DataType::bf16;
    case NumberFormat::fp8_e4m3:
    case NumberFormat::fp8_e5m2:
      return DataType::fp8;
    case NumberFormat::int32:
      return DataType::int32;
    case NumberFormat::fp64:
      return DataType::fp64;
  }
  throw InternalError("unknown number format");
}
template <class Enum>
std::vector<std::string> names_of(const EnumNames<Enum>& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) names.push_back(entry.second);
  return names;
}

std::string name_of(AllReduceAlgorithm algorithm) {
  for (const auto& [known, name] : algorithm_table()) {
    if (known == algorithm) return name;
  }
  throw InternalError("unknown algorithm");
}

template <class Fields>
void all_fields(Fields& f, RunConfig& config) {
  CollectiveWish& wish = config.collective;
  f.choice("algorithm", wish.algorithm, algorithm_table(), Presence::optional);
  f.text("algorithm_file", config.algorithm_file, Presence::optional);
  f.count("ranks_per_node", wish.ranks_per_node, 0, 65535, Presence::optional);
  f.choice("protocol", wish.protocol, protocol_table(), Presence::optional);
  f.count("channels", wish.channels, 0, 1024, Presence::optional);
  f.choice("mover", wish.mover, mover_table(), Presence::optional);
  f.flag("registered", wish.registered, Presence::optional);
  f.flag("high_priority", config.high_priority, Presence::optional);
  f.refuse_unless(wish.mover == Mover::compute_units || config.system.gpu.engines.has_value(), "mover",
                  fmt::format("expected \"compute_units\" (gpu.engines of {} is not given), got \"{}\"",
                              Json(config.system.name).dump(), to_string(wish.mover)));
  f.refuse_unless(wish.mover == Mover::compute_units || config.algorithm_file.empty(), "algorithm_file",
                  fmt::format("expected none with the mover {}, got one", to_string(wish.mover)));
  f.refuse_unless(wish.algorithm != AllReduceAlgorithm::in_switch || config.system.switch_reduce.has_value(),
                  "algorithm",
                  "expected an algorithm that runs where no switch reduces, got \"in_switch\"; " +
                      (config.system.network.topology == TopologyKind::switched
                           ? fmt::format("the key \"switch_reduce\" gives {} reducing switches, for example "
                                         "{{\"preset\": \"nvswitch3\"}}",
                                         Json(config.system.name).dump())
                           : "only a \"switched\" network has switches that do"));
  f.refuse_unless(wish.algorithm != AllReduceAlgorithm::in_network || config.system.network_reduce.has_value(),
                  "algorithm",
                  fmt::format("expected an algorithm that runs where no router sums, got \"in_network\"; the key "
                              "\"network_reduce\" gives {} routers that do",
                              Json(config.system.name).dump()));
  f.refuse_unless(wish.algorithm != AllReduceAlgorithm::hierarchical || wish.ranks_per_node > 0 ||
                      config.system.network.cluster.has_value(),
                  "ranks_per_node",
                  fmt::format("expected the ranks of a node for \"hierarchical\" ({} has one node), got none",
                              Json(config.system.name).dump()));
}

template <class Fields>
void all_fields(Fields& f, CollectiveWorkload& collective) {
  f.choice("collective", collective.kind, collective_table());
  const bool barrier = collective.kind == CollectiveKind::barrier;
  std::int64_t bytes = collective.bytes.count();
  f.count("bytes", bytes, barrier ? 0 : 1, barrier ? 0 : kMaxCollectiveBytes,
          barrier ? Presence::optional : Presence::required);
  collective.bytes = Bytes(bytes);
  f.count("root", collective.root, 0, 65535, Presence::optional);
  f.count_lists("groups", collective.groups);
  f.numbers("start_delay_us", collective.start_delay_us, 0, kMaxDelayUs);
  f.number("start_jitter_ns", collective.start_jitter_ns, 0, kMaxDelayUs * 1e3, Presence::optional);
  f.choice("type", collective.type, number_format_table(), Presence::optional);
}

std::vector<std::size_t> group_sizes(const CollectiveWorkload& workload, std::uint32_t gpus) {
  std::vector<std::size_t> sizes;
  for (const auto& group : workload.groups) sizes.push_back(group.size());
  if (sizes.empty()) sizes.push_back(gpus);
  return sizes;
}

void check_algorithm(const RunConfig& config, const CollectiveWorkload& workload, const std::string& file) {
  const CollectiveWish& wish = config.collective;
  if (wish.algorithm == AllReduceAlgorithm::in_switch && !is_staged_in_switch(workload.kind) && !wish.registered &&
      !config.system.collectives.in_switch.registered && wish.mover == Mover::compute_units) {
    throw InputError(file, "/all_reduce/registered",
                     fmt::format("expected true for {} in_switch: only all_reduce, all_gather and reduce_scatter have "
                                 "staging copies, got false",
                                 to_string(workload.kind)));
  }
  if (wish.mover != Mover::compute_units || wish.user_algorithm || does(wish.algorithm, workload.kind)) return;
  throw InputError(file, "/all_reduce/algorithm",
                   fmt::format("expected {} for {}, got {}", fmt::join(algorithm_names_for(workload.kind), " or "),
                               to_string(workload.kind), name_of(wish.algorithm)));
}

// A file is for one collective and one number of ranks: a run without any such is a slip.
void check_user_algorithm(const RunConfig& config, CollectiveKind kind, const std::vector<std::size_t>& sizes,
                          const std::string& file) {
  if (!config.collective.user_algorithm) return;
  const UserAlgorithm& algorithm = *config.collective.user_algorithm;
  for (const std::size_t size : sizes) {
    if (algorithm.kind == kind && algorithm.ranks.size() == size) continue;
    throw InputError(file, "/all_reduce/algorithm_file",
                     fmt::format("expected an algorithm for {} of {} ranks, got {} of {} ({})", to_string(kind), size,
                                 to_string(algorithm.kind), algorithm.ranks.size(), algorithm.name));
  }
}

}  // namespace

const EnumNames<CollectiveKind>& collective_table() {
  static const EnumNames<CollectiveKind> names = [] {
    using Kind = CollectiveKind;
    EnumNames<Kind> all;
    for (const Kind kind :
         {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::broadcast, Kind::reduce, Kind::all_to_all,
          Kind::gather, Kind::scatter, Kind::send_receive, Kind::shift, Kind::barrier}) {
      all.emplace_back(kind, to_string(kind));
    }
    return all;
  }();
  return names;
}

void all_reduce_fields(FieldReader& fields, RunConfig& config) { all_fields(fields, config); }
void all_reduce_fields(FieldWriter& fields, RunConfig& config) { all_fields(fields, config); }
void workload_fields(FieldReader& fields, CollectiveWorkload& workload) { all_fields(fields, workload); }
void workload_fields(FieldWriter& fields, CollectiveWorkload& workload) { all_fields(fields, workload); }

fs::path find_input(const std::string& written, const fs::path& config_file, const fs::path& shipped) {
  std::vector<fs::path> candidates{config_file.parent_path() / written, fs::path(written)};
  if (!shipped.empty()) candidates.push_back(shipped / written);
  for (const fs::path& candidate : candidates) {
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored)) return fs::weakly_canonical(fs::absolute(candidate), ignored);
  }
  throw MissingInput(written);
}

void load_algorithm(RunConfig& config, const fs::path& config_file) {
  if (config.algorithm_file.empty()) return;
  config.algorithm_file = find_input(config.algorithm_file, config_file, config_directory() / "algorithms").string();
  // Proved for the connections that have the fewest places, whatever protocol the tuner takes.
  std::uint32_t slots = UINT32_MAX;
  std::uint32_t pieces = 1;
  for (const auto protocol : {CollectiveProtocol::simple, CollectiveProtocol::ll, CollectiveProtocol::ll128}) {
    const ProtocolShape shape = protocol_shape(config.system.collectives, protocol, true);
    slots = std::min(slots, shape.slots);
    pieces = std::max(pieces, shape.pieces_per_chunk);
  }
  config.collective.user_algorithm =
      std::make_shared<const UserAlgorithm>(load_user_algorithm(config.algorithm_file, pieces, slots));
}

void check_collectives(const RunConfig& config, const std::string& file) {
  if (std::holds_alternative<ModelWorkload>(config.workload)) {
    check_user_algorithm(config, CollectiveKind::all_reduce, {config.gpus}, file);
  }
  const auto* workload = std::get_if<CollectiveWorkload>(&config.workload);
  if (workload == nullptr) return;
  try {
    validate(series_of(config));
  } catch (const InputError& error) {
    throw InputError(file, "", error.what());
  }
  check_algorithm(config, *workload, file);
  check_user_algorithm(config, workload->kind, group_sizes(*workload, config.gpus), file);
}

CollectiveSeries series_of(const RunConfig& config) {
  const auto& workload = std::get<CollectiveWorkload>(config.workload);
  return {.kind = workload.kind,
          .bytes = workload.bytes,
          .type = data_type_of(workload.type),
          .root = workload.root,
          .gpus = config.gpus,
          .iterations = config.iterations,
          .groups = workload.groups,
          .start_delay_us = workload.start_delay_us};
}

std::vector<std::string> all_reduce_algorithm_names() { return names_of(algorithm_table()); }
std::vector<std::string> algorithm_names_for(CollectiveKind kind) {
  std::vector<std::string> names;
  for (const auto& [algorithm, name] : algorithm_table()) {
    if (does(algorithm, kind)) names.push_back(name);
  }
  return names;
}
std::vector<std::string> collective_names() { return names_of(collective_table()); }
std::vector<std::string> protocol_names() { return names_of(protocol_table()); }

}  // namespace weft
