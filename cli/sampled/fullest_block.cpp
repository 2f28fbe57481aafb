#include "cli/sampled/fullest_block.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace weft {

namespace {
// So many ranks are asked what they store; on a ring, all come to all parts of a channel's share.
constexpr std::size_t kAskedRanks = 16;
}  // namespace

Fullest fullest_of(const CollectivePlan& plan) {
  std::vector<std::int64_t> stored(plan.ranks.front().programs->blocks(), 0);
  std::vector<std::vector<std::int64_t>> longest_at(stored.size());  // by block and phase
  std::int64_t longest = 0;
  std::int64_t most_phases = 0;
  std::int64_t all_sent = 0;
  for (std::size_t r = 0; r < std::min(plan.ranks.size(), kAskedRanks); ++r) {
    const ScriptedKernel& rank = plan.ranks[r];
    for (std::uint32_t block = 0; block < rank.programs->blocks(); ++block) {
      for (std::uint32_t group = 0; group < rank.programs->groups(block); ++group) {
        const auto cursor = rank.programs->start(block, group);
        std::int64_t phases = 0;
        for (Phase phase; cursor->next(phase);) {
          std::int64_t sent = 0;
          for (std::uint32_t s = 0; s < phase.store_count; ++s) {
            stored.at(block) += phase.stores[s].lines;
            if (phase.stores[s].target != Target::local) sent += phase.stores[s].lines;
          }
          if (sent == 0) continue;
          longest = std::max(longest, sent);
          std::vector<std::int64_t>& at = longest_at[block];
          const auto phase_number = static_cast<std::size_t>(phases++);
          if (at.size() <= phase_number) at.push_back(0);
          at[phase_number] = std::max(at[phase_number], sent);
          all_sent += sent;
        }
        most_phases = std::max(most_phases, phases);
      }
    }
  }
  const auto all = std::accumulate(stored.begin(), stored.end(), std::int64_t{0});
  const std::int64_t fullest = *std::ranges::max_element(stored);
  if (all == 0 || all_sent == 0) return {};
  const double asked = static_cast<double>(std::min(plan.ranks.size(), kAskedRanks) * stored.size());
  std::int64_t in_step = 0;
  for (const std::vector<std::int64_t>& at : longest_at) {
    in_step = std::max(in_step, std::accumulate(at.begin(), at.end(), std::int64_t{0}));
  }
  return {static_cast<double>(fullest) * static_cast<double>(stored.size()) / static_cast<double>(all),
          static_cast<double>(longest * most_phases) * asked / static_cast<double>(all_sent),
          static_cast<double>(in_step) * asked / static_cast<double>(all_sent), longest};
}

}  // namespace weft
