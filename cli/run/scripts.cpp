#include "cli/run/scripts.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>

#include "cli/config/network_json.h"
#include "cli/config/why_not_in_switch.h"
#include "cli/run/beside.h"
#include "network/group_rings.h"
#include "network/network.h"
#include "sim/error.h"

namespace weft {

namespace {

// A copy between host and device, as the copy engine's one block: it moves lines at the rate of the host link.
ScriptedKernel copy_script(const CopyDemand& copy) {
  ScriptedKernel kernel;
  kernel.executor = Executor::host_copy_engine;
  WarpScript script;
  Phase phase;
  LineStream stream;
  stream.first = static_cast<LineAddress>(copy.address / kLineBytes);
  stream.lines = static_cast<std::uint32_t>((copy.bytes.count() + kLineBytes - 1) / kLineBytes);
  if (stream.lines > 0) copy.to_device ? phase.store(stream) : phase.load(stream);
  phase.rounds = std::max(1U, stream.lines / 32);
  phase.stages = 8;
  script.phases.push_back(phase);
  script.lines_in_flight = 256;
  kernel.programs = std::make_shared<WrittenPrograms>(std::vector<std::vector<WarpScript>>{{std::move(script)}});
  return kernel;
}

// Of the router of a GPU, to other routers, at most.
std::uint32_t links_between_routers(const NetworkSpec& network, std::uint32_t gpus) {
  const auto both_ways = [](std::uint32_t size) { return std::min(2U, size - 1); };
  std::uint32_t neighbours = 0;
  if (network.topology == TopologyKind::ring) neighbours = both_ways(gpus);
  if (network.topology == TopologyKind::hypercube) neighbours = static_cast<std::uint32_t>(std::bit_width(gpus - 1));
  for (const std::uint32_t size : network.dimensions) neighbours += both_ways(size);
  return neighbours * network.lanes;
}

// What the lanes between a GPU and its router carry, in links between routers.
std::uint32_t injection_links(const NetworkSpec& network) {
  const auto rate = [](const LinkSpec& link) { return link.bandwidth.count(); };
  const std::int64_t all = network.injection_lanes * rate(network.injection.value_or(network.link));
  return static_cast<std::uint32_t>(std::max<std::int64_t>(1, all / rate(network.link)));
}

// Links by which a GPU reaches the others of its node: those to a switch, or the fewest on the way through its router.
std::uint32_t links_of_gpu(const NetworkSpec& network, std::uint32_t gpus_per_node) {
  if (network.topology == TopologyKind::hybrid_cube_mesh) return 6 * network.lanes;
  const bool direct = network.topology == TopologyKind::switched || network.topology == TopologyKind::fully_connected;
  if (direct) return network.links_per_gpu;
  if (!has_router_for_each_gpu(network.topology) || gpus_per_node < 2) return network.injection_lanes;
  return std::min(injection_links(network), links_between_routers(network, gpus_per_node));
}

// One of those links.
LinkSpec link_of_gpu(const NetworkSpec& network) {
  return has_router_for_each_gpu(network.topology) ? network.link : network.injection.value_or(network.link);
}

// The same among a group of one node, where not all of them lead there; of a hybrid cube mesh those that rings go by.
std::uint32_t links_among(const NetworkSpec& network, std::uint32_t gpus_per_node, const GpuGroup& group,
                          const RingOrders* rings) {
  const auto ranks = static_cast<std::uint32_t>(group.size());
  const bool in_node = group.front().value / gpus_per_node == group.back().value / gpus_per_node;
  if (in_node && ranks < gpus_per_node && network.topology == TopologyKind::fully_connected) {
    return network.links_per_gpu / (gpus_per_node - 1) * (ranks - 1);
  }
  if (in_node && network.topology == TopologyKind::hybrid_cube_mesh) {
    return rings != nullptr ? rings->cycles() : network.lanes;
  }
  return links_of_gpu(network, gpus_per_node);
}

// Says so where the lanes between GPUs and their routers bind before those routers' links do.
std::string narrow_injection(const NetworkSpec& network, std::uint32_t gpus) {
  if (!has_router_for_each_gpu(network.topology) || lanes_for_each_gpu(network, gpus) > 0) return "";
  const std::uint32_t links = links_between_routers(network, gpus);
  if (injection_links(network) >= links) return "";
  const auto lanes = [](std::uint32_t count) { return fmt::format("{} lane{}", count, count == 1 ? "" : "s"); };
  std::string note = fmt::format("A GPU has {} to its router (network.injection_lanes), which has up to {} to others",
                                 lanes(network.injection_lanes), links);
  if (const std::uint32_t own = network.lanes * gpus; own <= kMaxLanes) {
    note += fmt::format(": a router that is part of the GPU would have {} for each GPU, {} in all", network.lanes, own);
  }
  return note + ".";
}

double nic_of_gpu_GBps(const NetworkSpec& network) {
  if (!network.cluster) return 0;
  const ClusterSpec& cluster = *network.cluster;
  return static_cast<double>(cluster.link.bandwidth.count()) * 1e-9 * cluster.nics_per_node / cluster.gpus_per_node;
}

// From GPU to GPU, by two NICs and a leaf switch.
Time latency_between_nodes(const NetworkSpec& network) {
  if (!network.cluster) return {};
  const ClusterSpec& cluster = *network.cluster;
  const Time to_switch = cluster.nic_link.latency + cluster.nic_latency + cluster.link.latency;
  return to_switch + cluster.switch_.latency + to_switch;
}

// The place of a group of GPUs and a type, or of a new one.
std::size_t find_group(const std::vector<AggregationGroup>& groups, const GpuGroup& members, DataType type) {
  const auto is_it = [&](const AggregationGroup& g) { return g.gpus == members.members() && g.type == type; };
  const auto known = std::find_if(groups.begin(), groups.end(), is_it);
  return static_cast<std::size_t>(known - groups.begin());
}

}  // namespace

Scripts::Scripts(const RunConfig& config, const std::vector<Program>& programs)
    : programs_(&programs), host_(config.host), private_parts_(config.private_parts) {
  using Key = std::pair<GpuGroup, std::uint32_t>;
  std::map<Key, std::vector<std::pair<std::uint32_t, OpId>>> meetings;
  std::vector<Key> order;
  std::size_t copies = 0;
  for (std::uint32_t gpu = 0; gpu < programs.size(); ++gpu) {
    scripts_.emplace_back(programs[gpu].ops.size(), nullptr);
    for (std::uint32_t op = 0; op < programs[gpu].ops.size(); ++op) {
      const ProgramOp& described = programs[gpu].ops[op];
      if (described.kind == ProgramOpKind::copy) ++copies;
      if (described.kind != ProgramOpKind::collective) continue;
      const Key key{described.collective.group, described.collective.sequence};
      if (meetings.find(key) == meetings.end()) order.push_back(key);
      meetings[key].emplace_back(gpu, OpId{op});
    }
  }
  const auto& cluster = config.system.network.cluster;
  const auto gpus = static_cast<std::uint32_t>(programs.size());
  CollectiveContext context{.gpu = &config.system.gpu,
                            .library = &config.system.collectives,
                            .links_per_gpu = 0,  // of each group its own
                            .gpus_per_node = cluster ? cluster->gpus_per_node : gpus,
                            .gpus_per_nic = cluster ? cluster->gpus_per_node / cluster->nics_per_node : 1,
                            .gpus_per_process = config.host.gpus_per_process,
                            .link = link_of_gpu(config.system.network).bandwidth,
                            .nic_GBps = nic_of_gpu_GBps(config.system.network),
                            .node_latency = latency_between_nodes(config.system.network),
                            .values_travel = config.functional.has_value()};
  const bool faults = config.system.switch_reduce && !config.system.network.faults.empty();
  const std::unique_ptr<Network> network = faults ? make_network(config.system.network, gpus) : nullptr;
  if (config.system.switch_reduce) context.fan_in = config.system.switch_reduce->fan_in;
  std::vector<std::pair<GpuGroup, std::shared_ptr<const RingOrders>>> rings;
  struct Multicast {
    GpuGroup group;
    DataType type;
    std::size_t number;  // the first one
  };
  std::vector<Multicast> multicasts;
  collectives_.reserve(order.size());
  for (const Key& key : order) {
    const auto& members = meetings[key];
    const CollectiveDemand& demand = programs[members.front().first].ops[members.front().second.value].collective;
    if (members.size() != demand.group.size()) {
      throw InputError(fmt::format("collective {} of a group: expected all {} GPUs of it to take part, got {}",
                                   key.second, demand.group.size(), members.size()));
    }
    Collective collective;
    collective.members = members;
    if (demand.group.size() > 1) {
      auto ring = std::find_if(rings.begin(), rings.end(), [&](const auto& r) { return r.first == demand.group; });
      if (ring == rings.end()) {
        ring = rings.emplace(ring, demand.group, rings_of_group(config.system.network, gpus, demand.group));
      }
      context.ring_orders = ring->second;
      context.links_per_gpu =
          links_among(config.system.network, context.gpus_per_node, demand.group, ring->second.get());
      const auto known = std::find_if(multicasts.begin(), multicasts.end(), [&](const Multicast& m) {
        return m.group == demand.group && m.type == demand.type;
      });
      const std::size_t number = known == multicasts.end() ? multicast_groups_.size() : known->number;
      context.multicast_group = static_cast<std::uint16_t>(number);
      context.why_not_in_switch = why_not_in_switch(config, demand, number);
      if (network) context.switch_fault = switch_fault(config, *network, demand);
      const std::size_t tree = find_group(aggregation_groups_, demand.group, demand.type);
      context.aggregation_group = static_cast<std::uint16_t>(tree);
      context.why_not_in_network = why_not_in_network(config.system, demand);
      collective.plan = plan_collective(context, demand, config.collective, flags_);
      if (collective.plan.fell_back) ++fallen_back_[fallen_back(demand, collective.plan, context.switch_fault)];
      if (collective.plan.algorithm == kInNetwork) {
        if (tree == aggregation_groups_.size()) aggregation_groups_.push_back({demand.group.members(), demand.type});
        std::uint32_t& streams = aggregation_groups_[tree].streams;
        streams = std::max(streams, collective.plan.channels);
      }
      if (known == multicasts.end() && !collective.plan.multicasts.empty()) {
        multicasts.push_back({demand.group, demand.type, number});
        for (const GpuGroup& group : collective.plan.multicasts) {
          multicast_groups_.push_back({group.members(), demand.type});
        }
      }
      flags_ += collective.plan.flags;
    }
    collectives_.push_back(std::move(collective));
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      const auto& ranks = collectives_.back().plan.ranks;
      scripts_[members[rank].first][members[rank].second.value] = ranks.empty() ? &nothing_ : &ranks[rank];
    }
  }
  if (!collectives_.empty() && gpus > 1) narrow_injection_ = narrow_injection(config.system.network, gpus);
  fused_.emplace(config, programs, multicast_groups_, flags_);
  beside_ = beside_kernels(config, flags_);
  if (!beside_.empty()) stop_flag_ = flags_++;
  copies_.reserve(copies);
  for (std::size_t gpu = 0; gpu < programs.size(); ++gpu) {
    for (std::size_t op = 0; op < programs[gpu].ops.size(); ++op) {
      if (programs[gpu].ops[op].kind != ProgramOpKind::copy) continue;
      copies_.push_back(copy_script(programs[gpu].ops[op].copy));
      scripts_[gpu][op] = &copies_.back();
    }
  }
}

std::vector<std::string> Scripts::notes() const {
  std::vector<std::string> notes;
  for (const auto& [what, count] : fallen_back_) notes.push_back(fmt::format("{} {}", count, what));
  if (!narrow_injection_.empty()) notes.push_back(narrow_injection_);
  return notes;
}

GpuWork Scripts::work(std::size_t gpu) const {
  GpuWork work{&(*programs_)[gpu], scripts_[gpu], flags_, host_, private_parts_};
  work.pushes = fused_->of(gpu);
  for (const ScriptedKernel& kernel : beside_) work.residents.push_back(&kernel);
  work.stop_flag = stop_flag_;
  return work;
}

}  // namespace weft
