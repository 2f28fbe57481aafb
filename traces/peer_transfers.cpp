#include "traces/peer_transfers.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

namespace weft {
namespace {

using Ranks = std::vector<std::uint32_t>;
using Elements = std::optional<std::int64_t>;

// Of those that send, or of those that receive; nullopt where one is not known.
Elements total(const std::vector<PeerTransfer>& transfers, bool sends) {
  std::int64_t sum = 0;
  for (const PeerTransfer& t : transfers) {
    if (t.sends != sends) continue;
    if (!t.elements || *t.elements < 0 || __builtin_add_overflow(sum, *t.elements, &sum)) return std::nullopt;
  }
  return sum;
}

std::optional<std::uint32_t> only_peer(const std::vector<PeerTransfer>& transfers, bool sends) {
  std::optional<std::uint32_t> found;
  for (const PeerTransfer& t : transfers) {
    if (t.sends != sends) continue;
    if (found) return std::nullopt;
    found = t.peer;
  }
  return found;
}

std::uint32_t place_of(const Ranks& group, std::uint32_t rank) {
  return static_cast<std::uint32_t>(std::ranges::lower_bound(group, rank) - group.begin());
}

// Of `size` places, from one to another one round and round.
std::uint32_t places_on(std::uint32_t from, std::uint32_t to, std::uint32_t size) { return (to + size - from) % size; }

// An all-to-all keeps a part of its input on its rank.
Elements input_of_all_to_all(Elements sent, std::size_t ranks) {
  const auto others = static_cast<std::int64_t>(ranks) - 1;
  std::int64_t parts = 0;
  if (!sent || __builtin_mul_overflow((*sent + others - 1) / others, static_cast<std::int64_t>(ranks), &parts))
    return std::nullopt;
  return parts;
}

void be_of(Ranks ranks, TraceCollective& c) {
  c.group_size = static_cast<std::uint32_t>(ranks.size());
  c.group_ranks = std::move(ranks);
}

class Joiner {
 public:
  Joiner(const std::vector<std::vector<PeerKernel>>& kernels, Trace& trace) : trace_(trace) {
    for (std::size_t r = 0; r < kernels.size(); ++r)
      for (const PeerKernel& kernel : kernels[r]) members_.push_back({r, &kernel});
    parent_.resize(members_.size());
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    broken_.resize(members_.size(), false);
  }

  void join() {
    meet();
    std::map<std::size_t, std::vector<std::size_t>> components;
    std::map<std::size_t, bool> broken;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      components[root(m)].push_back(m);
      broken[root(m)] = broken[root(m)] || broken_[m];
    }
    for (const auto& [id, component] : components)
      if (component.size() > 2 && !broken[id]) be_one(component);
  }

 private:
  struct Member {
    std::size_t rank;  // index into Trace::ranks
    const PeerKernel* kernel;
  };
  // Iteration, group, sender and receiver.
  using Way = std::tuple<std::string, std::string, std::uint32_t, std::uint32_t>;

  [[nodiscard]] TraceOp& op(std::size_t m) const { return trace_.ranks[members_[m].rank].ops[members_[m].kernel->op]; }
  [[nodiscard]] std::uint32_t rank(std::size_t m) const { return trace_.ranks[members_[m].rank].rank; }

  std::size_t root(std::size_t m) {
    while (parent_[m] != m) m = parent_[m] = parent_[parent_[m]];
    return m;
  }

  void meet() {
    std::map<Way, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> ways;  // who sends, who receives
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const TraceOp& kernel = op(m);
      const std::string iteration =
          kernel.iteration ? trace_.ranks[members_[m].rank].iterations[*kernel.iteration].name : "";
      for (const PeerTransfer& t : members_[m].kernel->transfers) {
        const std::string& group = kernel.collective->group_name;
        if (t.sends)
          ways[{iteration, group, rank(m), t.peer}].first.push_back(m);
        else
          ways[{iteration, group, t.peer, rank(m)}].second.push_back(m);
      }
    }
    for (const auto& [way, ends] : ways) {
      const auto& [senders, receivers] = ends;
      for (std::size_t i = 0; i < std::max(senders.size(), receivers.size()); ++i) {
        if (senders.size() != receivers.size()) {
          broken_[i < senders.size() ? senders[i] : receivers[i]] = true;
          if (i < receivers.size()) broken_[receivers[i]] = true;
        } else {
          parent_[root(senders[i])] = root(receivers[i]);
        }
      }
    }
  }

