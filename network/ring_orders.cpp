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

// Divides what is left of a regular directed graph into Hamiltonian cycles, depth first.
class CycleSearch {
 public:
  // Each arc may be used `uses` times, less where `taken` goes.
  CycleSearch(std::uint32_t ranks, std::uint32_t uses, const std::vector<Cycle>& taken)
      : ranks_(ranks), left_(ranks * ranks, uses), wanted_(uses * (ranks - 1)) {
    for (const Cycle& cycle : taken) use(cycle);
    wanted_ -= taken.size();
  }

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

  std::uint32_t& left(std::uint32_t from, std::uint32_t to) { return left_[from * ranks_ + to]; }

  void use(const Cycle& cycle) {
    for (std::uint32_t i = 0; i < ranks_; ++i) --left(cycle[i], cycle[(i + 1) % ranks_]);
  }

  bool extend() {
    if (++steps_ > kSteps) return false;
    const std::uint32_t from = path_.back();
    if (path_.size() == ranks_) return left(from, 0) > 0 && close();
    for (std::uint32_t to = 1; to < ranks_; ++to) {
      if (visited_[to] || left(from, to) == 0) continue;
      visited_[to] = true;
      --left(from, to);
      path_.push_back(to);
      if (extend()) return true;
      path_.pop_back();
      ++left(from, to);
      visited_[to] = false;
    }
    return false;
  }

  bool close() {
    const Cycle path = path_;
    --left(path.back(), 0);
    found_.push_back(path);
    if (find()) return true;
    found_.pop_back();
    ++left(path.back(), 0);
    path_ = path;
    visited_.assign(ranks_, true);
    return false;
  }

  std::uint32_t ranks_;
  std::vector<std::uint32_t> left_;  // uses of an arc, by from * ranks + to
  std::size_t wanted_;
  std::uint64_t steps_ = 0;
  Cycle path_;
  std::vector<bool> visited_;
  std::vector<Cycle> found_;
};

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
    CycleSearch search(ranks, uses, kept);
    if (search.find()) {
      kept.insert(kept.end(), search.found().begin(), search.found().end());
      return RingOrders(std::move(kept));
    }
    WEFT_CHECK(!kept.empty(), "no Hamiltonian cycles");
  }
}

}  // namespace weft
