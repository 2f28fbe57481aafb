#include "network/grid_routing.h"

namespace weft {

namespace {
constexpr std::uint16_t kNoPort = 0xffff;

// Upwards or downwards from `from` to another place `to` on a ring of `size`. Where both ways are equally far, places
// take turns, so that both carry the same.
bool shorter_upwards(std::uint32_t from, std::uint32_t to, std::uint32_t size) {
  if (size == 2) return to > from;
  const std::uint32_t upward = to > from ? to - from : to + size - from;
  return 2 * upward + (from & 1U) <= size;
}
}  // namespace

Grid::Grid(const Topology& topology, std::vector<std::uint32_t> dimensions, bool wraps, std::uint32_t first_router,
           std::uint32_t first_gpu)
    : sizes_(std::move(dimensions)),
      dimensions_(sizes_.size()),
      wraps_(wraps),
      first_router_(first_router),
      first_gpu_(first_gpu),
      words_((dimensions_ + kPacked - 1) / kPacked) {
  const std::size_t n = dimensions_;
  std::uint32_t routers = 1;
  for (const std::uint32_t k : sizes_) routers *= k;
  coordinates_.resize(routers * words_);
  gpu_ports_.assign(routers, kNoPort);
  ports_.assign(routers * n * 2, kNoPort);
  for (std::uint32_t r = 0; r < routers; ++r) {
    std::uint32_t rest = r;
    for (std::size_t d = 0; d < n; ++d) {
      coordinates_[r * words_ + d / kPacked] |= std::uint64_t{rest % sizes_[d]} << (d % kPacked * kPlaceBits);
      rest /= sizes_[d];
    }
  }
  for (std::uint32_t r = 0; r < routers; ++r) {
    for (std::uint32_t p = 0; p < topology.nodes()[first_router + r].ports; ++p) {
      const std::uint32_t neighbour = topology.neighbour(first_router + r, p);
      const auto port = static_cast<std::uint16_t>(p);
      if (neighbour < first_router || neighbour >= first_router + routers) {
        gpu_ports_[r] = port;
        continue;
      }
      for (std::size_t d = 0; d < n; ++d) {
        const std::uint32_t here = at(r, d);
        const std::uint32_t there = at(neighbour - first_router, d);
        if (here == there) continue;
        std::uint16_t* ways = &ports_[(r * n + d) * 2];
        if (there == here + 1 || (there == 0 && here + 1 == sizes_[d])) ways[1] = port;
        if (there + 1 == here || (here == 0 && there + 1 == sizes_[d])) ways[0] = port;
      }
    }
  }
}

Hops GridRouting::next(std::uint32_t node, std::uint32_t, const Packet& packet) const {
  const std::uint32_t router = grid_.router_of_node(node);
  const std::uint32_t target = grid_.router_of_gpu(target_of(packet));
  if (router == target) return one_port(grid_.gpu_port(router));
  const auto [d, here, there, origin] = grid_.first_difference(router, target, grid_.router_of_gpu(origin_of(packet)));
  if (!grid_.wraps()) return one_port(grid_.port(router, d, there > here));
  // No branch depends on where a packet goes: the host could not predict it.
  const std::uint32_t size = grid_.size(d);
  const bool up = shorter_upwards(here, there, size);
  const bool will_cross = (size > 2) & ((there > here) != up);  // the dateline
  const bool has_crossed = (size > 2) & (origin != here) & ((here < origin) == up);
  const bool by_address = ((packet.line ^ packet.source) & 1U) != 0;
  return one_port(grid_.port(router, d, up), static_cast<std::uint8_t>((!will_cross) & (has_crossed | by_address)));
}

AdaptiveGridRouting::AdaptiveGridRouting(Grid grid) : grid_(std::move(grid)) {
  const std::size_t n = grid_.dimensions();
  for (std::size_t d = 0; d < n; ++d) choices_ *= 3;
  towards_.assign(std::size_t{grid_.routers()} * choices_ * n, kNoPort);
  for (std::uint32_t r = 0; r < grid_.routers(); ++r) {
    for (std::uint32_t choice = 0; choice < choices_; ++choice) {
      std::uint16_t* ports = &towards_[(std::size_t{r} * choices_ + choice) * n];
      std::uint32_t rest = choice;
      for (std::size_t d = 0; d < n; ++d, rest /= 3) {
        if (rest % 3 != 0) *ports++ = grid_.port(r, d, rest % 3 == 2);
      }
    }
  }
}

Hops AdaptiveGridRouting::next(std::uint32_t node, std::uint32_t, const Packet& packet) const {
  const std::size_t n = grid_.dimensions();
  const std::uint32_t router = grid_.router_of_node(node);
  const std::uint32_t target = grid_.router_of_gpu(target_of(packet));
  if (router == target) return one_port(grid_.gpu_port(router));
  const std::uint32_t origin = grid_.router_of_gpu(origin_of(packet));
  std::uint32_t choice = 0;
  std::uint32_t weight = 1;
  std::uint32_t virtual_network = 0;
  std::uint32_t crossed = 0;
  Hops hops;
  hops.count = 0;
  for (std::size_t d = 0; d < n; ++d, weight *= 3) {
    const std::uint32_t here = grid_.at(router, d);
    const std::uint32_t there = grid_.at(target, d);
    const std::uint32_t start = grid_.at(origin, d);
    if (start == there) continue;
    // By where it came from, so that all routers on its way say the same.
    const bool up = grid_.wraps() ? shorter_upwards(start, there, grid_.size(d)) : there > start;
    if (up && d + 1 < n) virtual_network |= 1U << d;
    if (up ? here < start : here > start) ++crossed;
    if (here == there) continue;
    choice += weight * (up ? 2 : 1);
    ++hops.count;
  }
  hops.ports = &towards_[(std::size_t{router} * choices_ + choice) * n];
  hops.vc_class = static_cast<std::uint8_t>((crossed << (n - 1)) + virtual_network);
  return hops;
}

}  // namespace weft
