#include "traces/chakra_play.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>

#include "sim/error.h"

namespace weft {
namespace {

class Player {
 public:
  Player(const ChakraFile& file, std::vector<std::string>& notes) : file_(file), notes_(notes) {}

  ChakraTimes play() {
    const std::size_t n = file_.nodes.size();
    out_.issued.assign(n, 0);
    out_.start.assign(n, 0);
    out_.dependencies.resize(n);
    find_dependencies();
    std::vector<std::vector<std::uint32_t>> children(n);
    std::vector<std::size_t> open(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      open[i] = out_.dependencies[i].size();
      for (const std::uint32_t parent : out_.dependencies[i]) children[parent].push_back(i);
    }
    using Ready = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>;  // time, id, node
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    std::vector<std::uint64_t> ready_at(n, 0);
    for (std::uint32_t i = 0; i < n; ++i)
      if (open[i] == 0) ready.emplace(0, file_.nodes[i].id, i);
    while (!ready.empty()) {
      const std::uint32_t i = std::get<2>(ready.top());
      ready.pop();
      const std::uint64_t end = run(i, ready_at[i]);
      for (const std::uint32_t child : children[i]) {
        ready_at[child] = std::max(ready_at[child], end);
        if (on_host(file_.nodes[i])) out_.issued[child] = std::max(out_.issued[child], end);
        if (--open[child] == 0) ready.emplace(ready_at[child], file_.nodes[child].id, child);
      }
    }
    if (out_.order.size() != n) fail_on_cycle(open);
    return std::move(out_);
  }

 private:
  void find_dependencies() {
    std::unordered_map<std::uint64_t, std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < file_.nodes.size(); ++i) numbers.emplace(file_.nodes[i].id, i);
    std::size_t missing = 0;
    std::set<std::uint64_t> missing_ids;
    for (std::uint32_t i = 0; i < file_.nodes.size(); ++i) {
      const ChakraNode& node = file_.nodes[i];
      for (const auto* list : {&node.data_dependencies, &node.control_dependencies}) {
        for (const std::uint64_t id : *list) {
          const auto found = numbers.find(id);
          if (found != numbers.end()) {
            // In recordings control dependencies tell who called whom, and go in circles with those of data; generated
            // traces order nodes by either.
            const bool orders = list == &node.data_dependencies || node.data_dependencies.empty();
            if (orders) out_.dependencies[i].push_back(found->second);
            continue;
          }
          ++missing;
          missing_ids.insert(id);
        }
      }
      std::vector<std::uint32_t>& d = out_.dependencies[i];
      std::sort(d.begin(), d.end());
      d.erase(std::unique(d.begin(), d.end()), d.end());
    }
    if (missing != 0)
      notes_.push_back(fmt::format("{}: {} dependencies on {} nodes that are not there (the first: {}) were left out",
                                   file_.name, missing, missing_ids.size(), *missing_ids.begin()));
  }

  // Returns when it ends.
  std::uint64_t run(std::uint32_t i, std::uint64_t ready_at) {
    const ChakraNode& node = file_.nodes[i];
    const std::int64_t lane = on_host(node) ? node.attributes.integer("tid", 0) : stream_of(node);
    std::uint64_t& free = free_[{on_host(node), lane}];
    out_.order.push_back(i);
    out_.start[i] = std::max(ready_at, free);
    if (node.duration_us > kLongestUs - std::min(kLongestUs, out_.start[i]))
      throw InputError(file_.name, fmt::format("node {}", node.id),
                       "expected a trace of at most 2.5 hours, got a longer one");
    return free = out_.start[i] + node.duration_us;
  }

  [[noreturn]] void fail_on_cycle(const std::vector<std::size_t>& open) const {
    const auto first = std::find_if(open.begin(), open.end(), [](std::size_t n) { return n != 0; });
    const ChakraNode& node = file_.nodes[static_cast<std::size_t>(first - open.begin())];
    throw InputError(file_.name, fmt::format("node {} ({})", node.id, node.name.substr(0, 80)),
                     "expected dependencies without a cycle, got one that holds this node or leads to it");
  }

  static constexpr std::uint64_t kLongestUs = 9'000'000'000;  // 2.5 hours, as a Trace's femtoseconds go

  const ChakraFile& file_;
  std::vector<std::string>& notes_;
  ChakraTimes out_;
  std::map<std::pair<bool, std::int64_t>, std::uint64_t> free_;  // host threads and streams
};

}  // namespace

bool on_host(const ChakraNode& node) {
  if (node.type == ChakraType::metadata) return true;
  if (const bool* cpu = node.attributes.find<bool>("is_cpu_op")) return *cpu;
  // Where nothing is said Chakra's own reader takes it for a node of the host; but generators of traces leave it out.
  return node.type == ChakraType::compute && node.attributes.integer("num_ops", 0) <= 0;
}

std::uint32_t stream_of(const ChakraNode& node) {
  const bool communicates =
      node.type == ChakraType::collective || node.type == ChakraType::send || node.type == ChakraType::receive;
  const std::int64_t thread = node.attributes.integer("tid", communicates ? 1 : 0);
  const std::int64_t stream = node.attributes.integer("stream", thread);
  return stream < 0 || stream > std::numeric_limits<std::int32_t>::max() ? 0 : static_cast<std::uint32_t>(stream);
}

ChakraTimes play(const ChakraFile& file, std::vector<std::string>& notes) { return Player(file, notes).play(); }

}  // namespace weft