  void be_one(std::vector<std::size_t> component) {
    std::ranges::sort(component, {}, [&](std::size_t m) { return rank(m); });
    Ranks ranks;
    for (const std::size_t m : component) ranks.push_back(rank(m));
    if (std::ranges::adjacent_find(ranks) != ranks.end()) return;
    const bool shifts = be_shift(component, ranks);
    for (const std::size_t m : component) {
      TraceCollective& c = *op(m).collective;
      be_of(ranks, c);
      if (shifts) continue;
      c.kind = CollectiveKind::all_to_all;
      c.distance = 1;
      c.first.reset();
      c.elements = input_of_all_to_all(total(members_[m].kernel->transfers, true), ranks.size());
    }
  }

  // Those that hang together and of which each has one transfer each way at most, as long, are a path or a ring.
  bool be_shift(const std::vector<std::size_t>& component, const Ranks& ranks) {
    const auto size = static_cast<std::uint32_t>(ranks.size());
    std::optional<std::uint32_t> distance, first;
    std::optional<Elements> elements;
    for (const std::size_t m : component) {
      const std::vector<PeerTransfer>& transfers = members_[m].kernel->transfers;
      const auto to = only_peer(transfers, true);
      const auto from = only_peer(transfers, false);
      if (transfers.size() != (to ? 1U : 0U) + (from ? 1U : 0U)) return false;
      for (const PeerTransfer& t : transfers) {
        if (elements && *elements != t.elements) return false;
        elements = t.elements;
      }
      const std::uint32_t place = place_of(ranks, rank(m));
      if (!from) first = place;
      if (!to) continue;
      const std::uint32_t on = places_on(place, place_of(ranks, *to), size);
      if (distance && *distance != on) return false;
      distance = on;
    }
    for (const std::size_t m : component) {
      TraceCollective& c = *op(m).collective;
      c.kind = CollectiveKind::shift;
      c.distance = *distance;
      c.first = first;
      c.elements = *elements;
    }
    return true;
  }

  Trace& trace_;
  std::vector<Member> members_;
  std::vector<std::size_t> parent_;  // by member, of a forest
  std::vector<bool> broken_;         // by member
};

}  // namespace

Elements exchanged_elements(const std::vector<PeerTransfer>& transfers) {
  const bool sends = std::ranges::any_of(transfers, &PeerTransfer::sends);
  return total(transfers, sends);
}

void tell_exchange(std::uint32_t rank, std::uint32_t world, const std::vector<PeerTransfer>& transfers,
                   TraceCollective& c) {
  if (transfers.empty()) return;
  const Elements sent = total(transfers, true);
  const Elements received = total(transfers, false);
  const std::uint32_t peer = transfers.front().peer;
  const bool sends = std::ranges::any_of(transfers, &PeerTransfer::sends);
  const bool both = sends && !std::ranges::all_of(transfers, &PeerTransfer::sends);
  c.elements = sends ? sent : received;
  if (std::ranges::all_of(transfers, [&](const PeerTransfer& t) { return t.peer == peer; })) {
    be_of({std::min(rank, peer), std::max(rank, peer)}, c);
    if (!both) {
      c.kind = CollectiveKind::send_receive;
      c.first = (rank < peer) == sends ? 0 : 1;
    } else if (sent == received) {
      c.kind = CollectiveKind::shift;
    } else {
      c.elements = input_of_all_to_all(sent, 2);
    }
    return;
  }
  const auto to = only_peer(transfers, true);
  const auto from = only_peer(transfers, false);
  if (!to || !from || sent != received) return;
  const bool listed = !c.group_ranks.empty();
  const auto place = [&](std::uint32_t of) { return listed ? place_of(c.group_ranks, of) : of; };
  const std::uint32_t size = c.group_size;
  if (size < 2 || (!listed && size != world) || std::max({place(rank), place(*to), place(*from)}) >= size) return;
  const std::uint32_t on = places_on(place(rank), place(*to), size);
  if (on != places_on(place(*from), place(rank), size)) return;
  c.kind = CollectiveKind::shift;
  c.distance = on;
}

void join_exchanges(const std::vector<std::vector<PeerKernel>>& kernels, Trace& trace) {
  Joiner(kernels, trace).join();
}

}  // namespace weft
