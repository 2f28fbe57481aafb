#include "cli/sampled/coarse_system.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "gpu_model/coarse_gpu.h"
#include "sim/error.h"

namespace weft {

namespace {

// Lanes that become one, between a GPU and one of its neighbours.
double merged_lanes(NetworkSpec& network, std::uint32_t gpus) {
  if (!network.faults.empty()) return 1;
  std::uint32_t neighbours = 0;
  if (network.topology == TopologyKind::switched && network.tree.radix == 0) neighbours = network.switches;
  if (network.topology == TopologyKind::fully_connected && !network.cluster && gpus > 1 &&
      network.links_per_gpu % (gpus - 1) == 0) {
    neighbours = gpus - 1;
  }
  if (neighbours == 0) return 1;
  const double merged = static_cast<double>(network.links_per_gpu) / neighbours;
  network.links_per_gpu = neighbours;
  return merged;
}

// Of a switch that reduces, and sends one packet to all, who waits at an output waits as many packets as before, each
// of which takes longer: so much more of them keep lanes as busy. Settled on the all-reduce of 64 and 256 MiB in the
// switch of 8 H100 (docs/validation.md, Long collectives).
constexpr double kCreditsForWaits = 1.2;

void make_coarse(LinkSpec& link, std::uint32_t grain, double merged, bool reduces = false) {
  constexpr double kFewestCredits = 4;
  const double slower = grain / merged;
  const double more = reduces && slower > 1 ? kCreditsForWaits : 1;
  link.credits = static_cast<std::uint32_t>(std::lround(std::max(kFewestCredits, more * link.credits / slower)));
  link.bandwidth = Bandwidth(static_cast<std::int64_t>(static_cast<double>(link.bandwidth.count()) * merged / grain));
  link.train = std::max(1.0, slower);
}

void make_coarse(ReduceSpec& reduce, double slower) {
  reduce.table_bytes_per_port = std::max<std::int64_t>(
      reduce.entry_bytes, std::llround(static_cast<double>(reduce.table_bytes_per_port) / slower));
  reduce.adders.clock = Frequency(std::llround(static_cast<double>(reduce.adders.clock.count()) / slower));
  if (reduce.group_entries > 0) {
    reduce.group_entries = static_cast<std::uint32_t>(std::max(1L, std::lround(reduce.group_entries / slower)));
  }
}

}  // namespace

SystemSpec coarse(const SystemSpec& system, std::uint32_t gpus, std::uint32_t grain) {
  SystemSpec coarse = system;
  coarse.gpu = weft::coarse(system.gpu, grain);
  NetworkSpec& network = coarse.network;
  const double merged = merged_lanes(network, gpus);
  make_coarse(network.link, grain, merged, system.switch_reduce.has_value());
  if (network.injection) make_coarse(*network.injection, grain, 1);
  if (network.cluster) {
    make_coarse(network.cluster->nic_link, grain, 1);
    make_coarse(network.cluster->link, grain, 1);
  }
  for (GraphSpec::Link& link : network.graph.links) {
    if (link.bandwidth) link.bandwidth = Bandwidth(link.bandwidth->count() / grain);
  }
  if (coarse.switch_reduce) make_coarse(*coarse.switch_reduce, grain / merged);
  return coarse;
}

namespace {

std::int64_t grown(std::int64_t n, double by) { return std::llround(static_cast<double>(n) * by); }

// Lanes of a link, and where the loads of it begin, in the machine's order.
struct Lanes {
  std::size_t first = 0;
  std::uint32_t count = 0;
};
template <class Visit>
void for_each_link(const Topology& topology, Visit&& visit) {
  std::size_t first = 0;
  for (std::uint32_t n = 0; n < topology.nodes().size(); ++n) {
    for (std::uint32_t p = 0; p < topology.nodes()[n].ports; ++p) {
      const std::uint32_t lanes = topology.cables()[topology.out(n, p).cable].lanes;
      visit(n, p, Lanes{first, lanes});
      first += lanes;
    }
  }
}

// What a lane carries where one that stands for `merged` of them carried `load`, in coarser lines.
LinkLoad of_one(LinkLoad load, double merged, double grain) {
  const double lines = grain / merged;
  for (std::int64_t* count : {&load.payload_bytes, &load.wire_bytes, &load.packets, &load.queue_high_water}) {
    *count = grown(*count, lines);
  }
  return load;  // it was as busy
}

// A switch whose ports have `lanes` for each of those that were simulated; on average over switches, `merged`.
void tell_finely(double lanes, double merged, double grain, SwitchLoad& load) {
  for (std::int64_t* count : {&load.reduced_bytes, &load.multicast_bytes, &load.entries_opened, &load.refused,
                              &load.wasted_replies, &load.evicted, &load.timed_out}) {
    *count = grown(*count, grain * lanes / merged);
  }
  load.entry_seconds *= grain * lanes / merged;
  load.table_high_water_bytes = grown(load.table_high_water_bytes, grain / merged);
  load.stalled = grown(load.stalled, lanes);
  load.adders_busy = grown(load.adders_busy, lanes);
  const auto copies = static_cast<std::size_t>(std::lround(lanes));
  std::vector<std::int64_t> stalled;  // by port and lane
  for (const std::int64_t table : load.stalled_by_table) stalled.insert(stalled.end(), copies, table);
  load.stalled_by_table = std::move(stalled);
}

}  // namespace

void tell_finely(const Topology& coarse, const Topology& real, std::uint32_t grain, Regime& regime) {
  for (std::int64_t* bytes : {&regime.hbm_read_bytes, &regime.hbm_write_bytes, &regime.hbm_communication_bytes}) {
    *bytes *= grain;
  }
  if (regime.links.empty()) return;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Lanes> coarse_lanes;  // by node and port
  for_each_link(coarse, [&](std::uint32_t n, std::uint32_t p, Lanes lanes) { coarse_lanes[{n, p}] = lanes; });
  // Where lanes were merged, planes may have had different numbers of them, and carry more then.
  double lanes_before = 0;
  double lanes_after = 0;
  for_each_link(real, [&](std::uint32_t n, std::uint32_t p, Lanes lanes) {
    if (lanes.count == coarse_lanes.at({n, p}).count) return;
    lanes_before += lanes.count;
    lanes_after += coarse_lanes.at({n, p}).count;
  });
  const double merged = lanes_after > 0 ? lanes_before / lanes_after : 1;
  std::vector<LinkLoad> links;
  for_each_link(real, [&](std::uint32_t n, std::uint32_t p, Lanes lanes) {
    const Lanes from = coarse_lanes.at({n, p});
    const double each = lanes.count == from.count ? 1 : merged;
    for (std::uint32_t lane = 0; lane < lanes.count; ++lane) {
      links.push_back(of_one(regime.links.at(from.first + lane % from.count), each, grain));
    }
  });
  regime.links = std::move(links);
  std::uint32_t hub = 0;
  for (std::uint32_t n = 0; n < real.nodes().size(); ++n) {
    if (real.nodes()[n].kind != TopologyNodeKind::hub) continue;
    const double lanes = real.cables()[real.out(n, 0).cable].lanes;
    const double there = coarse_lanes.at({n, 0}).count;
    tell_finely(lanes / there, lanes > there ? merged : 1, grain, regime.switches.at(hub++));
  }
}

}  // namespace weft
