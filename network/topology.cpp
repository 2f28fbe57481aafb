#include "network/topology.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "sim/error.h"

namespace weft {

namespace {
std::uint32_t link_index(LinkId link) { return link.cable * 2 + link.direction; }

bool comes_back(const Cable& cable) { return cable.a == cable.b && cable.port_a == cable.port_b; }
}  // namespace

std::uint32_t Topology::add_node(TopologyNodeKind kind, std::uint8_t level, const std::string& name) {
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({kind, level, counts_[static_cast<std::size_t>(kind)]++, 0});
  if (!name.empty()) {
    names_.resize(nodes_.size());
    names_.back() = name;
  }
  return index;
}

std::uint8_t Topology::add_class(const LinkSpec& spec) {
  WEFT_CHECK(classes_.size() < 255, "at most 255 classes of links");
  classes_.push_back(spec);
  return static_cast<std::uint8_t>(classes_.size() - 1);
}

void Topology::connect(std::uint32_t a, std::uint32_t b, std::uint8_t link_class, std::uint32_t lanes) {
  WEFT_CHECK(lanes > 0 && lanes < 256, "a link of 1 to 255 lanes");
  WEFT_CHECK(nodes_[a].ports < 65535 && nodes_[b].ports < 65535, "a node of at most 65535 ports");
  cables_.push_back({a, b, static_cast<std::uint16_t>(nodes_[a].ports), static_cast<std::uint16_t>(nodes_[b].ports),
                     link_class, static_cast<std::uint8_t>(lanes)});
  ++nodes_[a].ports;
  ++nodes_[b].ports;
}

void Topology::loop(std::uint32_t node, std::uint8_t link_class, std::uint32_t lanes) {
  WEFT_CHECK(lanes > 0 && lanes < 256, "a link of 1 to 255 lanes");
  const auto port = static_cast<std::uint16_t>(nodes_[node].ports++);
  cables_.push_back({node, node, port, port, link_class, static_cast<std::uint8_t>(lanes)});
}

bool Topology::loops(std::uint32_t node) const {
  const std::uint32_t next = neighbour(node, 0);
  return neighbour(next, nodes_[next].ports - 1) == next;
}

LinkId Topology::in(std::uint32_t node, std::uint32_t port) const {
  const LinkId link = out(node, port);
  return comes_back(cables_[link.cable]) ? link : LinkId{link.cable, 1 - link.direction};
}

void Topology::index_ports() {
  first_port_.assign(nodes_.size() + 1, 0);
  for (std::size_t n = 0; n < nodes_.size(); ++n) first_port_[n + 1] = first_port_[n] + nodes_[n].ports;
  ports_.resize(first_port_.back());
  for (std::uint32_t c = 0; c < cables_.size(); ++c) {
    ports_[first_port_[cables_[c].b] + cables_[c].port_b] = {c, 1};
    ports_[first_port_[cables_[c].a] + cables_[c].port_a] = {c, 0};
  }
}

std::uint32_t Topology::from(LinkId link) const {
  return link.direction == 0 ? cables_[link.cable].a : cables_[link.cable].b;
}

std::uint32_t Topology::to(LinkId link) const {
  return link.direction == 0 ? cables_[link.cable].b : cables_[link.cable].a;
}

std::uint32_t Topology::neighbour(std::uint32_t node, std::uint32_t port) const { return to(out(node, port)); }

std::string Topology::name(std::uint32_t node) const {
  if (node < names_.size() && !names_[node].empty()) return names_[node];
  static constexpr const char* kNames[] = {"gpu", "switch", "router", "nic"};
  return kNames[static_cast<std::size_t>(nodes_[node].kind)] + std::to_string(nodes_[node].number);
}

std::string Topology::name(LinkId link) const { return name(from(link)) + "->" + name(to(link)); }

double Topology::lane_factor(LinkId link, std::uint32_t lane) const {
  if (faults_.empty()) return 1;
  for (const LaneFault& fault : faults_) {
    if (fault.link == link_index(link) && fault.lane == lane) return fault.factor;
  }
  return 1;
}

bool Topology::out_of_order(LinkId link) const {
  if (faults_.empty()) return false;
  for (std::uint32_t lane = 0; lane < cables_[link.cable].lanes; ++lane) {
    if (lane_factor(link, lane) > 0) return false;
  }
  return true;
}

bool Topology::any_out_of_order() const {
  return std::any_of(faults_.begin(), faults_.end(), [&](const LaneFault& fault) {
    return out_of_order({fault.link / 2, fault.link % 2});
  });
}

void Topology::set_faults(const std::vector<FaultSpec>& faults, const Origin& origin) {
  if (faults.empty()) return;
  std::unordered_map<std::string, std::vector<LinkId>> links;  // several cables may join the same two nodes
  for (std::uint32_t c = 0; c < cables_.size(); ++c) {
    for (const std::uint32_t direction : {0U, 1U}) links[name(LinkId{c, direction})].push_back({c, direction});
  }
  for (std::size_t f = 0; f < faults.size(); ++f) {
    const std::string where = origin.path + "/faults/" + std::to_string(f) + "/link";
    std::string link = faults[f].link;
    std::size_t lane = std::numeric_limits<std::size_t>::max();
    if (const std::size_t dot = link.rfind('.'); dot != std::string::npos && !links.contains(link)) {
      const std::string digits = link.substr(dot + 1);
      if (!digits.empty() && digits.size() < 4 &&
          std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        lane = std::stoul(digits);
        link.resize(dot);
      }
    }
    const auto at = links.find(link);
    if (at == links.end()) {
      throw InputError(origin.file, where,
                       "expected a link, e.g. \"" + name(LinkId{0, 0}) + "\", got \"" + faults[f].link + "\"");
    }
    bool found = false;
    std::size_t before = 0;  // lanes of parallel cables are numbered through
    for (const LinkId id : at->second) {
      for (std::uint32_t l = 0; l < cables_[id.cable].lanes; ++l) {
        if (lane != std::numeric_limits<std::size_t>::max() && lane != before + l) continue;
        faults_.push_back({link_index(id), l, faults[f].factor});
        found = true;
      }
      before += cables_[id.cable].lanes;
    }
    if (!found) {
      throw InputError(origin.file, where,
                       "expected a lane below " + std::to_string(before) + ", got \"" + faults[f].link + "\"");
    }
  }
}

}  // namespace weft
