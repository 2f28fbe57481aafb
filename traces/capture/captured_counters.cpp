#include "traces/capture/captured_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "sim/error.h"
#include "traces/capture/capture_file.h"

namespace weft {
namespace {

using capture::RecordKind;
using Triple = std::array<std::uint32_t, 3>;
using Kernel = std::tuple<std::string, Triple, Triple>;  // name, grid, block
using Counted = std::map<Kernel, std::vector<KernelCounters>>;

struct Process {
  std::string file;
  std::optional<std::uint32_t> said_rank, nccl_rank;
  std::uint32_t nccl_ranks = 0;
  std::map<std::uint32_t, Counted> devices;
};

KernelCounters counters_of(const capture::CountersRecord& record) {
  KernelCounters out;
  for (std::size_t i = 0; i < kKernelCounterCount; ++i)
    if ((record.known >> i & 1) != 0 && record.values[i] <= static_cast<std::uint64_t>(kMostCounted))
      out.values[i] = static_cast<std::int64_t>(record.values[i]);
  return out;
}

Process read_process(const std::filesystem::path& path, std::vector<std::string>& notes) {
  constexpr int kMostNotes = 20;
  CaptureFile file(path);
  Process process{file.name(), {}, {}, 0, {}};
  int noted = 0;
  while (file.next()) {
    if (file.kind() == RecordKind::session) {
      const auto record = file.as<capture::SessionRecord>();
      if (record.rank >= 0) process.said_rank = static_cast<std::uint32_t>(record.rank);
    } else if (file.kind() == RecordKind::communicator) {
      const auto record = file.as<capture::CommunicatorRecord>();
      if (record.ranks <= process.nccl_ranks) continue;
      process.nccl_ranks = record.ranks;
      process.nccl_rank = record.rank;
    } else if (file.kind() == RecordKind::counters) {
      const auto record = file.as<capture::CountersRecord>();
      const Kernel kernel{file.text_behind<capture::CountersRecord>(), std::to_array(record.grid),
                          std::to_array(record.block)};
      process.devices[record.device][kernel].push_back(counters_of(record));
    } else if (file.kind() == RecordKind::note && noted++ < kMostNotes) {
      notes.push_back(fmt::format("{}: {}", file.name(), file.note()));
    }
  }
  if (!file.damage().empty()) notes.push_back(fmt::format("{}: {}", file.name(), file.damage()));
  return process;
}

// Which counted device is which of the trace's ranks.
std::map<std::uint32_t, const Counted*> by_rank(const Trace& trace, const std::vector<Process>& processes,
                                                std::vector<std::string>& notes) {
  std::map<std::uint32_t, const Counted*> out;
  std::size_t unknown = 0;
  for (const Process& process : processes) {
    if (processes.size() == 1 && process.devices.size() == trace.ranks.size()) {
      std::size_t rank = 0;
      for (const auto& [device, counted] : process.devices) out[trace.ranks[rank++].rank] = &counted;
      continue;
    }
    const auto rank = process.said_rank ? process.said_rank : process.nccl_rank;
    if (rank && process.devices.size() == 1 && !out.contains(*rank))
      out[*rank] = &process.devices.begin()->second;
    else
      unknown += process.devices.size();
  }
  if (unknown > 0) notes.push_back(fmt::format("of {} GPUs nothing tells which ranks they counted for", unknown));
  return out;
}

class RankJoiner {
 public:
  explicit RankJoiner(TraceRank& rank) : rank_(rank) {
    for (std::size_t i = 0; i < rank.ops.size(); ++i) {
      const TraceOp& op = rank.ops[i];
      if (op.kind == TraceOpKind::kernel && op.shape)
        launches_[{op.name, op.shape->grid, op.shape->block}].push_back(i);
    }
  }

