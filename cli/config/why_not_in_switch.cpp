#include "cli/config/why_not_in_switch.h"

#include <fmt/format.h>

#include "gpu_model/in_switch_programs.h"
#include "network/group_rings.h"
#include "network/plane_lanes.h"

namespace weft {

namespace {

// GPUs of the collective in each node; 0: nodes have different numbers of them.
std::uint32_t members_per_node(const RunConfig& config, const CollectiveDemand& demand) {
  const auto& cluster = config.system.network.cluster;
  const auto size = static_cast<std::uint32_t>(demand.group.size());
  return cluster ? nodes_of_group(demand.group, cluster->gpus_per_node).in_each() : size;
}

std::string fault_among(const Topology& topology, const std::vector<std::uint32_t>& gpus) {
  if (!common_lanes(topology, gpus).empty()) return "";
  return fmt::format("no lane to a switch works for all of {} GPUs ({} out)", gpus.size(),
                     plane_links_out(topology, gpus));
}

}  // namespace

bool pulls_on_one_level(const RunConfig& config) {
  const bool pushes = config.collective.registered && config.system.collectives.in_switch.form == InSwitchForm::push;
  return !pushes && config.system.network.tree.radix == 0;
}

std::string why_not_in_switch(const RunConfig& config, const CollectiveDemand& demand, std::size_t first_group) {
  const SystemSpec& system = config.system;
  if (!system.switch_reduce) return "no switch reduces";
  const ReduceSpec& reduce = *system.switch_reduce;
  const bool adds = demand.kind == CollectiveKind::all_reduce || demand.kind == CollectiveKind::reduce_scatter ||
                    demand.kind == CollectiveKind::reduce;
  if (adds && reduce.accumulation.order == AccumulationOrder::fixed && !pulls_on_one_level(config)) {
    return "switches add in fixed order only what is pulled, on one level";
  }
  if (adds && reduce.adders.lanes_of(demand.type) == 0) {
    return fmt::format("the switches' adders have no lanes for {}", to_string(demand.type));
  }
  const std::uint32_t members = members_per_node(config, demand);
  if (members < 2) return "";  // plan_collective() says so
  const std::uint32_t part = in_switch_part(members, reduce.fan_in);
  if (part == 0) {
    return fmt::format("an entry counts {} GPUs at most, and {} are not a multiple of fewer", reduce.fan_in, members);
  }
  const std::uint32_t groups = part == members ? 1 : static_cast<std::uint32_t>(demand.group.size()) / part;
  if (reduce.max_groups > 0 && first_group + groups > reduce.max_groups) {
    return fmt::format("the switches know {} groups at most", reduce.max_groups);
  }
  return "";
}

std::string why_not_in_network(const SystemSpec& system, const CollectiveDemand& demand) {
  if (!system.network_reduce) return "no router sums";
  if (system.network_reduce->adders.lanes_of(demand.type) > 0) return "";
  return fmt::format("the routers' adders have no lanes for {}", to_string(demand.type));
}

std::string why_not_fused(const RunConfig& config, const CollectiveDemand& demand, std::size_t first_group) {
  if (std::string why = why_not_in_switch(config, demand, first_group); !why.empty()) return why;
  const ReduceSpec& reduce = *config.system.switch_reduce;
  const std::size_t ranks = demand.group.size();
  const bool scatters = demand.kind == CollectiveKind::reduce_scatter;
  if (reduce.accumulation.order == AccumulationOrder::fixed) return "switches add in fixed order only what is pulled";
  if (reduce.timeout == Time(0)) return "sums that make room for others wait for ever without switch_reduce.timeout_ns";
  if (members_per_node(config, demand) != ranks) return "its GPUs are in several nodes";
  if (in_switch_part(static_cast<std::uint32_t>(ranks), reduce.fan_in) != ranks) {
    return fmt::format("an entry counts {} GPUs at most, of {}", reduce.fan_in, ranks);
  }
  if (!scatters) return "";
  if (config.system.network.tree.radix != 0) return "switches of two levels send pushed sums to all";
  if (reduce.max_groups > 0 && first_group + ranks > reduce.max_groups) {
    return fmt::format("the switches know {} groups at most", reduce.max_groups);
  }
  if (demand.bytes.count() % static_cast<std::int64_t>(ranks * kLineBytes) != 0) {
    return fmt::format("{} B are not as many lines of {} B for each of {} GPUs", demand.bytes.count(), kLineBytes,
                       ranks);
  }
  return "";
}

std::string switch_fault(const RunConfig& config, const Network& network, const CollectiveDemand& demand) {
  const std::uint32_t part = in_switch_part(members_per_node(config, demand), config.system.switch_reduce->fan_in);
  for (std::size_t first = 0; part > 0 && first < demand.group.size(); first += part) {
    std::vector<std::uint32_t> gpus;
    for (std::size_t g = first; g < first + part; ++g) gpus.push_back(demand.group[g].value);
    if (std::string fault = fault_among(network.topology, gpus); !fault.empty()) return fault;
  }
  return "";
}

std::string fault_of_group(const RunConfig& config, const std::vector<std::uint32_t>& gpus) {
  if (!config.system.switch_reduce || config.system.network.faults.empty()) return "";
  return fault_among(make_network(config.system.network, config.gpus)->topology, gpus);
}

std::string fallen_back(const CollectiveDemand& demand, const CollectivePlan& plan, const std::string& fault) {
  return fmt::format("{} by {} instead of in the switch: {}.", to_string(demand.kind), plan.algorithm, fault);
}

}  // namespace weft
