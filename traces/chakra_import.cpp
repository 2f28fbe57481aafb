#include "traces/chakra_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <string>

#include "sim/error.h"
#include "traces/chakra_file.h"
#include "traces/chakra_play.h"
#include "traces/chakra_weft.h"
#include "traces/kernel_counters.h"
#include "traces/kineto_events.h"
#include "traces/kineto_names.h"

namespace weft {
namespace {

constexpr std::int64_t kFsPerUs = 1'000'000'000;

CollectiveKind kind_of(ChakraCollective kind) {
  switch (kind) {
    case ChakraCollective::all_reduce:
      return CollectiveKind::all_reduce;
    case ChakraCollective::reduce:
      return CollectiveKind::reduce;
    case ChakraCollective::all_gather:
      return CollectiveKind::all_gather;
    case ChakraCollective::gather:
      return CollectiveKind::gather;
    case ChakraCollective::scatter:
      return CollectiveKind::scatter;
    case ChakraCollective::broadcast:
      return CollectiveKind::broadcast;
    case ChakraCollective::all_to_all:
      return CollectiveKind::all_to_all;
    case ChakraCollective::reduce_scatter:
    case ChakraCollective::reduce_scatter_block:
      return CollectiveKind::reduce_scatter;
    case ChakraCollective::barrier:
      break;
  }
  return CollectiveKind::barrier;
}

bool communicates(const ChakraNode& node) {
  return node.type == ChakraType::collective || node.type == ChakraType::send || node.type == ChakraType::receive;
}

// One rank of a trace that weft did not write.
class RankBuilder {
 public:
  RankBuilder(const ChakraFile& file, std::uint32_t number, std::vector<std::string>& notes)
      : file_(file), notes_(notes), times_(play(file, notes)) {
    rank_.rank = number;
  }

  TraceRank build() {
    read_groups();
    number_.assign(file_.nodes.size(), std::nullopt);
    Time end;
    for (const std::uint32_t i : times_.order) {
      if (!on_host(file_.nodes[i])) {
        add(i);
        end = std::max(end, rank_.ops.back().start + rank_.ops.back().duration);
      } else if (waits_for_gpu(i)) {
        add_host_wait(i);
      }
    }
    if (end == Time() && rank_.ops.empty())
      throw InputError(file_.name, "", "expected nodes on the GPU (\"is_cpu_op\" false), got none");
    // Operations are in the order in which they could begin; nothing was issued after what follows it.
    for (std::size_t i = rank_.ops.size(); i-- > 0;) {
      TraceOp& op = rank_.ops[i];
      op.issued = std::min(op.issued, i + 1 < rank_.ops.size() ? rank_.ops[i + 1].issued : op.start);
      end = std::max(end, op.start + op.duration);
    }
    rank_.iterations.push_back({"all", Time(), end});
    if (without_size_ != 0)
      notes_.push_back(fmt::format("{}: {} collectives have no size (\"comm_size\")", file_.name, without_size_));
    if (without_work_ != 0)
      notes_.push_back(
          fmt::format("{}: {} computations say neither how long they took (\"duration_micros\") nor what they "
                      "ask for (\"num_ops\", \"tensor_size\"): they take next to no time",
                      file_.name, without_work_));
    return std::move(rank_);
  }

 private:
  static Time time(std::uint64_t us) { return Time(static_cast<std::int64_t>(us) * kFsPerUs); }

  // PyTorch's process groups stand in a node: ["[{\"pg_name\": \"0\", \"ranks\": [0, 1], ...}]"], in quotes of Python.
  void read_groups() {
    for (const ChakraNode& node : file_.nodes) {
      if (node.name.find("process_group:init") == std::string::npos) continue;
      const std::size_t begin = node.input_values.find("[{");
      const std::size_t end = node.input_values.rfind("}]");
      if (begin == std::string::npos || end == std::string::npos || end < begin) continue;
      const auto groups = nlohmann::json::parse(node.input_values.substr(begin, end + 2 - begin), nullptr, false);
      if (!groups.is_array()) continue;
      for (const auto& group : groups) {
        if (!group.is_object() || !group.contains("pg_name") || !group["pg_name"].is_string()) continue;
        std::vector<std::uint32_t>& ranks = groups_[group["pg_name"].get<std::string>()];
        ranks.clear();
        if (!group.contains("ranks") || !group["ranks"].is_array()) continue;
        for (const auto& r : group["ranks"])
          if (r.is_number_unsigned() && r.get<std::uint64_t>() < (1u << 24)) ranks.push_back(r.get<std::uint32_t>());
        std::sort(ranks.begin(), ranks.end());
        ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
      }
    }
  }

