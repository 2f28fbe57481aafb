#include "workloads/rank_meetings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "sim/error.h"
#include "workloads/address_plan.h"

namespace weft {
namespace {

// Its name and ranks, or where neither was recorded the kind; and who sends, as what goes there and what comes back do
// not wait for each other.
using Communicator =
    std::tuple<std::string, std::vector<std::uint32_t>, std::optional<CollectiveKind>, std::optional<std::uint32_t>>;

Communicator communicator_of(const CollectiveNode& collective) {
  const bool known = !collective.communicator.empty() || !collective.group_ranks.empty();
  return {collective.communicator, collective.group_ranks, known ? std::nullopt : std::optional(collective.kind),
          collective.kind == CollectiveKind::send_receive ? collective.first : std::nullopt};
}

// What each rank gives may differ: with sizes for each pair, or since only the root gives something.
bool may_be_uneven(CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all || kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
}

class Matcher {
 public:
  Matcher(const std::vector<Graph>& ranks, std::uint32_t iterations, std::uint64_t first_address)
      : ranks_(ranks), iterations_(iterations), allocator_(first_address) {}

  std::vector<std::vector<Meeting>> match() {
    find();
    find_members();
    std::vector<std::vector<Meeting>> meetings;
    for (const Graph& graph : ranks_) meetings.emplace_back(graph.nodes.size());
    std::map<GpuGroup, std::uint32_t> sequences;
    std::map<std::pair<Communicator, std::uint32_t>, std::uint64_t> bytes;
    for (const Place& place : order_) {
      const std::vector<Member>& members = found_.at(place);
      const GpuGroup& group = members_.at(place.communicator);
      check(place, group, members);
      Meeting meeting{group, sequences[group]++, 0, Bytes(), Time(0)};
      for (const Member& m : members) meeting.bytes = std::max(meeting.bytes, node(m).collective.bytes);
      auto& buffer = bytes[{place.communicator, place.number}];
      buffer = std::max(buffer, static_cast<std::uint64_t>(meeting.bytes.count()));
      for (const Member& m : members) meetings[m.rank][m.node] = meeting;
    }
    for (auto& [use, size] : bytes) size = allocator_.allocate(size);
    for (const Place& place : order_) {
      const std::uint64_t buffer = bytes.at({place.communicator, place.number});
      for (const Member& m : found_.at(place)) meetings[m.rank][m.node].buffer = buffer;
    }
    return meetings;
  }

 private:
  struct Place {
    std::uint32_t iteration = 0;
    Communicator communicator;
    std::uint32_t number = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct Member {
    std::uint32_t rank = 0;
    std::size_t node = 0;
  };

  [[nodiscard]] const Node& node(const Member& m) const { return ranks_[m.rank].nodes[m.node]; }

  void find() {
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      std::map<std::pair<std::uint32_t, Communicator>, std::uint32_t> numbers;
      for (std::size_t i = 0; i < ranks_[r].nodes.size(); ++i) {
        const Node& candidate = ranks_[r].nodes[i];
        if (candidate.kind != NodeKind::collective || candidate.iteration >= iterations_) continue;
        const Communicator communicator = communicator_of(candidate.collective);
        const Place place{candidate.iteration, communicator, numbers[{candidate.iteration, communicator}]++};
        std::vector<Member>& members = found_[place];
        if (members.empty()) order_.push_back(place);
        members.push_back({r, i});
      }
    }
  }

  void find_members() {
    std::map<Communicator, std::vector<GpuId>> users;
    for (const auto& [place, members] : found_) {
      std::vector<GpuId>& gpus = users[place.communicator];
      for (const Member& m : members) gpus.push_back(GpuId{m.rank});
    }
    for (auto& [communicator, gpus] : users) {
      const auto& [name, group_ranks, kind, sender] = communicator;
      if (!group_ranks.empty()) {
        gpus.clear();
        for (const std::uint32_t rank : group_ranks) gpus.push_back(gpu_of(rank));
      } else if (name.empty()) {
        gpus = GpuGroup::first(static_cast<std::uint32_t>(ranks_.size())).members();
      }
      std::sort(gpus.begin(), gpus.end());
      gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
      members_.emplace(communicator, std::move(gpus));
    }
  }

  [[nodiscard]] GpuId gpu_of(std::uint32_t rank) const {
    for (std::uint32_t g = 0; g < ranks_.size(); ++g)
      if (ranks_[g].recorded_rank == rank) return GpuId{g};
    throw InputError(ranks_.front().name, "", fmt::format("expected a group of recorded ranks, got rank {}", rank));
  }

  void check(const Place& place, const GpuGroup& group, const std::vector<Member>& members) const {
    const Node& first = node(members.front());
    const auto fail = [&](const Member& m, const std::string& message) {
      throw InputError(ranks_[m.rank].name, fmt::format("/nodes/{}", m.node), message);
    };
    const std::string which =
        fmt::format("collective {} of {} in iteration {}", place.number, name_of(place.communicator), place.iteration);
    for (const Member& m : members) {
      const CollectiveNode& here = node(m).collective;
      const std::string ranks =
          fmt::format("on ranks {} and {}", ranks_[members.front().rank].recorded_rank, ranks_[m.rank].recorded_rank);
      if (here.kind != first.collective.kind)
        fail(m, fmt::format("expected the same {} {}, got {} and {}", which, ranks, to_string(first.collective.kind),
                            to_string(here.kind)));
      if (here.distance != first.collective.distance || here.first != first.collective.first)
        fail(m, fmt::format("expected the same peers in {} {}, got others", which, ranks));
      if (here.group_size != 0 && here.group_size != group.size())
        fail(m, fmt::format("expected a group of {} ranks for {}, got {} that take part", here.group_size, which,
                            group.size()));
      const bool even = !may_be_uneven(here.kind);
      if (even && (here.bytes != first.collective.bytes || here.type != first.collective.type))
        fail(m, fmt::format("expected the same bytes of one type in {} {}, got {} B of {} and {} B of {}", which, ranks,
                            first.collective.bytes.count(), to_string(first.collective.type), here.bytes.count(),
                            to_string(here.type)));
    }
    for (const GpuId gpu : group) {
      if (std::any_of(members.begin(), members.end(), [&](const Member& m) { return m.rank == gpu.value; })) continue;
      fail(members.front(), fmt::format("expected rank {} to take part in {} ({}) as rank {} does, got no such "
                                        "operation on it",
                                        ranks_[gpu.value].recorded_rank, which, to_string(first.collective.kind),
                                        ranks_[members.front().rank].recorded_rank));
    }
  }

  static std::string name_of(const Communicator& communicator) {
    const auto& [name, ranks, kind, sender] = communicator;
    if (!name.empty()) return fmt::format("group \"{}\"", name);
    return ranks.empty() ? std::string("all ranks") : fmt::format("the group of ranks {}", fmt::join(ranks, ", "));
  }

  const std::vector<Graph>& ranks_;
  std::uint32_t iterations_;
  DeviceAllocator allocator_;
  std::map<Place, std::vector<Member>> found_;  // members ascending by rank
  std::vector<Place> order_;                    // as the ranks issue them, one rank after the other
  std::map<Communicator, GpuGroup> members_;
};

}  // namespace

std::vector<std::vector<Meeting>> meetings_of_ranks(const std::vector<Graph>& ranks, std::uint32_t iterations,
                                                    std::uint64_t first_address) {
  return Matcher(ranks, iterations, first_address).match();
}

}  // namespace weft
