#include "gpu_model/folded_programs.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "gpu_model/phase_likeness.h"
#include "sim/error.h"

namespace weft {

namespace {

// Of each group of warps, so many phases are compared on all ranks before the run, of many ranks fewer, and all others,
// where the last shares of a message may be smaller, on a few; in the run all are, with those that the rank's packets
// stand for.
constexpr std::size_t kComparedPhases = 256;
constexpr std::size_t kComparedOfMany = 64;
constexpr std::size_t kMany = 256;

using Ranks = std::vector<std::shared_ptr<const BlockPrograms>>;

struct FoldedPlan {
  Ranks ranks;
  RankSymmetry by;
  std::uint16_t multicast = 0;              // the number of the first of these:
  std::vector<MulticastImages> multicasts;  // by stride
};

class FoldedCursor final : public PhaseCursor {
 public:
  FoldedCursor(const FoldedPlan& plan, std::uint32_t rank, std::uint32_t block, std::uint32_t warps)
      : plan_(&plan), rank_(rank), block_(block), warps_(warps), own_(plan.ranks[rank]->start(block, warps)) {}

  bool next(Phase& phase) override {
    if (!own_->next(phase)) return false;
    ++taken_;
    for (std::size_t i = 0; i < phase.load_count; ++i) {
      LineStream& load = phase.loads.at(i);
      if (talks(load.target)) load.first = image(phase, load.gpu).loads.at(i).first;
      if (load.target == Target::multicast) load.gpu = multicast_of(phase, &Phase::loads, i);
    }
    for (std::size_t i = 0; i < phase.store_count; ++i) {
      LineStream& store = phase.stores.at(i);
      if (store.target == Target::multicast) store.gpu = multicast_of(phase, &Phase::stores, i);
      if (!talks(store.target)) continue;
      const LineStream& other = image(phase, store.gpu).stores.at(i);
      store.first = other.first;
      store.arrival_flag = other.arrival_flag;
    }
    for (std::size_t i = 0; i < phase.post_count; ++i) {
      FlagPost& post = phase.posts.at(i);
      if (talks(post.target)) post.flag = image(phase, post.gpu).posts.at(i).flag;
      if (post.target == Target::multicast) post.gpu = plan_->multicast;
    }
    return true;
  }

  [[nodiscard]] std::unique_ptr<PhaseCursor> clone() const override {
    auto copy = std::make_unique<FoldedCursor>(*plan_, rank_, block_, warps_);
    copy->own_ = own_->clone();
    copy->taken_ = taken_;
    for (const Other& other : others_)
      copy->others_.push_back({other.gpu, other.renaming, other.cursor->clone(), other.phase, other.taken});
    return copy;
  }

 private:
  struct Other {
    std::uint16_t gpu = 0;  // that it sends to where another one sends to it
    Renaming renaming;
    std::unique_ptr<PhaseCursor> cursor;
    Phase phase;
    std::uint64_t taken = 0;
  };

  // The number of the multicasts that are as far from those of the next rank.
  template <class Streams>
  std::uint16_t multicast_of(const Phase& own, Streams streams, std::size_t i) {
    if (plan_->by.standing > 1) return plan_->multicast;
    const LineAddress first = (own.*streams).at(i).first;
    const Phase& next = image(own, static_cast<std::uint16_t>(plan_->by.per_node - 1));  // of its node, rank 0 is next
    const std::int64_t stride = std::int64_t{(next.*streams).at(i).first} - first;
    for (std::size_t m = 0; m < plan_->multicasts.size(); ++m) {
      const MulticastImages& images = plan_->multicasts[m];
      if (images.stride == stride) return static_cast<std::uint16_t>(plan_->multicast + m);
    }
    WEFT_CHECK((own.*streams).at(i).lines == 0, "a multicast that was not seen when ranks were compared");
    return plan_->multicast;
  }

  // The phase at the same place of the rank to which this one is what `gpu` is to the one that is simulated for it.
  const Phase& image(const Phase& own, std::uint16_t gpu) {
    if (gpu < plan_->by.standing) return own;
    auto at = std::ranges::find(others_, gpu, &Other::gpu);
    if (at == others_.end()) {
      const Renaming renaming(plan_->by, gpu, block_);
      const auto& rank = plan_->ranks[renaming.rank_before(rank_) / plan_->by.apart];
      at = others_.insert(at, {gpu, renaming, rank->start(renaming.block_before(block_), warps_), Phase(), 0});
    }
    if (at->taken == taken_) return at->phase;
    for (; at->taken < taken_; ++at->taken) {
      WEFT_CHECK(at->cursor->next(at->phase), "folded ranks have the same phases");
    }
    WEFT_CHECK(Likeness(at->renaming).of(at->phase, own), "folded ranks do the same");
    return at->phase;
  }

