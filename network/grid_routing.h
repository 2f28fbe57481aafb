// Routes on meshes, tori, rings and hypercubes. Router r is node first_router + r, has GPU first_gpu + r, and routers
// are numbered with dimension 0 fastest.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "network/routing.h"

namespace weft {

// Where the routers of a grid are, and which of their ports leads where.
class Grid {
 public:
  Grid(const Topology& topology, std::vector<std::uint32_t> dimensions, bool wraps, std::uint32_t first_router,
       std::uint32_t first_gpu);

  [[nodiscard]] std::size_t dimensions() const { return dimensions_; }
  [[nodiscard]] std::uint32_t size(std::size_t dimension) const { return sizes_[dimension]; }
  [[nodiscard]] bool wraps() const { return wraps_; }
  [[nodiscard]] std::uint32_t routers() const { return static_cast<std::uint32_t>(gpu_ports_.size()); }
  [[nodiscard]] std::uint32_t router_of_node(std::uint32_t node) const { return node - first_router_; }
  [[nodiscard]] std::uint32_t router_of_gpu(std::uint32_t gpu) const { return gpu - first_gpu_; }
  // Of a router: its place in a dimension, kPacked of which lie side by side in a word.
  [[nodiscard]] std::uint32_t at(std::uint32_t router, std::size_t dimension) const {
    return static_cast<std::uint32_t>(coordinates_[router * words_ + dimension / kPacked] >>
                                      (dimension % kPacked * kPlaceBits)) &
           kPlaceMask;
  }
  // The first dimension in which two routers differ, with their places there and that of a third one.
  struct Difference {
    std::size_t dimension;
    std::uint32_t here, there, origin;
  };
  [[nodiscard]] Difference first_difference(std::uint32_t here, std::uint32_t there, std::uint32_t origin) const {
    std::size_t word = 0;
    const std::uint64_t* a = &coordinates_[here * words_];
    const std::uint64_t* b = &coordinates_[there * words_];
    while (a[word] == b[word]) ++word;
    const auto lane = static_cast<std::size_t>(std::countr_zero(a[word] ^ b[word])) / kPlaceBits;
    const std::size_t shift = lane * kPlaceBits;
    const auto place = [shift](std::uint64_t places) {
      return static_cast<std::uint32_t>(places >> shift) & kPlaceMask;
    };
    return {word * kPacked + lane, place(a[word]), place(b[word]), place(coordinates_[origin * words_ + word])};
  }
  [[nodiscard]] std::uint16_t gpu_port(std::uint32_t router) const { return gpu_ports_[router]; }
  [[nodiscard]] std::uint16_t port(std::uint32_t router, std::size_t dimension, bool up) const {
    return ports_[(router * dimensions_ + dimension) * 2 + (up ? 1 : 0)];
  }

 private:
  std::vector<std::uint32_t> sizes_;
  std::size_t dimensions_;
  bool wraps_;
  std::uint32_t first_router_;
  std::uint32_t first_gpu_;
  static constexpr std::size_t kPlaceBits = 16;
  static constexpr std::size_t kPacked = 64 / kPlaceBits;
  static constexpr std::uint32_t kPlaceMask = (1U << kPlaceBits) - 1;

  std::size_t words_;                       // of a router's coordinates
  std::vector<std::uint64_t> coordinates_;  // by router: dimension 0 lowest
  std::vector<std::uint16_t> gpu_ports_;    // by router
  std::vector<std::uint16_t> ports_;        // by router and dimension: down, up
};

// Dimension order (e-cube where all dimensions are 2). A torus has two virtual channel classes a message class: those
// that still cross the dateline of the ring they travel, and those that have (Dally and Seitz, 1987); who never crosses
// takes either, by address, for balance.
class GridRouting final : public Routing {
 public:
  explicit GridRouting(Grid grid) : grid_(std::move(grid)) {}
  [[nodiscard]] Hops next(std::uint32_t node, std::uint32_t in_port, const Packet& packet) const override;
  [[nodiscard]] std::uint32_t vc_classes() const override { return grid_.wraps() ? 2 : 1; }
  // Of rings. A torus, whose packets turn between dimensions, accepts less with it: uniform traffic on 8 x 8 0.66, not
  // 0.80.
  [[nodiscard]] bool through_first() const override { return grid_.wraps() && grid_.dimensions() == 1; }

 private:
  Grid grid_;
};

// All shortest ways. Free of deadlock by virtual networks (Linder and Harden, 1991): a packet's directions in all
// dimensions but the last choose one of 2^(n-1), in which channels of these dimensions lead one way only, so that no
// cycle can close; on a torus each has a level for each dateline crossed, at most n. The choice between ports can so be
// made once, when a packet comes.
class AdaptiveGridRouting final : public Routing {
 public:
  static constexpr std::uint32_t kMaxClasses = 16;  // 5 dimensions of a mesh, 3 of a torus
  [[nodiscard]] static std::uint32_t classes(std::size_t dimensions, bool wraps) {
    const auto n = static_cast<std::uint32_t>(dimensions);
    return (wraps ? n + 1 : 1) << (n - 1);
  }
  // `grid` needs at most kMaxClasses.
  explicit AdaptiveGridRouting(Grid grid);
  [[nodiscard]] Hops next(std::uint32_t node, std::uint32_t in_port, const Packet& packet) const override;
  [[nodiscard]] std::uint32_t vc_classes() const override { return classes(grid_.dimensions(), grid_.wraps()); }
  [[nodiscard]] bool through_first() const override { return grid_.wraps() && grid_.dimensions() == 1; }

 private:
  Grid grid_;
  std::uint32_t choices_ = 1;           // 3^n: in each dimension there already, down, up
  std::vector<std::uint16_t> towards_;  // by router and choice: n ports that lead nearer, as many as there are
};

}  // namespace weft
