#include "cli/config/network_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/config/system_json.h"
#include "network/network.h"
#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {

namespace {

// Bounds only keep out what is a slip of the unit or cannot be simulated; they are no claim about hardware.
constexpr double kMaxTimeNs = 1e9;
constexpr double kMinTimeNs = 1e-3;
constexpr double kMaxGBps = 1e6;
constexpr double kMinGBps = 1e-3;

struct TopologyEntry {
  TopologyKind kind;
  const char* name;
  const char* description;
};
constexpr TopologyEntry kTopologies[] = {
    {TopologyKind::switched, "switched", "every GPU linked to every switch, or to a leaf of every plane of two levels"},
    {TopologyKind::fully_connected, "fully_connected", "every GPU linked to every other"},
    {TopologyKind::ring, "ring", "a router a GPU, in a ring"},
    {TopologyKind::mesh, "mesh", "a router a GPU, in 1 to 6 dimensions; dimension order"},
    {TopologyKind::torus, "torus", "a mesh that wraps round; two virtual channels a message class"},
    {TopologyKind::hypercube, "hypercube", "a router a GPU; e-cube routing"},
    {TopologyKind::hybrid_cube_mesh, "hybrid_cube_mesh", "8 GPUs of six links, as in DGX-1 V100"},
    {TopologyKind::fat_tree, "fat_tree", "two or three levels of switches; up, then down"},
    {TopologyKind::dragonfly, "dragonfly", "groups of routers, all joined; minimal routes"},
    {TopologyKind::graph, "graph", "routers and links as listed"},
};

const EnumNames<TopologyKind>& topology_names() {
  static const EnumNames<TopologyKind> names = [] {
    EnumNames<TopologyKind> all;
    for (const TopologyEntry& entry : kTopologies) all.emplace_back(entry.kind, entry.name);
    return all;
  }();
  return names;
}
const EnumNames<PathChoice>& path_choice_names() {
  static const EnumNames<PathChoice> names{{PathChoice::deterministic, "deterministic"},
                                           {PathChoice::ecmp, "ecmp"},
                                           {PathChoice::spray, "spray"},
                                           {PathChoice::adaptive, "adaptive"}};
  return names;
}
const EnumNames<GraphRoutes>& graph_route_names() {
  static const EnumNames<GraphRoutes> names{{GraphRoutes::up_down, "up_down"},
                                            {GraphRoutes::shortest_path, "shortest_path"}};
  return names;
}
const EnumNames<Arbitration>& arbitration_names() {
  static const EnumNames<Arbitration> names{{Arbitration::round_robin, "round_robin"}, {Arbitration::age, "age"}};
  return names;
}

bool has_routers(const NetworkSpec& network) {
  return network.topology != TopologyKind::switched && network.topology != TopologyKind::fully_connected;
}

template <class Fields>
void link_fields(Fields& f, LinkSpec& link) {
  constexpr std::int64_t kLineBytes = 128;
  f.rate_GBps("bandwidth_GBps", link.bandwidth, kMinGBps, kMaxGBps);
  f.number("framing_efficiency", link.framing_efficiency, 0.01, 1);
  f.time_ns("latency_ns", link.latency, kMinTimeNs, kMaxTimeNs);
  f.count("flit_bytes", link.flit_bytes, 1, 4096);
  f.count("header_flits", link.header_flits, 0, 1024);
  f.number("acknowledge_flits", link.acknowledge_flits, 0, 1024, Presence::optional);
  f.count("max_payload_bytes", link.max_payload_bytes, kLineBytes, kLineBytes);  // units load and store lines
  f.count("credits", link.credits, 1, 1 << 20);
}

template <class Fields>
void switch_fields(Fields& f, SwitchSpec& at, bool router) {
  f.time_ns("latency_ns", at.latency, 0, kMaxTimeNs);
  if (!router) return;
  f.choice("arbitration", at.arbitration, arbitration_names(), Presence::optional);
  f.count("speedup", at.speedup, 1, 16, Presence::optional);
  f.flag("virtual_output_queues", at.virtual_output_queues, Presence::optional);
}

template <class Fields>
void tree_fields(Fields& f, TreeSpec& tree, bool rails) {
  f.count("levels", tree.levels, 2, 3);
  f.count("radix", tree.radix, 2, 1024);
  f.count("oversubscription", tree.oversubscription, 1, 64, Presence::optional);
  if (rails) f.flag("rails", tree.rails, Presence::optional);
}

template <class Fields>
void graph_fields(Fields& f, GraphSpec& graph) {
  f.objects("nodes", graph.nodes, [](auto& node, GraphSpec::Node& value) {
    node.text("name", value.name);
    node.flag("gpu", value.gpu, Presence::optional);
  });
  f.objects("links", graph.links, [](auto& link, GraphSpec::Link& value) {
    link.text("from", value.from);
    link.text("to", value.to);
    link.count("lanes", value.lanes, 1, kMaxLanes, Presence::optional);
    link.maybe("bandwidth_GBps", value.bandwidth,
               [](auto& at, const char* key, Bandwidth& rate) { at.rate_GBps(key, rate, kMinGBps, kMaxGBps); });
    link.maybe("latency_ns", value.latency,
               [](auto& at, const char* key, Time& time) { at.time_ns(key, time, kMinTimeNs, kMaxTimeNs); });
  });
}

// A graph may stand in a file of its own, beside the one that names it. Returns whether it does.
bool read_graph_file(FieldReader& fields, NetworkSpec& network) {
  JsonReader& reader = fields.reader();
  if (!reader.has("graph_file")) return false;
  const std::filesystem::path path = std::filesystem::path(reader.file()).parent_path() / reader.string("graph_file");
  const Json document = load_config(path);
  JsonReader graph_reader(document, path.string());
  FieldReader graph(graph_reader);
  graph_fields(graph, network.graph);
  graph_reader.finish();
  return true;
}

template <class Fields>
void cluster_fields(Fields& f, ClusterSpec& cluster) {
  f.count("gpus_per_node", cluster.gpus_per_node, 1, 65535);
  f.count("nics_per_node", cluster.nics_per_node, 1, cluster.gpus_per_node);
  f.object("nic_link", [&](auto& link) { link_fields(link, cluster.nic_link); });
  f.time_ns("nic_latency_ns", cluster.nic_latency, 0, kMaxTimeNs);
  f.object("link", [&](auto& link) { link_fields(link, cluster.link); });
  f.object("switch", [&](auto& at) { switch_fields(at, cluster.switch_, true); });
  f.object("tree", [&](auto& tree) { tree_fields(tree, cluster.tree, true); });
}

template <class Fields>
void router_fields(Fields& f, NetworkSpec& network) {
  f.count("lanes", network.lanes, 1, kMaxLanes, Presence::optional);
  if constexpr (Fields::kReads) network.injection_lanes = network.lanes;  // if it does not say otherwise
  f.count("injection_lanes", network.injection_lanes, 1, kMaxLanes, Presence::optional);
  f.maybe("injection", network.injection, [](auto& at, const char* key, LinkSpec& link) {
    at.object(key, [&](auto& fields) { link_fields(fields, link); });
  });
  switch (network.topology) {
    case TopologyKind::mesh:
    case TopologyKind::torus:
      f.counts("dimensions", network.dimensions, 1, 65535, 6);
      return;
    case TopologyKind::fat_tree:
      f.object("tree", [&](auto& tree) { tree_fields(tree, network.tree, false); });
      return;
    case TopologyKind::dragonfly:
      f.object("dragonfly", [&](auto& dragonfly) {
        dragonfly.count("gpus_per_router", network.dragonfly.gpus_per_router, 1, 1024);
        dragonfly.count("routers_per_group", network.dragonfly.routers_per_group, 1, 1024);
        dragonfly.count("global_links_per_router", network.dragonfly.global_links_per_router, 1, 1024);
      });
      return;
    case TopologyKind::graph:
      if constexpr (Fields::kReads) {
        if (read_graph_file(f, network)) return;
      }
      f.object("graph", [&](auto& graph) { graph_fields(graph, network.graph); });
      return;
    default:
      return;
  }
}

template <class Fields>
void all_fields(Fields& f, NetworkSpec& network, std::uint32_t max_gpus) {
  f.choice("topology", network.topology, topology_names());
  f.object("link", [&](auto& link) { link_fields(link, network.link); });
  f.object("switch", [&](auto& at) { switch_fields(at, network.switch_, has_routers(network)); });
  f.maybe("cluster", network.cluster, [](auto& at, const char* key, ClusterSpec& cluster) {
    at.object(key, [&](auto& fields) { cluster_fields(fields, cluster); });
  });
  if (has_routers(network)) {
    router_fields(f, network);
  } else {
    const bool switched = network.topology == TopologyKind::switched;
    f.count("links_per_gpu", network.links_per_gpu, 1, 65535);
    f.count("switches", network.switches, switched ? 1 : 0, switched ? 65535 : 0);
    if (switched && (Fields::kReads || network.tree.radix > 0)) {
      f.object(
          "tree", [&](auto& tree) { tree_fields(tree, network.tree, false); }, Presence::optional);
    }
    const std::uint32_t gpus = network.cluster ? std::min(max_gpus, network.cluster->gpus_per_node) : max_gpus;
    const std::uint32_t needed = switched ? network.switches : gpus - 1;
    f.refuse_unless(network.links_per_gpu >= needed, "links_per_gpu",
                    fmt::format("expected at least {} (one to each {}), got {}", needed,
                                switched ? "switch" : "other GPU", network.links_per_gpu));
    const std::int64_t most = kMaxLanes * std::max<std::int64_t>(1, needed);
    f.refuse_unless(network.links_per_gpu <= most, "links_per_gpu",
                    fmt::format("expected at most {}, got {}", most, network.links_per_gpu));
  }
  if (has_routers(network) || network.cluster) {
    f.object(
        "routing",
        [&](auto& routing) {
          routing.choice("paths", network.routing.choice, path_choice_names(), Presence::optional);
          routing.choice("graph", network.routing.graph, graph_route_names(), Presence::optional);
          routing.count("virtual_channels", network.routing.virtual_channels, 0, 8, Presence::optional);
        },
        Presence::optional);
  }
  f.objects(
      "faults", network.faults,
      [](auto& fault, FaultSpec& value) {
        fault.text("link", value.link);
        fault.number("factor", value.factor, 0, 1);
      },
      Presence::optional);
}

}  // namespace

