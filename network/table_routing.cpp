#include "network/table_routing.h"

#include <algorithm>
#include <limits>

#include "sim/error.h"

namespace weft {

namespace {
constexpr std::uint32_t kFar = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kMaxClasses = 8;

// The router, of those routed over, behind which a GPU is, and by which port.
struct Attachment {
  std::uint32_t router = kFar;
  std::uint16_t port = 0;
};
}  // namespace

bool TableRouting::goes_up(std::uint32_t from, std::uint32_t to) const {
  const std::uint32_t a = rank_[from - first_];
  const std::uint32_t b = rank_[to - first_];
  return b < a || (b == a && to < from);
}

void TableRouting::rank_routers(const Topology& topology) {
  std::uint32_t root = first_;
  bool levels = false;
  for (std::uint32_t n = first_; n < first_ + count_; ++n) {
    levels = levels || topology.nodes()[n].level > 0;
    if (topology.nodes()[n].ports > topology.nodes()[root].ports) root = n;
  }
  rank_.assign(count_, kFar);
  if (levels) {
    for (std::uint32_t n = 0; n < count_; ++n) rank_[n] = 255U - topology.nodes()[first_ + n].level;
    return;
  }
  rank_[root - first_] = 0;
  queue_.assign(1, root);
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const std::uint32_t at = queue_[i];
    for (std::uint32_t p = 0; p < topology.nodes()[at].ports; ++p) {
      const LinkId link = topology.out(at, p);
      const std::uint32_t to = topology.to(link);
      if (!routes_over(to) || rank_[to - first_] != kFar || topology.out_of_order(link)) continue;
      rank_[to - first_] = rank_[at - first_] + 1;
      queue_.push_back(to);
    }
  }
}

// Distances to `target`, breadth first against the links. Phase 0 may go up or turn down; phase 1 only goes down.
void TableRouting::measure(const Topology& topology, std::uint32_t target) {
  distance_.assign(std::size_t{count_} * 2, kFar);
  const auto state = [&](std::uint32_t node, std::uint32_t phase) { return (node - first_) * 2 + phase; };
  queue_.clear();
  for (const std::uint32_t phase : {0U, 1U}) {
    distance_[state(target, phase)] = 0;
    queue_.push_back(state(target, phase));
  }
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const std::uint32_t at = queue_[i] / 2 + first_;
    const std::uint32_t phase = queue_[i] % 2;
    const auto reach = [&](std::uint32_t node, std::uint32_t from_phase) {
      std::uint32_t& distance = distance_[state(node, from_phase)];
      if (distance != kFar) return;
      distance = distance_[queue_[i]] + 1;
      queue_.push_back(state(node, from_phase));
    };
    for (std::uint32_t p = 0; p < topology.nodes()[at].ports; ++p) {
      const LinkId out = topology.out(at, p);
      const std::uint32_t from = topology.to(out);
      if (!routes_over(from) || topology.out_of_order({out.cable, 1 - out.direction})) continue;
      if (routes_ == GraphRoutes::shortest_path || goes_up(from, at)) {
        if (phase == 0) reach(from, 0);
      } else if (phase == 1) {
        reach(from, 0);
        reach(from, 1);
      }
    }
  }
}

TableRouting::TableRouting(const Topology& topology, GraphRoutes routes, std::uint32_t first, std::uint32_t count,
                           const Origin& origin)
    : routes_(routes), first_(first), count_(count), ports_(std::size_t{count} * 2) {
  rank_routers(topology);
  std::vector<Attachment> attached(topology.count(TopologyNodeKind::gpu));
  std::vector<bool> has_terminal(count, false);
  for (std::uint32_t n = first; n < first + count; ++n) {
    first_port_.push_back(static_cast<std::uint32_t>(arrivals_.size()));
    for (std::uint32_t p = 0; p < topology.nodes()[n].ports; ++p) {
      const std::uint32_t neighbour = topology.neighbour(n, p);
      const Attachment here{n, static_cast<std::uint16_t>(p)};
      if (routes_over(neighbour)) {
        arrivals_.push_back(goes_up(neighbour, n) ? Arrival::up : Arrival::down);
        continue;
      }
      arrivals_.push_back(Arrival::terminal);
      has_terminal[n - first] = true;
      const TopologyNode& terminal = topology.nodes()[neighbour];
      if (terminal.kind == TopologyNodeKind::gpu) attached[terminal.number] = here;
      for (std::uint32_t q = 0; terminal.kind == TopologyNodeKind::nic && q < terminal.ports; ++q) {
        const TopologyNode& behind = topology.nodes()[topology.neighbour(neighbour, q)];
        if (behind.kind == TopologyNodeKind::gpu) attached[behind.number] = here;
      }
    }
  }
  std::uint32_t measured = kFar;
  std::uint32_t longest = 1;
  std::vector<std::uint16_t> ports;
  for (std::uint32_t g = 0; g < attached.size(); ++g) {
    const Attachment& target = attached[g];
    if (target.router == kFar) continue;  // of another node's network
    for (const std::uint32_t phase : {0U, 1U}) ports_.add((target.router - first) * 2 + phase, g, {target.port});
    if (target.router == measured) continue;  // from elsewhere the way is that of the GPU before
    measured = target.router;
    measure(topology, measured);
    for (std::uint32_t n = first; n < first + count; ++n) {
      if (n == target.router) continue;
      for (const std::uint32_t phase : {0U, 1U}) {
        const std::uint32_t distance = distance_[(n - first) * 2 + phase];
        if (distance == kFar && phase == 0 && has_terminal[n - first]) {
          throw InputError(origin.file, origin.path,
                           "expected a network in which all GPUs reach each other, got no route from " +
                               topology.name(n) + " to gpu" + std::to_string(g));
        }
        ports.clear();
        for (std::uint32_t p = 0; distance != kFar && p < topology.nodes()[n].ports; ++p) {
          const LinkId link = topology.out(n, p);
          const std::uint32_t to = topology.to(link);
          if (!routes_over(to) || topology.out_of_order(link)) continue;
          const bool up = routes_ == GraphRoutes::shortest_path || goes_up(n, to);
          if (up && phase == 1) continue;
          if (distance_[(to - first) * 2 + (up ? 0U : 1U)] + 1 == distance)
            ports.push_back(static_cast<std::uint16_t>(p));
        }
        if (distance != kFar) longest = std::max(longest, distance);
        ports_.add((n - first) * 2 + phase, g, ports);
      }
    }
  }
  if (routes_ == GraphRoutes::shortest_path) {
    vc_classes_ = longest;
    if (vc_classes_ > kMaxClasses) {
      throw InputError(origin.file, origin.path + "/routing/graph",
                       "expected \"up_down\" for routes of more than " + std::to_string(kMaxClasses) +
                           " hops, got \"shortest_path\"");
    }
  }
}

Hops TableRouting::next(std::uint32_t node, std::uint32_t in_port, const Packet& packet) const {
  const std::uint32_t router = node - first_;
  const Arrival arrival = arrivals_[first_port_[router] + in_port];
  const bool shortest = routes_ == GraphRoutes::shortest_path;
  const std::uint32_t phase = !shortest && arrival == Arrival::down ? 1 : 0;
  const std::uint32_t target = target_of(packet);
  Hops hops = ports_.towards(router * 2 + phase, target, target);
  if (shortest) {
    const int hop = arrival == Arrival::terminal ? 0 : packet.vc_class + 1;
    hops.vc_class = static_cast<std::uint8_t>(std::min<int>(hop, static_cast<int>(vc_classes_) - 1));
  }
  return hops;
}

}  // namespace weft
