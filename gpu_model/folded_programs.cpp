#include "gpu_model/folded_programs.h"

#include <algorithm>

#include "sim/error.h"

namespace weft {

namespace {

// Of each group of warps, so many phases are compared on all ranks before the run; in the run all are, with one rank.
constexpr std::size_t kComparedPhases = 256;

using Ranks = std::vector<std::shared_ptr<const BlockPrograms>>;

bool talks(Target target) { return target == Target::remote; }

// The place in the group of the GPU that a stream or post goes to.
std::uint32_t rank_of(const GpuGroup& group, std::uint16_t gpu) {
  const auto at = std::lower_bound(group.begin(), group.end(), GpuId{gpu});
  return static_cast<std::uint32_t>(at - group.begin());
}

// Whether rank `r` does what rank 0 does, to the ranks that stand to it as rank 0's to rank 0.
class Likeness {
 public:
  Likeness(const GpuGroup& group, std::uint32_t r)
      : group_(&group), r_(r), n_(static_cast<std::uint32_t>(group.size())) {}

  [[nodiscard]] bool of(const Phase& own, const Phase& other) const {
    if (own.load_count != other.load_count || own.store_count != other.store_count ||
        own.wait_count != other.wait_count || own.post_count != other.post_count || own.rounds != other.rounds ||
        own.stages != other.stages || own.compute != other.compute || own.fence != other.fence ||
        own.delay != other.delay || own.fenced != other.fenced) {
      return false;
    }
    for (std::size_t i = 0; i < own.load_count; ++i) {
      if (!streams(own.loads.at(i), other.loads.at(i))) return false;
    }
    for (std::size_t i = 0; i < own.store_count; ++i) {
      if (!streams(own.stores.at(i), other.stores.at(i))) return false;
    }
    for (std::size_t i = 0; i < own.wait_count; ++i) {
      if (own.waits.at(i).value != other.waits.at(i).value) return false;
    }
    for (std::size_t i = 0; i < own.post_count; ++i) {
      const FlagPost& a = own.posts.at(i);
      const FlagPost& b = other.posts.at(i);
      if (a.target != b.target || !peers(a.target, a.gpu, b.gpu)) return false;
      if (a.target == Target::launch) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] bool peers(Target target, std::uint16_t own, std::uint16_t other) const {
    return !talks(target) || (rank_of(*group_, own) + r_) % n_ == rank_of(*group_, other);
  }
  [[nodiscard]] bool streams(const LineStream& own, const LineStream& other) const {
    return own.lines == other.lines && own.target == other.target && own.adds == other.adds &&
           own.first_sectors == other.first_sectors && own.last_sectors == other.last_sectors &&
           own.arrived_before == other.arrived_before && own.target != Target::tree &&
           (own.arrival_flag == kNoFlag) == (other.arrival_flag == kNoFlag) && peers(own.target, own.gpu, other.gpu);
  }

  const GpuGroup* group_;
  std::uint32_t r_, n_;
};

struct FoldedPlan {
  Ranks ranks;
  GpuGroup group;
  std::uint16_t multicast = 0;              // the number of the first of these:
  std::vector<MulticastImages> multicasts;  // by stride
};

class FoldedCursor final : public PhaseCursor {
 public:
  FoldedCursor(const FoldedPlan& plan, std::uint32_t block, std::uint32_t warps)
      : plan_(&plan),
        block_(block),
        warps_(warps),
        own_(plan.ranks.front()->start(block, warps)),
        others_(plan.ranks.size()) {}

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
    auto copy = std::make_unique<FoldedCursor>(*plan_, block_, warps_);
    copy->own_ = own_->clone();
    copy->taken_ = taken_;
    for (std::size_t r = 0; r < others_.size(); ++r) {
      if (others_[r].cursor == nullptr) continue;
      copy->others_[r] = {others_[r].cursor->clone(), others_[r].phase, others_[r].taken};
    }
    return copy;
  }

 private:
  struct Other {
    std::unique_ptr<PhaseCursor> cursor;
    Phase phase;
    std::uint64_t taken = 0;
  };

  // The number of the multicasts that are as far from those of the next rank.
  template <class Streams>
  std::uint16_t multicast_of(const Phase& own, Streams streams, std::size_t i) {
    const LineAddress first = (own.*streams).at(i).first;
    const std::int64_t stride = std::int64_t{(of_rank(own, 1).*streams).at(i).first} - first;
    for (std::size_t m = 0; m < plan_->multicasts.size(); ++m) {
      const MulticastImages& images = plan_->multicasts[m];
      if (images.stride == stride) return static_cast<std::uint16_t>(plan_->multicast + m);
    }
    WEFT_CHECK((own.*streams).at(i).lines == 0, "a multicast that was not seen when ranks were compared");
    return plan_->multicast;
  }

