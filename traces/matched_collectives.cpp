#include "traces/matched_collectives.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "traces/launch_position.h"

namespace weft {
namespace {

// A group in an iteration, or where none was recorded the kind; of a send_receive also who sends.
using GroupKey = std::tuple<std::string, std::string, std::vector<std::uint32_t>, std::optional<CollectiveKind>,
                            std::optional<std::uint32_t>>;

GroupKey group_of(const TraceRank& rank, const TraceOp& op) {
  const TraceCollective& c = *op.collective;
  const bool known = !c.group_name.empty() || !c.group_ranks.empty();
  return {op.iteration ? rank.iterations[*op.iteration].name : "", c.group_name, c.group_ranks,
          known ? std::nullopt : std::optional(c.kind),
          c.kind == CollectiveKind::send_receive ? c.first : std::nullopt};
}

class Matcher {
 public:
  explicit Matcher(const Trace& trace) : trace_(trace), ends_(trace.ranks.size()) {
    out_.waiting.resize(trace.ranks.size());
    out_.clock_offset.resize(trace.ranks.size());
  }

  MatchedCollectives match() {
    std::map<std::pair<GroupKey, std::uint32_t>, std::vector<MatchedCollective::Member>> meetings;
    find_users();
    for (std::size_t r = 0; r < trace_.ranks.size(); ++r) {
      std::map<GroupKey, std::uint32_t> numbers;
      const std::vector<TraceOp>& ops = trace_.ranks[r].ops;
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        if (ops[i].kind != TraceOpKind::collective) continue;
        const GroupKey group = group_of(trace_.ranks[r], ops[i]);
        meetings[{group, numbers[group]++}].push_back({r, i});
      }
    }
    for (auto& [key, members] : meetings) {
      if (members.size() > 1 && members.size() == recorded_ranks(key.first) && same_kind(members) && fit(members))
        add(key.first, std::move(members));
      else
        out_.unmatched += members.size();
    }
    std::stable_sort(out_.matched.begin(), out_.matched.end(),
                     [&](const auto& a, const auto& b) { return op(a.members[0]).start < op(b.members[0]).start; });
    for (std::size_t r = 0; r < ends_.size(); ++r)
      if (!ends_[r].empty()) out_.clock_offset[r] = median(std::move(ends_[r]));
    return std::move(out_);
  }

 private:
  [[nodiscard]] const TraceOp& op(const MatchedCollective::Member& m) const { return trace_.ranks[m.rank].ops[m.op]; }

  // Of groups that have a name but no list of ranks: those that use it.
  void find_users() {
    for (std::size_t r = 0; r < trace_.ranks.size(); ++r)
      for (const TraceOp& op : trace_.ranks[r].ops)
        if (op.kind == TraceOpKind::collective && op.collective->group_ranks.empty())
          users_[op.collective->group_name].insert(r);
  }

  [[nodiscard]] std::size_t recorded_ranks(const GroupKey& key) const {
    const std::string& name = std::get<1>(key);
    const std::vector<std::uint32_t>& group = std::get<2>(key);
    if (group.empty()) return name.empty() ? trace_.ranks.size() : users_.at(name).size();
    return static_cast<std::size_t>(std::count_if(trace_.ranks.begin(), trace_.ranks.end(), [&](const TraceRank& rank) {
      return std::find(group.begin(), group.end(), rank.rank) != group.end();
    }));
  }

  [[nodiscard]] bool same_kind(const std::vector<MatchedCollective::Member>& members) const {
    return std::all_of(members.begin(), members.end(),
                       [&](const auto& m) { return op(m).collective->kind == op(members[0]).collective->kind; });
  }

  // Several groups of one name are more than one has room for.
  [[nodiscard]] bool fit(const std::vector<MatchedCollective::Member>& members) const {
    return std::all_of(members.begin(), members.end(), [&](const auto& m) {
      const std::uint32_t size = op(m).collective->group_size;
      return size == 0 || members.size() <= size;
    });
  }

  void add(const GroupKey& key, std::vector<MatchedCollective::Member> members) {
    MatchedCollective c;
    c.iteration = std::get<0>(key);
    c.group = std::get<1>(key);
    c.kind = op(members[0]).collective->kind;
    std::vector<Time> starts, ends, durations;
    for (const auto& m : members) {
      starts.push_back(op(m).start);
      ends.push_back(op(m).start + op(m).duration);
      durations.push_back(op(m).duration);
    }
    const auto spread = [](const std::vector<Time>& times) {
      const auto [first, last] = std::minmax_element(times.begin(), times.end());
      return *last - *first;
    };
    c.start_spread = spread(starts);
    c.end_spread = spread(ends);
    c.shortest = *std::min_element(durations.begin(), durations.end());
    c.longest = *std::max_element(durations.begin(), durations.end());
    c.median = median(durations);
    const Time end = median(ends);
    for (std::size_t i = 0; i < members.size(); ++i) {
      out_.waiting[members[i].rank] += durations[i] - c.shortest;
      if (ends_at_once(c.kind)) ends_[members[i].rank].push_back(ends[i] - end);
    }
    c.members = std::move(members);
    out_.matched.push_back(std::move(c));
  }

  const Trace& trace_;
  MatchedCollectives out_;
  std::map<std::string, std::set<std::size_t>> users_;  // by name of a group without a list
  std::vector<std::vector<Time>> ends_;                 // by rank, after the median end
};

}  // namespace

bool ends_everywhere(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::barrier:
      return true;
    default:
      return false;
  }
}

bool ends_at_once(CollectiveKind kind) { return ends_everywhere(kind) && kind != CollectiveKind::all_to_all; }

MatchedCollectives match_collectives(const Trace& trace) { return Matcher(trace).match(); }

}  // namespace weft
