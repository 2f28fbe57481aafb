#include "cli/run/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/run/switch_place.h"
#include "network/plane_lanes.h"
#include "sim/error.h"
#include "switch_reduce/aggregation_pool.h"
#include "switch_reduce/reduction_table.h"

namespace weft {

namespace {

// Whether a lane between GPUs of the node and switches is out.
bool any_plane_lane_out(const Topology& topology, std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> gpus(count);
  std::iota(gpus.begin(), gpus.end(), first);
  return !plane_links_out(topology, gpus).empty();
}

}  // namespace

Machine::Machine(SystemSpec system, const std::vector<GpuWork>& work, std::vector<MulticastGroup> multicast_groups,
                 CarriedValues values, std::vector<AggregationGroup> aggregation_groups, std::uint64_t seed,
                 std::uint32_t folded_gpus)
    : system_(std::move(system)),
      multicast_groups_(std::move(multicast_groups)),
      aggregation_groups_(std::move(aggregation_groups)),
      seed_(seed),
      values_(values),
      folded_gpus_(folded_gpus) {
  WEFT_CHECK(!work.empty(), "a machine needs a GPU");
  if (work.size() == 1 && folded_gpus_ == 0) {
    gpus_.push_back(std::make_unique<Gpu>(GpuId{0}, system_.gpu, work.front(), LinkPorts()));
    return;
  }
  fabric_.emplace(system_.network, static_cast<std::uint32_t>(work.size()), Origin{}, aggregation_plan(), folded_gpus_);
  build_gpus(work);
  build_switches();
}

std::uint32_t Machine::gpus_of_node(std::uint32_t all) const {
  return system_.network.cluster ? std::min(system_.network.cluster->gpus_per_node, all) : all;
}

AggregationPlan Machine::aggregation_plan() const {
  if (aggregation_groups_.empty()) return {};
  const AggregationSpec& spec = *system_.network_reduce;
  return {aggregation_groups_,
          [spec](const auto& groups, const auto& places, std::uint32_t lanes) {
            return std::make_unique<AggregationPool>(spec, groups, places, lanes);
          },
          {spec.loss, seed_}};
}

// A GPU's places in the trees of its groups.
MessageEndpointSpec Machine::message_endpoint(std::uint32_t gpu) const {
  MessageEndpointSpec end;
  if (aggregation_groups_.empty()) return end;
  const AggregationSpec& spec = *system_.network_reduce;
  end.timeout = spec.timeout;
  end.loss = {spec.loss, seed_};
  end.link = (std::uint64_t{1} << 32) + gpu;  // routers' are their nodes
  for (std::size_t g = 0; g < aggregation_groups_.size(); ++g) {
    const AggregationGroup& group = aggregation_groups_[g];
    MessageEndpointSpec::Group& own = end.groups.emplace_back();
    const auto at = std::find(group.gpus.begin(), group.gpus.end(), GpuId{gpu});
    if (at == group.gpus.end()) continue;
    own.streams = group.streams;
    own.window = spec.window_of(group.streams);
    own.place = fabric_->trees()[g].members[static_cast<std::size_t>(at - group.gpus.begin())];
  }
  return end;
}

void Machine::build_gpus(const std::vector<GpuWork>& work) {
  const Topology& topology = fabric_->topology();
  const auto there = static_cast<std::uint32_t>(work.size());
  const std::uint32_t all = std::max(folded_gpus_, there);
  const std::uint32_t per_node = gpus_of_node(all);
  bool out = false;
  for (std::uint32_t g = 0; g < there; ++g) {
    const std::uint32_t first = g / per_node * per_node;
    LinkPlan plan{.first_gpu = first, .gpus = std::min(per_node, all - first)};
    const TopologyNodeKind neighbour = topology.nodes()[topology.neighbour(g, 0)].kind;
    if (neighbour != TopologyNodeKind::hub) {
      plan.kind = neighbour == TopologyNodeKind::gpu ? LinkPlan::Kind::peers : LinkPlan::Kind::router;
      if (there < plan.gpus) plan.there = there;
      plan.lanes_for_each = lanes_for_each_gpu(system_.network, plan.gpus);
      plan.loops = topology.loops(g);
    } else {
      plan.lanes = common_lanes(topology, {g});
      if (g == first) out = any_plane_lane_out(topology, first, std::min(plan.gpus, there - first));
      if (out) plan_around_faults(g, plan);
    }
    std::vector<LinkBundle> bundles;
    for (std::uint32_t p = 0; p < topology.nodes()[g].ports; ++p) {
      bundles.push_back({&fabric_->in(g, p), &fabric_->out(g, p), fabric_->lanes(g, p)});
    }
    gpus_.push_back(
        std::make_unique<Gpu>(GpuId{g}, system_.gpu, work[g], LinkPorts(plan, GpuId{g}, bundles), message_endpoint(g)));
  }
}

// The lanes that a GPU shares with each other one of its node, and with its multicast groups.
void Machine::plan_around_faults(std::uint32_t gpu, LinkPlan& plan) const {
  const Topology& topology = fabric_->topology();
  for (std::uint32_t other = plan.first_gpu; other < plan.first_gpu + plan.gpus; ++other) {
    plan.lanes_to_gpu.push_back(common_lanes(topology, {gpu, other}));
  }
  for (std::size_t group = 0; group < multicast_groups_.size(); ++group) {
    std::vector<std::uint32_t> there{gpu};
    for (const GpuId member : members(group, GpuId{gpu})) there.push_back(member.value);
    plan.lanes_of_group.push_back(common_lanes(topology, there));
  }
}

void Machine::build_switches() {
  const Topology& topology = fabric_->topology();
  const auto usual = std::make_shared<const LinkTiming>(system_.network.link);
  const auto there = static_cast<std::uint32_t>(gpus_.size());
  const std::uint32_t node_gpus = gpus_of_node(std::max(folded_gpus_, there));
  const bool folded = folded_gpus_ > 0 && there < node_gpus;  // within a node
  for (std::uint32_t n = 0; n < topology.nodes().size(); ++n) {
    const TopologyNode& node = topology.nodes()[n];
    if (node.kind != TopologyNodeKind::hub) continue;
    std::vector<SwitchPort> ports;
    for (std::uint32_t p = 0; p < node.ports; ++p) {
      SwitchPort port{&fabric_->in(n, p), &fabric_->out(n, p), {}};
      for (std::uint32_t lane = 0; lane < topology.cables()[topology.out(n, p).cable].lanes; ++lane) {
        const double factor = topology.lane_factor(topology.out(n, p), lane);
        if (factor < 1 && factor > 0) port.lanes = fabric_->lanes(n, p);
      }
      ports.push_back(std::move(port));
    }
    const std::uint32_t lanes = topology.cables()[topology.out(n, 0).cable].lanes;
    std::unique_ptr<Reducer> reducer;
    if (system_.switch_reduce) {
      const ReduceSpec& reduce = *system_.switch_reduce;
      std::unique_ptr<LineSums> sums;
      if (values_.payloads != nullptr) {
        sums = std::make_unique<LineSums>(reduce.accumulation, values_.format, *values_.payloads);
      }
      const std::uint32_t members = folded ? node_gpus : static_cast<std::uint32_t>(ports.size());
      if (const std::uint32_t entry = ReductionTable::entry_bytes(reduce, members);
          entry > reduce.table_bytes_per_port) {
        throw InputError("", "/switch_reduce/table_bytes_per_port",
                         fmt::format("expected an entry of {} B or more, got {}", entry, reduce.table_bytes_per_port));
      }
      reducer = std::make_unique<ReductionTable>(reduce, static_cast<std::uint32_t>(ports.size()) * lanes, members,
                                                 std::move(sums));
    }
    SwitchPlace place = switch_place(topology, n);
    if (folded) {
      place.gpus = place.gpus_per_port = node_gpus;
      place.folded = true;
    }
    const std::uint32_t first = place.first_gpu / node_gpus * node_gpus;
    std::vector<MulticastGroup> groups;  // of this node
    for (const MulticastGroup& group : multicast_groups_) {
      MulticastGroup& own = groups.emplace_back(MulticastGroup{{}, group.type, group.images, group.home});
      std::copy_if(group.gpus.begin(), group.gpus.end(), std::back_inserter(own.gpus),
                   [&](GpuId gpu) { return gpu.value - first < node_gpus; });
    }
    switches_.push_back(
        std::make_unique<Switch>(system_.network.switch_, usual, lanes, ports, std::move(reducer), place, groups));
  }
}

std::vector<GpuId> Machine::members(std::size_t group, GpuId sender) const {
  const std::uint32_t per_node = fabric_->network().gpus_per_node;
  std::vector<GpuId> found;
  std::ranges::copy_if(multicast_groups_[group].gpus, std::back_inserter(found),
                       [&](GpuId gpu) { return gpu.value / per_node == sender.value / per_node; });
  return found;
}

const Chip& Machine::chip(std::uint32_t node) const {
  const TopologyNode& at = fabric_->topology().nodes()[node];
  if (at.kind == TopologyNodeKind::gpu) return *gpus_[at.number];
  return *switches_[at.number];
}

void Machine::add_to(Conductor& engine) {
  for (std::size_t g = 0; g < gpus_.size(); ++g) engine.add_chip(fmt::format("gpu{}", g), *gpus_[g]);
  for (std::size_t s = 0; s < switches_.size(); ++s) engine.add_chip(fmt::format("switch{}", s), *switches_[s]);
  if (fabric_) {
    fabric_->add_to(engine, [this](std::uint32_t node) -> const Chip& { return chip(node); });
  }
}

Machine::QuietMoment Machine::run_until_quiet(const ProgramPlace& from, std::uint32_t threads,
                                              const std::function<void(Time)>& between,
                                              const std::function<bool(const std::vector<std::uint32_t>&)>& apart) {
  Conductor conductor({fabric_ ? fabric_->window() : system_.network.link.latency, threads, false});
  add_to(conductor);
  running_ = &conductor;
  std::optional<QuietMoment> reached;
  bool all_at_once = false;
  std::vector<std::uint32_t> ended;                   // by then, since `from`
  std::vector<std::size_t> checked(gpus_.size(), 0);  // of these, by GPU
  const auto has_ended = [&](std::size_t gpu) {
    const std::vector<OpTimes>& times = gpus_[gpu]->times();
    std::size_t& next = checked[gpu];
    while (next < ended.size() && times[ended[next]].end >= 0) ++next;
    return next == ended.size();
  };
  const auto look = [&](Time now) {
    if (between) between(now);
    if (!reached) {
      const auto place = gpus_.front()->quiet();
      if (!place || *place == from) return false;
      if (all_at_once && !std::ranges::all_of(gpus_, [&](const auto& gpu) { return gpu->quiet() == place; })) {
        return false;
      }
      reached = {*place, gpus_.front()->l2(), all_at_once};
      ended.clear();
      for (std::uint32_t op = from.first; op < place->end; ++op) {
        if (gpus_.front()->times()[op].end >= 0) ended.push_back(op);
      }
    }
    for (std::size_t g = 1; g < gpus_.size(); ++g) {
      if (!has_ended(g)) return false;
    }
    if (all_at_once || !apart || !apart(ended)) return true;
    all_at_once = true;
    reached.reset();
    std::ranges::fill(checked, std::size_t{0});
    return false;
  };
  end_ = conductor.run_until(look).end;
  running_ = nullptr;
  return reached ? *reached : QuietMoment{from, gpus_.front()->l2()};
}

Time Machine::timed_left() const {
  Time left = Time::max();
  for (const auto& gpu : gpus_) left = std::min(left, gpu->timed_left());
  return left;
}

void Machine::leave_out(double seconds) {
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    gpus_[g]->leave_out(gpus_[g]->clock().to_subcycles(nanoseconds(seconds * 1e9)));
    changed(g);
  }
}

