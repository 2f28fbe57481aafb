#include "network/ring_orders.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/error.h"

namespace weft {

namespace {

using Cycle = std::vector<std::uint32_t>;

constexpr std::uint32_t kMostSearched = 16;

// Walecki: with n = ranks - 1, rank n and then i, i + 1, i - 1, i + 2, ... modulo n. The edges of the zigzag are those
// whose ends add up to 2i or 2i + 1, so that no two i share any. Of an even number of ranks one sum is left over.
Cycle zigzag(std::uint32_t ranks, std::uint32_t i) {
  const std::uint32_t n = ranks - 1;
  Cycle cycle{n};
  for (std::uint32_t k = 0; k < n; ++k) {
    const std::uint32_t away = (k + 1) / 2;
    cycle.push_back((k % 2 == 1 ? i + away : i + n - away) % n);
  }
  return cycle;
}

// Finds Hamiltonian cycles that use no arc more often than it is there, depth first.
class CycleSearch {
 public:
  // `left`: uses of each arc, by from * ranks + to. `both_ways`: a cycle uses its reverse, too.
  CycleSearch(std::uint32_t ranks, std::vector<std::uint32_t> left, std::size_t wanted, bool both_ways)
      : ranks_(ranks), left_(std::move(left)), wanted_(wanted), both_ways_(both_ways) {}

  // False where there are none, or none in the first `kSteps` places tried.
  bool find() {
    visited_.assign(ranks_, false);
    visited_[0] = true;
    path_ = {0};
    return found_.size() == wanted_ || extend();
  }
  [[nodiscard]] const std::vector<Cycle>& found() const { return found_; }

 private:
  static constexpr std::uint64_t kSteps = 200'000;  // a few milliseconds

  [[nodiscard]] std::uint32_t left(std::uint32_t from, std::uint32_t to) const { return left_[from * ranks_ + to]; }
  void use(std::uint32_t from, std::uint32_t to) {
    --left_[from * ranks_ + to];
    if (both_ways_) --left_[to * ranks_ + from];
  }
  void give_back(std::uint32_t from, std::uint32_t to) {
    ++left_[from * ranks_ + to];
    if (both_ways_) ++left_[to * ranks_ + from];
  }

  bool extend() {
    if (++steps_ > kSteps) return false;
    const std::uint32_t from = path_.back();
    if (path_.size() == ranks_) return left(from, 0) > 0 && close();
    for (std::uint32_t to = 1; to < ranks_; ++to) {
      if (visited_[to] || left(from, to) == 0) continue;
      visited_[to] = true;
      use(from, to);
      path_.push_back(to);
      if (extend()) return true;
      path_.pop_back();
      give_back(from, to);
      visited_[to] = false;
    }
    return false;
  }

  bool close() {
    const Cycle path = path_;
    use(path.back(), 0);
    found_.push_back(path);
    if (find()) return true;
    found_.pop_back();
    give_back(path.back(), 0);
    path_ = path;
    visited_.assign(ranks_, true);
    return false;
  }