  // The n-th launch that was counted is the n-th of the first pass: of those that a second pass, cut short, did not
  // come to there are no counters. Where it launched more often nothing says which are which.
  void join(const Counted& counted, std::vector<std::string>& notes) {
    std::size_t uncounted = 0, more = 0, failed = 0;
    const Kernel* first = nullptr;
    for (const auto& [kernel, ops] : launches_) {
      const auto found = counted.find(kernel);
      const std::size_t times = found == counted.end() ? 0 : found->second.size();
      if (times > ops.size()) {
        more += ops.size();
        if (first == nullptr) first = &kernel;
        continue;
      }
      uncounted += ops.size() - times;
      if (times > 0) failed += assign(ops, found->second);
    }
    std::size_t only_counted = 0;
    for (const auto& [kernel, values] : counted) only_counted += launches_.contains(kernel) ? 0 : values.size();
    if (uncounted > 0)
      notes.push_back(fmt::format("rank {}: {} kernels were not launched in the second pass", rank_.rank, uncounted));
    if (more > 0)
      notes.push_back(fmt::format(
          "rank {}: {} kernels were launched more often in the second pass and have no counters, the first of them "
          "({:.80}) {} times in place of {}",
          rank_.rank, more, std::get<0>(*first), counted.at(*first).size(), launches_[*first].size()));
    if (only_counted > 0)
      notes.push_back(fmt::format("rank {}: {} kernels ran in the second pass only", rank_.rank, only_counted));
    if (failed > 0) notes.push_back(fmt::format("rank {}: {} kernels could not be measured", rank_.rank, failed));
    if (const std::size_t lent = take_from_equals(); lent > 0)
      notes.push_back(
          fmt::format("rank {}: {} kernels have the counters of their like in another iteration", rank_.rank, lent));
  }

 private:
  // Returns how many were launched, but not measured.
  std::size_t assign(const std::vector<std::size_t>& ops, const std::vector<KernelCounters>& values) {
    std::size_t failed = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] == KernelCounters())
        ++failed;
      else
        rank_.ops[ops[i]].counters = std::make_shared<const KernelCounters>(values[i]);
    }
    return failed;
  }

  // Iterations repeat themselves: the n-th launch of a kernel in one does what the n-th in another does, if both launch
  // it as often. Returns how many got counters.
  std::size_t take_from_equals() {
    std::size_t lent = 0;
    for (const auto& [kernel, ops] : launches_) {
      std::map<std::uint32_t, std::vector<std::size_t>> by_iteration;
      for (const std::size_t op : ops)
        if (rank_.ops[op].iteration) by_iteration[*rank_.ops[op].iteration].push_back(op);
      std::map<std::pair<std::size_t, std::size_t>, std::shared_ptr<const KernelCounters>> known;  // how often, which
      const auto for_each = [&](const auto& act) {
        for (const auto& [iteration, launched] : by_iteration)
          for (std::size_t i = 0; i < launched.size(); ++i)
            act(rank_.ops[launched[i]].counters, known[{launched.size(), i}]);
      };
      // The last, because the first iterations set up what later ones find.
      for_each([](const auto& counters, auto& place) { place = counters ? counters : place; });
      for_each([&](auto& counters, const auto& place) {
        if (counters || !place) return;
        counters = place;
        ++lent;
      });
    }
    return lent;
  }

  TraceRank& rank_;
  std::map<Kernel, std::vector<std::size_t>> launches_;
};

}  // namespace

void join_counters(Trace& trace, const std::filesystem::path& folder, std::vector<std::string>& notes) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == capture::kFileSuffix) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Process> processes;
  for (const auto& file : files) {
    Process process = read_process(file, notes);
    if (!process.devices.empty()) processes.push_back(std::move(process));
  }
  if (processes.empty()) {
    notes.emplace_back("no kernel was counted in the second pass: the trace has no counters");
    return;
  }
  const auto counted = by_rank(trace, processes, notes);
  std::set<std::uint32_t> ranks;
  for (TraceRank& rank : trace.ranks) {
    ranks.insert(rank.rank);
    if (const auto found = counted.find(rank.rank); found != counted.end())
      RankJoiner(rank).join(*found->second, notes);
    else
      notes.push_back(fmt::format("rank {} has no counters", rank.rank));
  }
  for (const auto& [rank, values] : counted)
    if (!ranks.contains(rank)) notes.push_back(fmt::format("rank {} was counted, but is not in the trace", rank));
}

}  // namespace weft