  // The phase of the rank to which rank 0 is what `gpu` is to rank 0.
  const Phase& image(const Phase& own, std::uint16_t gpu) {
    const auto n = static_cast<std::uint32_t>(plan_->ranks.size());
    return of_rank(own, (n - rank_of(plan_->group, gpu)) % n);
  }

  // Its phase at the same place.
  const Phase& of_rank(const Phase& own, std::uint32_t rank) {
    Other& other = others_.at(rank);
    if (other.taken == taken_) return other.phase;
    if (other.cursor == nullptr) other.cursor = plan_->ranks[rank]->start(block_, warps_);
    for (; other.taken < taken_; ++other.taken) {
      WEFT_CHECK(other.cursor->next(other.phase), "folded ranks have the same phases");
    }
    WEFT_CHECK(Likeness(plan_->group, rank).of(own, other.phase), "folded ranks do the same");
    return other.phase;
  }

  const FoldedPlan* plan_;
  std::uint32_t block_, warps_;
  std::unique_ptr<PhaseCursor> own_;
  std::vector<Other> others_;  // by rank, those that are asked for
  std::uint64_t taken_ = 0;
};

class FoldedPrograms final : public BlockPrograms {
 public:
  explicit FoldedPrograms(FoldedPlan plan) : plan_(std::move(plan)) {}
  [[nodiscard]] std::uint32_t blocks() const override { return own().blocks(); }
  [[nodiscard]] std::uint32_t groups(std::uint32_t block) const override { return own().groups(block); }
  [[nodiscard]] std::uint32_t lines_in_flight(std::uint32_t block, std::uint32_t group) const override {
    return own().lines_in_flight(block, group);
  }
  [[nodiscard]] std::unique_ptr<PhaseCursor> start(std::uint32_t block, std::uint32_t group) const override {
    return std::make_unique<FoldedCursor>(plan_, block, group);
  }

 private:
  [[nodiscard]] const BlockPrograms& own() const { return *plan_.ranks.front(); }

  FoldedPlan plan_;
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

// False: they are not at equal distances from rank to rank.
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

// All ranks side by side.
bool alike(const Ranks& ranks, const GpuGroup& group, std::uint32_t block, std::uint32_t warps,
           std::vector<MulticastImages>& multicasts) {
  std::vector<std::unique_ptr<PhaseCursor>> cursors;
  for (const auto& rank : ranks) {
    if (rank->blocks() <= block || rank->groups(block) <= warps) return false;
    cursors.push_back(rank->start(block, warps));
  }
  std::vector<Phase> phases(ranks.size());
  for (std::size_t taken = 0;; ++taken) {
    // All ranks at first; then those two by which multicasts are told apart, if there are any.
    const std::size_t compared = taken < kComparedPhases ? ranks.size() : 2;
    if (taken >= kComparedPhases && multicasts.empty()) return true;
    const bool goes_on = cursors.front()->next(phases.front());
    for (std::uint32_t r = 1; r < compared; ++r) {
      if (cursors[r]->next(phases[r]) != goes_on) return false;
      if (goes_on && !Likeness(group, r).of(phases.front(), phases[r])) return false;
    }
    if (!goes_on) return true;
    const Phase& own = phases.front();
    if (!note_multicasts(phases, &Phase::loads, own.load_count, compared, multicasts)) return false;
    if (!note_multicasts(phases, &Phase::stores, own.store_count, compared, multicasts)) return false;
  }
}

}  // namespace

std::optional<FoldedRank> fold_ranks(const std::vector<ScriptedKernel>& ranks, const GpuGroup& group,
                                     std::uint16_t multicast) {
  Ranks programs;
  for (const ScriptedKernel& rank : ranks) {
    if (rank.programs == nullptr || !rank.launched.empty() || rank.blocks() != ranks.front().blocks())
      return std::nullopt;
    programs.push_back(rank.programs);
  }
  FoldedRank folded{ranks.front(), {}};
  for (std::uint32_t block = 0; block < programs.front()->blocks(); ++block) {
    for (std::uint32_t warps = 0; warps < programs.front()->groups(block); ++warps) {
      if (!alike(programs, group, block, warps, folded.multicasts)) return std::nullopt;
    }
  }
  folded.kernel.programs =
      std::make_shared<FoldedPrograms>(FoldedPlan{std::move(programs), group, multicast, folded.multicasts});
  return folded;
}

}  // namespace weft