  std::uint32_t ranks_;
  std::vector<std::uint32_t> left_;  // uses of an arc, by from * ranks + to
  std::size_t wanted_;
  bool both_ways_;
  std::uint64_t steps_ = 0;
  Cycle path_;
  std::vector<bool> visited_;
  std::vector<Cycle> found_;
};

// Each cycle and, beside it, its reverse.
std::vector<Cycle> both_ways(const std::vector<Cycle>& cycles) {
  std::vector<Cycle> all;
  for (const Cycle& cycle : cycles) {
    all.push_back(cycle);
    all.emplace_back(cycle.rbegin(), cycle.rend());
  }
  return all;
}

// Goes through a grid without wrapping, each rank beside the one before: reflected mixed-radix code.
std::vector<std::uint32_t> snake(const std::vector<std::uint32_t>& dimensions) {
  std::vector<std::uint32_t> path{0};
  std::uint32_t stride = 1;
  for (const std::uint32_t k : dimensions) {
    const std::vector<std::uint32_t> below = path;
    for (std::uint32_t at = 1; at < k; ++at) {
      for (std::size_t i = 0; i < below.size(); ++i) {
        path.push_back(at * stride + below[at % 2 == 1 ? below.size() - 1 - i : i]);
      }
    }
    stride *= k;
  }
  return path;
}

// Of `rows` (an even number) times `columns` in a grid: there by the columns but the first, back by the first.
Cycle comb(std::uint32_t rows, std::uint32_t columns) {
  Cycle cycle{0};
  for (std::uint32_t r = 0; r < rows; ++r) {
    for (std::uint32_t c = 1; c < columns; ++c) cycle.push_back(r * columns + (r % 2 == 0 ? c : columns - c));
  }
  for (std::uint32_t r = rows - 1; r > 0; --r) cycle.push_back(r * columns);
  return cycle;
}

// Of rings of `rows` and `columns` ranks, both odd, columns at most rows: each row once round its ring and one step
// down, forwards or backwards. A row shifts the column by one, so `columns` more rows one way than the other close the
// cycle.
Cycle winding(std::uint32_t rows, std::uint32_t columns) {
  Cycle cycle;
  std::uint32_t column = 0;
  const std::uint32_t forwards = (rows + columns) / 2;
  for (std::uint32_t r = 0; r < rows; ++r) {
    const std::uint32_t step = r < forwards ? 1 : columns - 1;
    for (std::uint32_t c = 0; c < columns; ++c) cycle.push_back(r * columns + (column + c * step) % columns);
    column = (column + (columns - 1) * step) % columns;
  }
  return cycle;
}

// Of a torus of odd dimensions, the first one varying fastest.
Cycle odd_torus(const std::vector<std::uint32_t>& dimensions) {
  Cycle cycle;
  std::uint32_t stride = 1;
  for (const std::uint32_t k : dimensions) {
    Cycle next;
    if (stride == 1) {
      next.resize(k);
      std::iota(next.begin(), next.end(), 0U);
    } else if (stride >= k) {  // `cycle` as rows of a ring, this dimension as columns
      for (const std::uint32_t at : winding(stride, k)) next.push_back(cycle[at / k] + at % k * stride);
    } else {
      for (const std::uint32_t at : winding(k, stride)) next.push_back(cycle[at % stride] + at / stride * stride);
    }
    cycle = std::move(next);
    stride *= k;
  }
  return cycle;
}

// Of a square torus: Gray codes (x, y - x) and their mirror image, which share no edge.
std::vector<Cycle> square_torus(std::uint32_t k) {
  std::vector<Cycle> cycles(2);
  for (std::uint32_t i = 0; i < k * k; ++i) {
    const std::uint32_t x = i / k;
    const std::uint32_t y = (i % k + k - x % k) % k;
    cycles[0].push_back(x * k + y);
    cycles[1].push_back(y * k + x);
  }
  return cycles;
}

}  // namespace

RingOrders::RingOrders(std::vector<std::vector<std::uint32_t>> cycles) : cycles_(std::move(cycles)) {
  WEFT_CHECK(!cycles_.empty(), "rings without an order");
  for (const Cycle& cycle : cycles_) {
    Cycle position(ranks(), ranks());
    WEFT_CHECK(cycle.size() == ranks(), "orders of as many ranks each");
    for (std::uint32_t i = 0; i < ranks(); ++i) position.at(cycle[i]) = i;
    WEFT_CHECK(std::find(position.begin(), position.end(), ranks()) == position.end(), "each rank once in an order");
    positions_.push_back(std::move(position));
  }
}

RingOrders fully_connected_rings(std::uint32_t ranks) {
  WEFT_CHECK(ranks >= 2, "a ring of at least two ranks");
  if (ranks == 2) return RingOrders({{0, 1}});
  std::vector<Cycle> zigzags;
  for (std::uint32_t i = 0; i < (ranks - 1) / 2; ++i) {
    zigzags.push_back(zigzag(ranks, i));
    zigzags.emplace_back(zigzags.back().rbegin(), zigzags.back().rend());
  }
  if (ranks % 2 == 1 || ranks > kMostSearched) return RingOrders(std::move(zigzags));
  // The arcs that the zigzags leave over make no cycle: search among them and those of the last zigzags, of ever more.
  const std::uint32_t uses = ranks == 4 || ranks == 6 ? 2 : 1;
  for (std::vector<Cycle> kept = zigzags;; kept.resize(kept.size() - 2)) {
    std::vector<std::uint32_t> left(ranks * ranks, uses);
    for (const Cycle& cycle : kept) {
      for (std::uint32_t k = 0; k < ranks; ++k) --left[cycle[k] * ranks + cycle[(k + 1) % ranks]];
    }
    CycleSearch search(ranks, std::move(left), uses * (ranks - 1) - kept.size(), false);
    if (search.find()) {
      kept.insert(kept.end(), search.found().begin(), search.found().end());
      return RingOrders(std::move(kept));
    }
    WEFT_CHECK(!kept.empty(), "no Hamiltonian cycles");
  }
}

std::vector<std::vector<std::uint32_t>> rings_of_graph(const std::vector<std::uint32_t>& links, std::uint32_t ranks) {
  if (ranks < 3 || ranks > kMostSearched) return {};
  std::uint32_t fewest = UINT32_MAX;  // links of a rank
  for (std::uint32_t a = 0; a < ranks; ++a) {
    const auto row = links.begin() + a * ranks;
    fewest = std::min(fewest, std::accumulate(row, row + ranks, 0U));
  }
  for (std::size_t wanted = fewest / 2; wanted > 0; --wanted) {
    CycleSearch search(ranks, links, wanted, true);
    if (search.find()) return both_ways(search.found());
  }
  return {};
}

std::vector<std::vector<std::uint32_t>> rings_of_grid(std::vector<std::uint32_t> dimensions, bool wraps) {
  std::uint32_t all = 1;
  for (const std::uint32_t k : dimensions) all *= k;
  const auto is_one = [](std::uint32_t k) { return k == 1; };
  dimensions.erase(std::remove_if(dimensions.begin(), dimensions.end(), is_one), dimensions.end());
  if (all < 3) return {};
  if (dimensions.size() == 1) {
    if (!wraps) return {};
    Cycle ring(all);
    std::iota(ring.begin(), ring.end(), 0U);
    return both_ways({ring});
  }
  if (wraps && dimensions.size() == 2 && dimensions[0] == dimensions[1] && dimensions[0] > 2) {
    return both_ways(square_torus(dimensions[0]));
  }
  const auto even = std::find_if(dimensions.begin(), dimensions.end(), [](std::uint32_t k) { return k % 2 == 0; });
  if (even == dimensions.end()) {
    if (!wraps) return {};
    return both_ways({odd_torus(dimensions)});
  }
  // The even dimension as rows, a snake through the others as columns.
  const auto which = static_cast<std::size_t>(even - dimensions.begin());
  std::uint32_t stride = 1;
  for (std::size_t d = 0; d < which; ++d) stride *= dimensions[d];
  std::vector<std::uint32_t> others = dimensions;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(which));
  const std::vector<std::uint32_t> columns = snake(others);
  Cycle cycle;
  for (const std::uint32_t at : comb(*even, static_cast<std::uint32_t>(columns.size()))) {
    const std::uint32_t column = columns[at % columns.size()];
    const auto row = static_cast<std::uint32_t>(at / columns.size());
    cycle.push_back(column % stride + row * stride + column / stride * stride * *even);
  }
  return both_ways({cycle});
}

std::uint32_t filled_channels(std::int64_t bytes, std::uint32_t ranks, std::uint32_t channels, std::int64_t unit,
                              const RingOrders& orders) {
  const auto divide_up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t chunk = divide_up(divide_up(bytes, std::int64_t{ranks} * channels), unit) * unit;
  const std::int64_t filled = divide_up(bytes, chunk * ranks);
  return static_cast<std::uint32_t>(divide_up(filled, orders.cycles()) * orders.cycles());
}

}  // namespace weft
