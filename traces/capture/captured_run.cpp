#include "traces/capture/captured_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "sim/error.h"
#include "traces/clock_alignment.h"
#include "traces/kineto_rank.h"

namespace weft {
namespace {

// The largest communicator that a process is part of: with one process a GPU, that of all ranks.
const CapturedCommunicator* largest(const std::vector<CapturedCommunicator>& communicators) {
  const auto found = std::max_element(communicators.begin(), communicators.end(),
                                      [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
  return found == communicators.end() ? nullptr : &*found;
}

}  // namespace

void CapturedRun::add(const CapturedProcess& process, bool alone) {
  const std::string& file = process.profile.name;
  for (const std::string& note : process.notes) notes_.push_back(fmt::format("{}: {}", file, note));
  const std::vector<std::int64_t> devices = used_devices(process.profile, notes_);
  if (devices.empty()) {
    ++without_gpu_;
    if (!process.traffic.empty())
      notes_.push_back(fmt::format(
          "{}: its GPU was sampled, but no operation recorded: where this CUPTI does not do both, capture with "
          "--no-sampling",
          file));
    return;
  }
  for (const std::int64_t device : devices) {
    Part part{file, captured_rank(process, device), std::nullopt, std::nullopt, 0};
    if (devices.size() == 1) part.said_rank = process.rank;
    const CapturedCommunicator* world = largest(part.captured.communicators);
    const bool known = devices.size() == 1 || (world != nullptr && world->device);
    if (!known && !alone)
      throw InputError(
          file, "",
          fmt::format("expected one GPU for each process of several, got operations on {} devices", devices.size()));
    if (known && world != nullptr && world->rank < world->ranks) {
      part.nccl_rank = world->rank;
      part.nccl_world = world->id;
    }
    if (world != nullptr && world->ranks <= static_cast<std::uint32_t>(kMaxWorld))
      nccl_world_ = std::max(nccl_world_, world->ranks);
    parts_.push_back(std::move(part));
  }
  said_world_ = std::max(said_world_, process.world_size.value_or(0));
}

Trace CapturedRun::finish(std::string source) {
  if (parts_.empty())
    throw InputError(source, "", fmt::format("expected operations on a GPU, got none in {} processes", without_gpu_));
  if (without_gpu_ > 0) notes_.push_back(fmt::format("{} processes ran nothing on a GPU", without_gpu_));
  number_ranks();
  place_groups();
  Trace trace;
  trace.source = std::move(source);
  trace.world_size = world_;
  std::int64_t origin = std::numeric_limits<std::int64_t>::max();
  for (const Part& part : parts_) origin = std::min(origin, part.captured.origin_ns);
  for (Part& part : parts_) {
    shift_times(part.captured.rank, part.captured.origin_ns - origin, part.file);
    trace.ranks.push_back(std::move(part.captured.rank));
  }
  std::sort(trace.ranks.begin(), trace.ranks.end(),
            [](const TraceRank& a, const TraceRank& b) { return a.rank < b.rank; });
  validate(trace, trace.source);
  align_clocks(trace, notes_);
  return trace;
}

// All parts' numbers, if each has one that no other has.
template <class Number>
std::optional<CapturedRun::Numbers> CapturedRun::distinct(Number number) const {
  Numbers numbers;
  for (const Part& part : parts_) {
    const std::optional<std::uint32_t> n = number(part);
    if (!n || std::find(numbers.begin(), numbers.end(), *n) != numbers.end()) return std::nullopt;
    numbers.push_back(*n);
  }
  return numbers;
}

void CapturedRun::number_ranks() {
  const bool one_world =
      std::all_of(parts_.begin(), parts_.end(), [&](const Part& p) { return p.nccl_world == parts_[0].nccl_world; });
  std::optional<Numbers> numbers = distinct([](const Part& p) { return p.said_rank; });
  world_ = said_world_;
  if (!numbers && one_world) {
    numbers = distinct([](const Part& p) { return p.nccl_rank; });
    world_ = nccl_world_;
  }
  if (!numbers) {
    for (const Part& part : parts_)
      for (const Part& other : parts_)
        if (&part != &other && part.said_rank && part.said_rank == other.said_rank)
          throw InputError(part.file, "",
                           fmt::format("expected each rank once, got rank {} as in {}", *part.said_rank, other.file));
    numbers.emplace();
    for (std::uint32_t i = 0; i < parts_.size(); ++i) numbers->push_back(i);
    world_ = static_cast<std::uint32_t>(parts_.size());
    if (parts_.size() > 1) notes_.emplace_back("nothing tells the processes' ranks: they are numbered by file name");
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].captured.rank.rank = (*numbers)[i];
  world_ = std::max(world_, *std::max_element(numbers->begin(), numbers->end()) + 1);
  // A process may be the only one captured, of a larger group.
  for (const Part& part : parts_)
    for (const TraceOp& op : part.captured.rank.ops)
      if (op.collective) world_ = std::max(world_, op.collective->group_size);
  if (parts_.size() == world_) return;
  Numbers missing;
  for (std::uint32_t rank = 0; rank < world_ && missing.size() < 8; ++rank)
    if (std::find(numbers->begin(), numbers->end(), rank) == numbers->end()) missing.push_back(rank);
  notes_.push_back(fmt::format("{} of {} ranks were captured; without rank {}{}", parts_.size(), world_,
                               fmt::join(missing, ", "), parts_.size() + missing.size() < world_ ? ", ..." : ""));
}

// The ranks of a communicator, by their numbers in it; nullopt where one was not captured.
std::optional<CapturedRun::Numbers> CapturedRun::members(std::uint64_t communicator) const {
  std::map<std::uint32_t, std::uint32_t> by_number;
  std::uint32_t size = 0;
  for (const Part& part : parts_) {
    for (const CapturedCommunicator& record : part.captured.communicators) {
      if (record.id != communicator) continue;
      by_number[record.rank] = part.captured.rank.rank;
      size = record.ranks;
    }
  }
  Numbers ranks;
  for (const auto& [number, rank] : by_number)
    if (number == ranks.size()) ranks.push_back(rank);
  return size > 0 && ranks.size() == size ? std::optional(ranks) : std::nullopt;
}

void CapturedRun::place_groups() {
  std::map<std::uint64_t, std::optional<Numbers>> known;
  for (Part& part : parts_) {
    TraceRank& rank = part.captured.rank;
    for (const auto& [op, communicator, peer] : part.captured.groups) {
      const auto [entry, added] = known.try_emplace(communicator);
      if (added) entry->second = members(communicator);
      if (!entry->second) continue;
      Numbers group = *entry->second;
      if (std::find(group.begin(), group.end(), rank.rank) == group.end()) continue;
      if (peer) {
        if (*peer >= group.size() || group[*peer] == rank.rank) continue;
        group = {rank.rank, group[*peer]};
      }
      std::sort(group.begin(), group.end());
      if (std::adjacent_find(group.begin(), group.end()) != group.end()) continue;
      TraceCollective& collective = *rank.ops[op].collective;
      collective.group_size = static_cast<std::uint32_t>(group.size());
      collective.group_ranks = std::move(group);
    }
  }
}

}  // namespace weft