  const FoldedPlan* plan_;
  std::uint32_t rank_, block_, warps_;
  std::unique_ptr<PhaseCursor> own_;
  std::vector<Other> others_;  // those that are asked for
  std::uint64_t taken_ = 0;
};

class FoldedPrograms final : public BlockPrograms {
 public:
  FoldedPrograms(std::shared_ptr<const FoldedPlan> plan, std::uint32_t rank) : plan_(std::move(plan)), rank_(rank) {}
  [[nodiscard]] std::uint32_t blocks() const override { return own().blocks(); }
  [[nodiscard]] std::uint32_t groups(std::uint32_t block) const override { return own().groups(block); }
  [[nodiscard]] std::uint32_t lines_in_flight(std::uint32_t block, std::uint32_t group) const override {
    return own().lines_in_flight(block, group);
  }
  [[nodiscard]] bool by_nic(std::uint32_t block, std::uint32_t group) const override {
    return own().by_nic(block, group);
  }
  [[nodiscard]] std::unique_ptr<PhaseCursor> start(std::uint32_t block, std::uint32_t group) const override {
    return std::make_unique<FoldedCursor>(*plan_, rank_, block, group);
  }

 private:
  [[nodiscard]] const BlockPrograms& own() const { return *plan_->ranks[rank_]; }

  std::shared_ptr<const FoldedPlan> plan_;
  std::uint32_t rank_;
};

// Notes where multicasts of rank 0 go whose counterparts of the next rank go `stride` further.
void note_multicast(const LineStream& own, std::int64_t stride, std::vector<MulticastImages>& found) {
  for (MulticastImages& images : found) {
    if (images.stride != stride) continue;
    images.first = std::min(images.first, own.first);
    images.end = std::max(images.end, own.first + own.lines);
    return;
  }
  found.push_back({own.first, own.first + own.lines, stride});
}

// False: they are not at equal distances from rank to rank of a node.
template <class Streams>
bool note_multicasts(const std::vector<Phase>& phases, Streams streams, std::size_t count, std::size_t ranks,
                     std::vector<MulticastImages>& found) {
  for (std::size_t i = 0; i < count; ++i) {
    const LineStream& own = (phases.front().*streams).at(i);
    if (own.target != Target::multicast || own.lines == 0) continue;
    const std::int64_t stride = std::int64_t{(phases[1].*streams).at(i).first} - own.first;
    for (std::size_t r = 2; r < ranks; ++r) {
      const std::int64_t distance = std::int64_t{(phases[r].*streams).at(i).first} - own.first;
      if (distance != stride * static_cast<std::int64_t>(r)) return false;
    }
    note_multicast(own, stride, found);
  }
  return true;
}

// How far apart in nodes, and whether at other places, those are that a rank talks to.
class Distances {
 public:
  Distances(const RankSymmetry& by, FoldedRanks& folded) : by_(&by), folded_(&folded) {}
  void note(std::uint32_t rank, std::uint32_t block, const Phase& phase) {
    for (std::size_t i = 0; i < phase.load_count; ++i) note_data(rank, block, phase.loads.at(i));
    for (std::size_t i = 0; i < phase.store_count; ++i) note_data(rank, block, phase.stores.at(i));
    for (std::size_t i = 0; i < phase.post_count; ++i) note(rank, phase.posts.at(i).target, phase.posts.at(i).gpu);
  }

 private:
  void note_data(std::uint32_t rank, std::uint32_t block, const LineStream& data) {
    note(rank, data.target, data.gpu);
    if (rank > 0 || !talks(data.target) || std::pair<std::uint32_t, std::uint32_t>(block, data.gpu) == last_) return;
    last_ = {block, data.gpu};
    folded_->receivers.insert(data.gpu);
    folded_->senders.insert(Renaming(*by_, data.gpu, block).rank_before(0));
  }
  void note(std::uint32_t rank, Target target, std::uint32_t peer) {
    if (!talks(target)) return;
    const std::uint32_t nodes = by_->ranks / by_->per_node;
    const std::uint32_t ahead = (peer / by_->per_node + nodes - rank / by_->per_node) % nodes;
    if (ahead == 0) return;
    folded_->farthest = std::max(folded_->farthest, std::min(ahead, nodes - ahead));
    const std::uint32_t place = peer % by_->per_node;
    folded_->changes_place = folded_->changes_place || place != rank % by_->per_node;
    std::uint32_t& pair = folded_->pair_of_place[rank];
    folded_->many_pairs = folded_->many_pairs || (pair != FoldedRanks::kNobody && pair != place);
    pair = place;
  }

