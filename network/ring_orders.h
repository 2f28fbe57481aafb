// Orders in which the rings of several channels go round GPUs, so that their traffic spreads over all links: directed
// Hamiltonian cycles of the network that share no arc.
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

// Channel c goes round in cycle c modulo cycles(), for ever new channels the same ones again.
class RingOrders {
 public:
  // `cycles[c]` lists the ranks 0 ... n - 1 in the order of cycle c, each once; at least one cycle.
  explicit RingOrders(std::vector<std::vector<std::uint32_t>> cycles);

  [[nodiscard]] std::uint32_t cycles() const { return static_cast<std::uint32_t>(cycles_.size()); }
  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(cycles_.front().size()); }
  // The rank `distance` places after `rank`.
  [[nodiscard]] std::uint32_t after(std::uint32_t channel, std::uint32_t rank, std::uint32_t distance) const {
    const std::uint32_t cycle = channel % cycles();
    return cycles_[cycle][(positions_[cycle][rank] + distance) % ranks()];
  }
  // So many places that one is after the other.
  [[nodiscard]] std::uint32_t distance(std::uint32_t channel, std::uint32_t from, std::uint32_t to) const {
    const std::vector<std::uint32_t>& position = positions_[channel % cycles()];
    return (position[to] + ranks() - position[from]) % ranks();
  }

 private:
  std::vector<std::vector<std::uint32_t>> cycles_;
  std::vector<std::vector<std::uint32_t>> positions_;  // by cycle and rank
};

// Cycles for `ranks` GPUs (at least 2), a cycle and its reverse beside each other, as far as they come in pairs:
// - odd: ranks - 1 cycles that use each arc once (Walecki's zigzags, both ways round);
// - even: as many (Tillson 1980, J. Combin. Theory B 29: they exist but for 4 and 6), up to 16 ranks, by a search that
//   begins at Walecki's; of 4 and 6, twice as many that use each arc twice;
// - even and more than 16: ranks - 2 that leave out the arcs of one perfect matching.
[[nodiscard]] RingOrders fully_connected_rings(std::uint32_t ranks);

// As many edge-disjoint cycles as a search finds, each followed by its reverse, of 3 to 16 ranks with `links[a * ranks
// + b]` links between a and b. None where the search finds none.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> rings_of_graph(const std::vector<std::uint32_t>& links,
                                                                     std::uint32_t ranks);

// The same of a mesh or torus with `dimensions`, the first one varying fastest, whatever its size: of a square torus
// both cycles of its Gray codes (Bae and Bose, IEEE Trans. Computers 52, 2003), else one. A mesh has one
// where it has two dimensions and an even number of ranks.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> rings_of_grid(std::vector<std::uint32_t> dimensions, bool wraps);

// Where chunks are cut finer than the library does: the channels that its chunks reach, in whole turns of the orders.
[[nodiscard]] std::uint32_t filled_channels(std::int64_t bytes, std::uint32_t ranks, std::uint32_t channels,
                                            std::int64_t unit, const RingOrders& orders);

}  // namespace weft