void network_fields(FieldReader& fields, NetworkSpec& network, std::uint32_t max_gpus) {
  all_fields(fields, network, max_gpus);
  static_cast<void>(make_network(network, max_gpus, {fields.reader().file(), fields.reader().path()}));
}

void network_fields(FieldWriter& fields, NetworkSpec& network, std::uint32_t max_gpus) {
  all_fields(fields, network, max_gpus);
}

const std::vector<std::pair<std::string, std::string>>& topology_descriptions() {
  static const std::vector<std::pair<std::string, std::string>> all = [] {
    std::vector<std::pair<std::string, std::string>> entries;
    for (const TopologyEntry& entry : kTopologies) entries.emplace_back(entry.name, entry.description);
    return entries;
  }();
  return all;
}

Json expand_link_presets(Json network, const std::string& file, const std::string& path) {
  const auto expand = [&](Json& parent, const char* key, const std::string& where) {
    if (!parent.is_object() || !parent.contains(key)) return;
    Json& link = parent[key];
    if (!link.is_object() || !link.contains("preset")) return;
    const std::string at = child_path(child_path(where, key), "preset");
    if (!link["preset"].is_string()) throw InputError(file, at, "expected a name, got " + describe(link["preset"]));
    Json expanded = load_preset("links", link["preset"].get<std::string>(), file, at);
    expanded.erase("description");
    link.erase("preset");
    merge_into(expanded, link);
    link = std::move(expanded);
  };
  for (const char* key : {"link", "injection"}) expand(network, key, path);
  if (network.is_object() && network.contains("cluster")) {
    for (const char* key : {"link", "nic_link"}) expand(network["cluster"], key, child_path(path, "cluster"));
  }
  return network;
}

void drop_keys_of_other_topology(Json& network, const Json& over) {
  if (!network.is_object() || !over.contains("topology") || !over["topology"].is_string()) return;
  const std::string topology = over["topology"].get<std::string>();
  const bool direct = topology == "switched" || topology == "fully_connected";
  const auto keep_if = [&](bool known, std::initializer_list<const char*> keys) {
    if (known) return;
    for (const char* key : keys) network.erase(key);
  };
  keep_if(direct, {"switches", "links_per_gpu"});
  keep_if(!direct, {"lanes", "injection_lanes", "injection"});
  keep_if(topology == "mesh" || topology == "torus", {"dimensions"});
  keep_if(network.value("topology", "") == topology, {"tree"});
  keep_if(topology == "dragonfly", {"dragonfly"});
  keep_if(topology == "graph", {"graph", "graph_file"});
  if (!direct) return;
  if (network.contains("switch") && network["switch"].is_object()) {
    for (const char* key : {"arbitration", "speedup", "virtual_output_queues"}) network["switch"].erase(key);
  }
  if (!network.contains("cluster")) network.erase("routing");
}

}  // namespace weft
