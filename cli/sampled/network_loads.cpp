#include "cli/sampled/network_loads.h"

#include <algorithm>
#include <tuple>

#include "network/group_rings.h"
#include "network/network.h"
#include "sim/error.h"

namespace weft {

namespace {

// `times` as much, but for what is a maximum.
void add(const LinkLoad& more, std::int64_t times, LinkLoad& sum) {
  sum.payload_bytes += more.payload_bytes * times;
  sum.wire_bytes += more.wire_bytes * times;
  sum.packets += more.packets * times;
  sum.busy += more.busy * times;
  sum.busiest = std::max(sum.busiest, more.busiest);
  sum.stalled += more.stalled * times;
  sum.queue_high_water = std::max(sum.queue_high_water, more.queue_high_water);
}

// Of `times` ports that are alike, with tables of their own.
void add(const SwitchLoad& more, std::uint32_t times, SwitchLoad& sum) {
  sum.reduced_bytes += more.reduced_bytes * times;
  sum.multicast_bytes += more.multicast_bytes * times;
  sum.table_high_water_bytes = std::max(sum.table_high_water_bytes, more.table_high_water_bytes);
  sum.stalled += more.stalled * times;
  sum.adders_busy += more.adders_busy * times;
  sum.entries_opened += more.entries_opened * times;
  sum.refused += more.refused * times;
  sum.wasted_replies += more.wasted_replies * times;
  sum.evicted += more.evicted * times;
  sum.timed_out += more.timed_out * times;
  sum.entry_seconds += more.entry_seconds * times;
  const std::size_t tables = more.stalled_by_table.size();
  sum.stalled_by_table.resize(std::max(sum.stalled_by_table.size(), tables * times), 0);
  for (std::size_t i = 0; i < tables * times; ++i) sum.stalled_by_table[i] += more.stalled_by_table[i % tables];
}

// Which node of the part that was simulated stands for a node of the whole.
class StandIns {
 public:
  StandIns(const NetworkSpec& network, const Topology& whole, std::uint32_t gpus, const Topology& part,
           std::uint32_t simulated)
      : whole_(&whole),
        part_(&part),
        nodes_meet_(network.cluster.has_value()),
        loops_(simulated == 1 && part.loops(0)),
        rings_(loops_ ? rings_of_group(network, gpus, GpuGroup::first(gpus)) : nullptr),
        simulated_(simulated),
        node_(network.cluster ? network.cluster->gpus_per_node : gpus) {
    const std::uint32_t nodes = (gpus + node_ - 1) / node_;
    nodes_ = std::max(1U, simulated / node_);
    hubs_ = whole.count(TopologyNodeKind::hub) / nodes;
    if (network.cluster) {
      gpus_per_nic_ = node_ / network.cluster->nics_per_node;
      if (network.cluster->tree.rails) leaves_per_rail_ = routers(whole, 1) / network.cluster->nics_per_node;
    }
    for (std::uint32_t n = 0; n < part.nodes().size(); ++n) {
      const auto [at, fresh] =
          places_.emplace(std::tuple(part.nodes()[n].kind, part.nodes()[n].level, number(part, n)), n);
      WEFT_CHECK(fresh, "nodes of a network have numbers of their own");
    }
  }