  const RankSymmetry* by_;
  FoldedRanks* folded_;
  std::pair<std::uint32_t, std::uint32_t> last_{~0U, 0};  // block and peer
};

// All ranks side by side: each by its renaming of the one that stands for it.
bool alike(const Ranks& ranks, const RankSymmetry& by, std::uint32_t block, std::uint32_t warps, FoldedRanks& folded) {
  std::vector<Renaming> renamings;
  std::vector<std::unique_ptr<PhaseCursor>> cursors;  // null: its block has no such group
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    const std::uint32_t its = renamings.emplace_back(by, r * by.apart, block).block(block);
    if (ranks[r]->blocks() <= std::max(block, its)) return false;
    cursors.push_back(warps < ranks[r]->groups(its) ? ranks[r]->start(its, warps) : nullptr);
  }
  Distances distances(by, folded);
  const std::size_t most = ranks.size() < kMany ? kComparedPhases : kComparedOfMany;
  std::vector<std::uint32_t> compared(ranks.size());
  std::iota(compared.begin(), compared.end(), 0U);
  std::vector<Phase> phases(ranks.size());
  std::vector<bool> goes_on(ranks.size());
  for (std::size_t taken = 0;; ++taken) {
    if (taken == most) compared = few_of(by);
    for (const std::uint32_t r : compared) {
      goes_on[r] = cursors[r] != nullptr && cursors[r]->next(phases[r]);
      if (r < by.standing) continue;
      const std::uint32_t before = renamings[r].rank_before(r * by.apart) / by.apart;
      if (goes_on[r] != goes_on[before]) return false;
      if (goes_on[r] && !Likeness(renamings[r]).of(phases[before], phases[r])) return false;
    }
    bool any = false;
    for (std::uint32_t r = 0; r < by.standing; ++r) {
      if (!goes_on[r]) continue;
      any = true;
      distances.note(r, block, phases[r]);
    }
    if (!any) return true;
    if (by.standing > 1) continue;  // all of a node are there
    const Phase& own = phases.front();
    // By multicasts of their node; of few ranks, the first two.
    const std::size_t reached = std::min<std::size_t>(taken < most ? ranks.size() : 2, by.per_node);
    if (!note_multicasts(phases, &Phase::loads, own.load_count, reached, folded.multicasts)) return false;
    if (!note_multicasts(phases, &Phase::stores, own.store_count, reached, folded.multicasts)) return false;
  }
}

std::uint32_t most_groups(const Ranks& ranks, std::uint32_t block, std::uint32_t standing) {
  std::uint32_t most = 0;
  for (std::uint32_t rank = 0; rank < standing; ++rank) most = std::max(most, ranks[rank]->groups(block));
  return most;
}

}  // namespace

std::optional<FoldedRanks> fold_ranks(const std::vector<ScriptedKernel>& ranks, const RankSymmetry& by,
                                      std::uint16_t multicast, bool known) {
  const auto plan = std::make_shared<FoldedPlan>(FoldedPlan{{}, by, multicast, {}});
  for (const ScriptedKernel& rank : ranks) {
    if (rank.programs == nullptr || !rank.launched.empty() || rank.blocks() != ranks.front().blocks())
      return std::nullopt;
    plan->ranks.push_back(rank.programs);
  }
  const std::uint32_t turned =
      by.alternating ? by.per_node : (by.two_trees ? 2 : 1) * (by.trees_of_places ? by.per_node : 1);
  if (ranks.front().blocks() % turned != 0) return std::nullopt;
  FoldedRanks folded;
  folded.pair_of_place.assign(by.standing, FoldedRanks::kNobody);
  for (std::uint32_t block = 0; block < ranks.front().blocks() && !known; ++block) {
    const std::uint32_t groups = most_groups(plan->ranks, block, by.standing);
    for (std::uint32_t warps = 0; warps < groups; ++warps) {
      if (!alike(plan->ranks, by, block, warps, folded)) return std::nullopt;
    }
  }
  plan->multicasts = folded.multicasts;
  for (std::uint32_t rank = 0; rank < by.standing; ++rank) {
    folded.kernels.push_back(ranks[rank]);
    folded.kernels.back().programs = std::make_shared<FoldedPrograms>(plan, rank);
  }
  return folded;
}

}  // namespace weft