  [[nodiscard]] bool waits_for_gpu(std::uint32_t node) const {
    const auto& d = times_.dependencies[node];
    return std::any_of(d.begin(), d.end(), [&](std::uint32_t i) { return number_[i].has_value(); });
  }

  // What the node waits for beyond the order of its own stream, directly: what host nodes waited for, the order of
  // issue tells.
  [[nodiscard]] std::vector<std::uint32_t> waits(std::uint32_t node, std::optional<std::uint32_t> stream) const {
    std::vector<std::uint32_t> out;
    for (const std::uint32_t d : times_.dependencies[node]) {
      if (!number_[d] || on_host(file_.nodes[d])) continue;
      if (!stream || rank_.ops[*number_[d]].stream != *stream) out.push_back(*number_[d]);
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  TraceOp& append(std::uint32_t node) {
    number_[node] = static_cast<std::uint32_t>(rank_.ops.size());
    TraceOp& op = rank_.ops.emplace_back();
    op.name = file_.nodes[node].name;
    op.iteration = 0;
    op.start = time(times_.start[node]);
    op.issued = std::min(time(times_.issued[node]), op.start);
    op.duration = time(file_.nodes[node].duration_us);
    return op;
  }

  void add_host_wait(std::uint32_t node) {
    std::vector<std::uint32_t> waited = waits(node, std::nullopt);
    if (waited.empty()) return;
    TraceOp& op = append(node);
    op.kind = TraceOpKind::host_wait;
    const Time until = op.start;
    op.start = op.issued;  // the host came, and waited until the node could run
    op.duration = until - op.start;
    op.waits = std::move(waited);
  }

  void add(std::uint32_t node) {
    const ChakraNode& n = file_.nodes[node];
    std::vector<std::uint32_t> waited = waits(node, stream_of(n));
    TraceOp& op = append(node);
    op.waits = std::move(waited);
    op.stream = stream_of(n);
    if (n.type == ChakraType::memory_load || n.type == ChakraType::memory_store) {
      op.kind = TraceOpKind::copy;
      op.copy_direction = n.type == ChakraType::memory_load ? "HtoD" : "DtoH";
      op.bytes = Bytes(std::max<std::int64_t>(n.attributes.integer("tensor_size", 0), 0));
    } else if (communicates(n)) {
      op.kind = TraceOpKind::collective;
      op.collective = collective(n);
    } else {
      count(n, op);
    }
  }

  // Generated traces say what a computation asks for, as ASTRA-sim's roofline takes it: operations, and bytes moved.
  void count(const ChakraNode& n, TraceOp& op) {
    const auto said = [&](const char* name) {
      return std::clamp<std::int64_t>(n.attributes.integer(name, 0), 0, kMostCounted);
    };
    const std::int64_t operations = said("num_ops");
    const std::int64_t bytes = said("tensor_size");
    without_work_ += op.duration == Time() && operations == 0 && bytes == 0 ? 1 : 0;
    if (operations == 0 && bytes == 0) return;
    KernelCounters counters;
    counters[KernelCounter::tensor_fp16_ops] = operations;
    // Which of them are written is not said: a third, as of an addition, or a product of square matrices.
    counters[KernelCounter::hbm_written_bytes] = bytes / 3;
    counters[KernelCounter::hbm_read_bytes] = bytes - bytes / 3;
    op.counters = std::make_shared<const KernelCounters>(counters);
    // Nor is its grid. A choice, near what libraries launch: a block has a tile of a product, 128 x 128 x 1024, or 64
    // KiB.
    constexpr std::int64_t kTileOperations = std::int64_t{2} * 128 * 128 * 1024;
    constexpr std::int64_t kBlockBytes = 64 << 10;
    const std::int64_t blocks = std::max((operations - 1) / kTileOperations, (bytes - 1) / kBlockBytes) + 1;
    op.shape =
        LaunchShape{{static_cast<std::uint32_t>(std::min<std::int64_t>(blocks, 1 << 24)), 1, 1}, {256, 1, 1}, 32, 0};
  }

  TraceCollective collective(const ChakraNode& n) {
    TraceCollective c;
    const std::int64_t kind = n.attributes.integer("comm_type", -1);
    c.kind = n.type != ChakraType::collective ? CollectiveKind::send_receive
             : kind >= 0 && kind <= static_cast<std::int64_t>(ChakraCollective::barrier)
                 ? kind_of(static_cast<ChakraCollective>(kind))
                 : collective_kind(n.name).value_or(CollectiveKind::all_reduce);
    const std::int64_t bytes = n.attributes.integer("comm_size", -1);
    // Bytes are all that is recorded; where the kernel's name tells the type, they are elements of it.
    c.type = type_in_kernel_name(n.name);
    if (!c.type || bytes % bytes_per_element(*c.type) != 0) c.type = DataType::int8;
    if (bytes >= 0)
      c.elements = bytes / bytes_per_element(*c.type);
    else
      ++without_size_;
    c.group_name = n.attributes.text("pg_name");
    const auto group = groups_.find(c.group_name);
    if (group != groups_.end() && std::binary_search(group->second.begin(), group->second.end(), rank_.rank)) {
      c.group_ranks = group->second;
      c.group_size = static_cast<std::uint32_t>(group->second.size());
    }
    if (n.type != ChakraType::collective) add_peer(n, c);
    return c;
  }

  // Of a send or receive: its other end, where the node names one.
  void add_peer(const ChakraNode& n, TraceCollective& c) const {
    const std::int64_t peer = n.attributes.integer(n.type == ChakraType::send ? "comm_dst" : "comm_src", -1);
    if (peer < 0 || peer >= kMaxWorld || peer == rank_.rank) return;
    c.group_ranks = {std::min(rank_.rank, static_cast<std::uint32_t>(peer)),
                     std::max(rank_.rank, static_cast<std::uint32_t>(peer))};
    c.group_size = 2;
    const bool sends = n.type == ChakraType::send;
    c.first = (rank_.rank < static_cast<std::uint32_t>(peer)) == sends ? 0 : 1;
  }

  const ChakraFile& file_;
  std::vector<std::string>& notes_;
  ChakraTimes times_;
  TraceRank rank_;
  std::map<std::string, std::vector<std::uint32_t>> groups_;
  std::vector<std::optional<std::uint32_t>> number_;  // of the operation, by node
  std::size_t without_size_ = 0;                      // collectives
  std::size_t without_work_ = 0;                      // computations
};

using NumberedFiles = std::map<std::uint32_t, std::filesystem::path>;  // by rank

// As ASTRA-sim wants several files to be named, NAME.RANK.et, whatever order a shell gives them in; else in that order.
NumberedFiles by_rank(const std::vector<std::filesystem::path>& paths) {
  static const std::regex with_rank(R"(.*\.(\d{1,5})\.(et|json)(\.gz|\.zst)?)");
  NumberedFiles named, given;
  for (const std::filesystem::path& path : paths) {
    const std::string name = path.filename().string();
    if (std::smatch found; std::regex_match(name, found, with_rank))
      named.emplace(static_cast<std::uint32_t>(std::stoul(found[1])), path);
    given.emplace(static_cast<std::uint32_t>(given.size()), path);
  }
  return paths.size() > 1 && named.size() == paths.size() ? named : given;
}

}  // namespace

Trace import_chakra(const std::vector<std::filesystem::path>& paths, std::vector<std::string>& notes) {
  if (paths.empty()) throw InputError("expected at least one Chakra file, got none");
  Trace trace;
  trace.source = paths.front().filename().string();
  const NumberedFiles files = by_rank(paths);
  trace.world_size = files.rbegin()->first + 1;
  for (const auto& [number, path] : files) {
    const ChakraFile file = read_chakra(path);
    trace.ranks.push_back(written_by_weft(file) ? rank_of_weft(file, trace) : RankBuilder(file, number, notes).build());
    for (const TraceOp& op : trace.ranks.back().ops)
      if (op.collective && !op.collective->group_ranks.empty())
        trace.world_size = std::max(trace.world_size, op.collective->group_ranks.back() + 1);
  }
  std::sort(trace.ranks.begin(), trace.ranks.end(),
            [](const TraceRank& a, const TraceRank& b) { return a.rank < b.rank; });
  validate(trace, paths.front().string());
  return trace;
}

}  // namespace weft