  [[nodiscard]] std::uint32_t of(std::uint32_t n) const {
    const TopologyNode& node = whole_->nodes()[n];
    std::uint32_t instead = number(*whole_, n);
    switch (node.kind) {
      case TopologyNodeKind::gpu:
        instead %= simulated_;
        break;
      case TopologyNodeKind::hub:
        instead = instead / hubs_ % nodes_ * hubs_ + instead % hubs_;
        break;
      case TopologyNodeKind::nic:
        instead = instead * gpus_per_nic_ % simulated_ / gpus_per_nic_;
        break;
      case TopologyNodeKind::router:
        if (!nodes_meet_) {
          instead %= routers(*part_, node.level);
        } else if (node.level == 1) {
          instead = simulated_ < node_ ? 0 : instead / leaves_per_rail_;
        }
    }
    return places_.at({node.kind, node.level, instead});
  }
  // The lane that is simulated for that one from one to another node, where links come back: of GPUs by how far they
  // go, of routers by the rings that go there. None goes: kNone.
  [[nodiscard]] std::uint32_t lane(std::uint32_t from, std::uint32_t to, std::uint32_t lane) const {
    const TopologyNodeKind kind = whole_->nodes()[from].kind;
    if (!loops_ || kind != whole_->nodes()[to].kind) return lane;
    if (kind == TopologyNodeKind::gpu) {
      return ((to + node_ - from) % node_ - 1) * part_->cables().front().lanes + lane;
    }
    std::vector<std::uint32_t> next;  // of the one that stands for all, by those rings
    for (std::uint32_t c = 0; c < rings_->cycles(); ++c) {
      if (rings_->after(c, whole_->nodes()[from].number, 1) == whole_->nodes()[to].number) {
        next.push_back(rings_->after(c, 0, 1));
      }
    }
    if (next.empty()) return kNone;
    const std::uint32_t router = whole_->neighbour(0, 0);
    const std::uint32_t instead = whole_->neighbour(next[lane % next.size()], 0);
    std::uint32_t before = 0;
    std::uint32_t port = 1;  // the first one is the GPU's
    for (; whole_->neighbour(router, port) != instead; ++port) before += lanes_of(router, port);
    return before + lane % lanes_of(router, port);
  }
  // What a link between leaf and spine carries is of all nodes of the leaf.
  [[nodiscard]] std::int64_t times(std::uint32_t from, std::uint32_t to) const {
    const TopologyNode& a = whole_->nodes()[from];
    const TopologyNode& b = whole_->nodes()[to];
    if (!nodes_meet_ || a.kind != TopologyNodeKind::router || b.kind != TopologyNodeKind::router) return 1;
    const std::uint32_t leaf = a.level == 1 ? from : to;
    return nics_at(*whole_, leaf) / std::max<std::int64_t>(1, nics_at(*part_, of(leaf)));
  }
  // Switches within a node whose one port is that of all its GPUs.
  [[nodiscard]] std::uint32_t ports_of_hub() const { return simulated_ < node_ ? node_ : 1; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  [[nodiscard]] std::uint32_t lanes_of(std::uint32_t node, std::uint32_t port) const {
    return whole_->cables()[whole_->out(node, port).cable].lanes;
  }
  // Of a level: leaf switches are those of the first.
  [[nodiscard]] static std::uint32_t routers(const Topology& of, std::uint8_t level) {
    return static_cast<std::uint32_t>(std::ranges::count_if(of.nodes(), [&](const TopologyNode& node) {
      return node.kind == TopologyNodeKind::router && node.level == level;
    }));
  }
  [[nodiscard]] static std::int64_t nics_at(const Topology& of, std::uint32_t leaf) {
    std::int64_t nics = 0;
    for (std::uint32_t p = 0; p < of.nodes()[leaf].ports; ++p) {
      nics += of.nodes()[of.neighbour(leaf, p)].kind == TopologyNodeKind::nic ? 1 : 0;
    }
    return nics;
  }
  // Among its kind and level: routers of lower levels come first.
  [[nodiscard]] static std::uint32_t number(const Topology& of, std::uint32_t n) {
    const TopologyNode& node = of.nodes()[n];
    std::uint32_t number = node.number;
    if (node.kind != TopologyNodeKind::router) return number;
    for (std::uint8_t level = 1; level < node.level; ++level) number -= routers(of, level);
    return number;
  }

  const Topology* whole_;
  const Topology* part_;
  bool nodes_meet_;  // at leaf switches
  bool loops_;       // links of one GPU that stands for all come back to it
  std::shared_ptr<const RingOrders> rings_;
  std::uint32_t simulated_;
  std::uint32_t node_;       // GPUs of one
  std::uint32_t nodes_ = 1;  // that were simulated
  std::uint32_t hubs_ = 0;   // of a node
  std::uint32_t gpus_per_nic_ = 1, leaves_per_rail_ = 1;
  std::map<std::tuple<TopologyNodeKind, std::uint8_t, std::uint32_t>, std::uint32_t> places_;
};

// Visits all lanes in the machine's order: from node, to node, and the number among those between the two.
template <class Visit>
void for_each_lane(const Topology& topology, Visit&& visit) {
  for (std::uint32_t n = 0; n < topology.nodes().size(); ++n) {
    std::map<std::uint32_t, std::uint32_t> lanes_to;
    for (std::uint32_t p = 0; p < topology.nodes()[n].ports; ++p) {
      const LinkId link = topology.out(n, p);
      for (std::uint32_t lane = 0; lane < topology.cables()[link.cable].lanes; ++lane) {
        visit(n, topology.to(link), lanes_to[topology.to(link)]++);
      }
    }
  }
}

}  // namespace

void add(const std::vector<LinkLoad>& links, const std::vector<SwitchLoad>& switches, NetworkLoad& sum) {
  sum.links.resize(std::max(sum.links.size(), links.size()));
  for (std::size_t i = 0; i < links.size(); ++i) add(links[i], 1, sum.links[i]);
  sum.switches.resize(std::max(sum.switches.size(), switches.size()));
  for (std::size_t i = 0; i < switches.size(); ++i) add(switches[i], 1, sum.switches[i]);
}

NetworkLoad loads_of_all(const NetworkSpec& network, const Topology& whole, std::uint32_t gpus,
                         const NetworkLoads& simulated) {
  NetworkLoad all;
  for (const auto& [there, load] : simulated) {
    if (there == gpus) add(load.links, load.switches, all);
    if (there == gpus || load.links.empty()) continue;
    const auto part = make_network(network, there, {}, gpus);
    const StandIns stand_ins(network, whole, gpus, part->topology, there);
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::size_t> places;
    for_each_lane(part->topology, [&](std::uint32_t from, std::uint32_t to, std::uint32_t lane) {
      places.emplace(std::tuple(from, to, lane), places.size());
    });
    std::vector<std::uint32_t> instead(whole.nodes().size());
    for (std::uint32_t n = 0; n < instead.size(); ++n) instead[n] = stand_ins.of(n);
    std::size_t next = 0;
    for_each_lane(whole, [&](std::uint32_t from, std::uint32_t to, std::uint32_t lane) {
      all.links.resize(std::max(all.links.size(), next + 1));
      const auto at = places.find({instead[from], instead[to], stand_ins.lane(from, to, lane)});
      if (at != places.end()) add(load.links.at(at->second), stand_ins.times(from, to), all.links[next]);
      ++next;
    });
    std::uint32_t hub = 0;
    for (std::uint32_t n = 0; n < whole.nodes().size(); ++n) {
      if (whole.nodes()[n].kind != TopologyNodeKind::hub) continue;
      all.switches.resize(std::max<std::size_t>(all.switches.size(), hub + 1));
      const std::uint32_t number = part->topology.nodes()[instead[n]].number;
      add(load.switches.at(number), stand_ins.ports_of_hub(), all.switches[hub]);
      ++hub;
    }
  }
  return all;
}

}  // namespace weft
