#include "cli/machine.h"

#include <fmt/format.h>

#include "sim/error.h"
#include "switch_reduce/reduction_table.h"

namespace weft {

namespace {
// Lanes of bundle `index` when `lanes` are spread over `bundles` as evenly as they go, the first ones taking the rest.
std::uint32_t share(std::uint32_t lanes, std::uint32_t bundles, std::uint32_t index) {
  return lanes / bundles + (index < lanes % bundles ? 1 : 0);
}
}  // namespace

Machine::Machine(const SystemSpec& system, const std::vector<GpuWork>& work) : system_(system) {
  WEFT_CHECK(!work.empty(), "a machine needs a GPU");
  if (work.size() == 1) {
    gpus_.push_back(std::make_unique<Gpu>(GpuId{0}, system_.gpu, work.front(), LinkPorts()));
  } else if (system_.network.topology == Topology::switched) {
    build_switched(work);
  } else {
    build_fully_connected(work);
  }
}

LinkWires* Machine::connect(const std::string& name) {
  connections_.push_back({name, std::make_unique<LinkWires>()});
  return connections_.back().wires.get();
}

void Machine::build_switched(const std::vector<GpuWork>& work) {
  const NetworkSpec& network = system_.network;
  std::vector<std::vector<LinkBundle>> bundles(work.size());
  std::vector<std::vector<SwitchPort>> ports(network.switches);
  for (std::uint32_t s = 0; s < network.switches; ++s) {
    for (std::size_t g = 0; g < work.size(); ++g) {
      LinkWires* up = connect(fmt::format("gpu{}->switch{}", g, s));
      LinkWires* down = connect(fmt::format("switch{}->gpu{}", s, g));
      bundles[g].push_back({down, up, share(network.links_per_gpu, network.switches, s)});
      ports[s].push_back({up, down});
    }
  }
  for (std::uint32_t g = 0; g < work.size(); ++g) {
    gpus_.push_back(std::make_unique<Gpu>(GpuId{g}, system_.gpu, work[g], LinkPorts(network, GpuId{g}, bundles[g])));
  }
  for (std::uint32_t s = 0; s < network.switches; ++s) {
    std::unique_ptr<Reducer> reducer;
    if (system_.switch_reduce) {
      reducer = std::make_unique<ReductionTable>(*system_.switch_reduce, static_cast<std::uint32_t>(work.size()));
    }
    const std::uint32_t lanes = share(network.links_per_gpu, network.switches, s);
    switches_.push_back(std::make_unique<Switch>(network.switch_, network.link, lanes, ports[s], std::move(reducer)));
  }
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const Chip* gpu = gpus_[i / 2 % work.size()].get();
    const Chip* hub = switches_[i / 2 / work.size()].get();
    connections_[i].sender = i % 2 == 0 ? gpu : hub;
    connections_[i].receiver = i % 2 == 0 ? hub : gpu;
  }
}

void Machine::build_fully_connected(const std::vector<GpuWork>& work) {
  const NetworkSpec& network = system_.network;
  const auto peers = static_cast<std::uint32_t>(work.size() - 1);
  std::vector<std::vector<LinkWires*>> wires(work.size(), std::vector<LinkWires*>(work.size(), nullptr));
  for (std::size_t from = 0; from < work.size(); ++from) {
    for (std::size_t to = 0; to < work.size(); ++to) {
      if (from != to) wires[from][to] = connect(fmt::format("gpu{}->gpu{}", from, to));
    }
  }
  for (std::uint32_t g = 0; g < work.size(); ++g) {
    std::vector<LinkBundle> bundles;
    for (std::uint32_t peer = 0; peer < work.size(); ++peer) {
      if (peer != g) bundles.push_back({wires[peer][g], wires[g][peer], network.links_per_gpu / peers});
    }
    gpus_.push_back(std::make_unique<Gpu>(GpuId{g}, system_.gpu, work[g], LinkPorts(network, GpuId{g}, bundles)));
  }
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const std::size_t from = i / peers;
    const std::size_t to = i % peers < from ? i % peers : i % peers + 1;
    connections_[i].sender = gpus_[from].get();
    connections_[i].receiver = gpus_[to].get();
  }
}

bool Machine::run(std::uint32_t threads, const std::function<void(Time)>& progress) {
  Engine engine({system_.network.link.latency, threads});
  for (std::size_t g = 0; g < gpus_.size(); ++g) engine.add_chip(fmt::format("gpu{}", g), *gpus_[g]);
  for (std::size_t s = 0; s < switches_.size(); ++s) engine.add_chip(fmt::format("switch{}", s), *switches_[s]);
  for (const Connection& connection : connections_) {
    engine.add_wire(connection.wires->packets, *connection.sender, *connection.receiver);
    engine.add_wire(connection.wires->credits, *connection.sender, *connection.receiver);
  }
  end_ = engine.run(progress).end;
  for (const auto& gpu : gpus_) {
    if (!gpu->done()) return false;
  }
  for (const auto& hub : switches_) {
    WEFT_CHECK(!hub->holds_packets(), "all work is done, yet a switch holds packets");
  }
  return true;
}

std::vector<Machine::Link> Machine::links() const {
  std::vector<Link> links;
  const auto add = [&](const std::string& from, const std::string& to, const Transmitter& transmitter) {
    for (std::uint32_t lane = 0; lane < transmitter.lanes(); ++lane) {
      links.push_back({fmt::format("{}->{}.{}", from, to, lane), &transmitter.statistics(lane)});
    }
  };
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    for (std::size_t b = 0; b < gpus_[g]->ports().size(); ++b) {
      const std::string to = switches_.empty() ? fmt::format("gpu{}", b < g ? b : b + 1) : fmt::format("switch{}", b);
      add(fmt::format("gpu{}", g), to, gpus_[g]->ports().transmitter(b));
    }
  }
  for (std::size_t s = 0; s < switches_.size(); ++s) {
    for (std::uint32_t g = 0; g < gpus_.size(); ++g) {
      add(fmt::format("switch{}", s), fmt::format("gpu{}", g), switches_[s]->output(g));
    }
  }
  return links;
}

}  // namespace weft