void Machine::run_until(std::uint32_t threads, const std::function<bool(Time)>& done) {
  Conductor conductor({fabric_ ? fabric_->window() : system_.network.link.latency, threads, false});
  add_to(conductor);
  end_ = conductor.run_until(done).end;
}

bool Machine::run(std::uint32_t threads, const std::function<void(Time)>& progress) {
  Engine engine({fabric_ ? fabric_->window() : system_.network.link.latency, threads});
  add_to(engine);
  end_ = engine.run(progress).end;
  if (!std::ranges::all_of(gpus_, [](const auto& gpu) { return gpu->done(); })) return false;
  for (const auto& hub : switches_) {
    WEFT_CHECK(!hub->holds_packets(), "all work is done, yet a switch holds packets");
  }
  for (std::size_t r = 0; fabric_ && r < fabric_->routers(); ++r) {
    WEFT_CHECK(!fabric_->router(r).holds_packets(), "all work is done, yet a router holds packets");
  }
  check_delivery();
  return true;
}

// What the GPUs sent has come, but for what switches and routers copied, summed and lost.
void Machine::check_delivery() const {
  std::int64_t sent = 0;
  std::int64_t delivered = 0;
  for (const auto& gpu : gpus_) {
    delivered += gpu->statistics().delivered_bytes;
    for (std::size_t b = 0; b < gpu->ports().size(); ++b) {
      const Transmitter& link = gpu->ports().transmitter(b);
      for (std::uint32_t lane = 0; lane < link.lanes(); ++lane) sent += link.statistics(lane).payload_bytes;
    }
  }
  for (const auto& hub : switches_) sent += hub->statistics().added_bytes;
  for (std::size_t r = 0; fabric_ && r < fabric_->routers(); ++r) sent += fabric_->router(r).added_bytes();
  WEFT_CHECK(sent == delivered, fmt::format("GPUs sent {} B, of which {} B came", sent, delivered));
}

std::string Machine::deadlock() const {
  if (!fabric_) return "";
  return fabric_->waiting_cycle();
}

void Machine::set_l2(const L2Cache& l2) {
  for (const auto& gpu : gpus_) gpu->set_l2(l2);
}

}  // namespace weft
