#include "gpu_model/coarse_programs.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "gpu_model/coarse_gpu.h"

namespace weft {

namespace {

// Lines of the longest piece of a group of warps.
constexpr std::uint32_t kFewestOfPiece = 16;
constexpr std::size_t kPhasesSeen = 64;  // of each group of warps: more than a turn of any collective

void tell(LineStream& stream, std::uint32_t grain) {
  stream.first /= grain;
  stream.lines = (stream.lines + grain - 1) / grain;
  stream.first_sectors = stream.last_sectors = 15;
}

class CoarseCursor final : public PhaseCursor {
 public:
  CoarseCursor(std::unique_ptr<PhaseCursor> fine, std::uint32_t grain) : fine_(std::move(fine)), grain_(grain) {}
  bool next(Phase& phase) override {
    if (!fine_->next(phase)) return false;
    for (std::size_t i = 0; i < phase.load_count; ++i) tell(phase.loads.at(i), grain_);
    for (std::size_t i = 0; i < phase.store_count; ++i) tell(phase.stores.at(i), grain_);
    return true;
  }
  [[nodiscard]] std::unique_ptr<PhaseCursor> clone() const override {
    return std::make_unique<CoarseCursor>(fine_->clone(), grain_);
  }

 private:
  std::unique_ptr<PhaseCursor> fine_;
  std::uint32_t grain_;
};

class CoarsePrograms final : public BlockPrograms {
 public:
  CoarsePrograms(std::shared_ptr<const BlockPrograms> fine, std::uint32_t grain)
      : fine_(std::move(fine)), grain_(grain) {}
  [[nodiscard]] std::uint32_t blocks() const override { return fine_->blocks(); }
  [[nodiscard]] std::uint32_t groups(std::uint32_t block) const override { return fine_->groups(block); }
  [[nodiscard]] std::uint32_t lines_in_flight(std::uint32_t block, std::uint32_t group) const override {
    return (fine_->lines_in_flight(block, group) + grain_ - 1) / grain_;
  }
  [[nodiscard]] bool by_nic(std::uint32_t block, std::uint32_t group) const override {
    return fine_->by_nic(block, group);
  }
  [[nodiscard]] std::unique_ptr<PhaseCursor> start(std::uint32_t block, std::uint32_t group) const override {
    return std::make_unique<CoarseCursor>(fine_->start(block, group), grain_);
  }

 private:
  std::shared_ptr<const BlockPrograms> fine_;
  std::uint32_t grain_;
};

bool can_be_told(const LineStream& stream) {
  return stream.arrival_flag == kNoFlag && !stream.adds && !stream.atomic && stream.target != Target::tree;
}

// What a group of warps allows; none: it moves nothing.
std::uint32_t grain_of(const BlockPrograms& programs, std::uint32_t block, std::uint32_t group,
                       std::uint32_t most_outstanding, std::uint32_t fewest_sums) {
  const std::unique_ptr<PhaseCursor> cursor = programs.start(block, group);
  std::uint32_t piece = 0;
  std::uint32_t fewest = kFewestInFlight;
  Phase phase;
  for (std::size_t seen = 0; seen < kPhasesSeen && cursor->next(phase); ++seen, phase = Phase{}) {
    for (std::size_t i = 0; i < phase.load_count; ++i) {
      if (!can_be_told(phase.loads.at(i))) return 1;
      piece = std::max(piece, phase.loads.at(i).lines);
      if (phase.loads.at(i).target == Target::multicast) fewest = fewest_sums;
    }
    for (std::size_t i = 0; i < phase.store_count; ++i) {
      if (!can_be_told(phase.stores.at(i))) return 1;
      piece = std::max(piece, phase.stores.at(i).lines);
    }
    for (std::size_t i = 0; i < phase.post_count; ++i) {
      if (phase.posts.at(i).target == Target::launch) return 1;
    }
  }
  if (piece == 0) return kCoarsestGrain;
  const std::uint32_t in_flight = std::min(programs.lines_in_flight(block, group), most_outstanding);
  return std::min(piece / kFewestOfPiece, in_flight / fewest);
}

}  // namespace

std::shared_ptr<const BlockPrograms> coarse(std::shared_ptr<const BlockPrograms> programs, std::uint32_t grain) {
  if (programs == nullptr) return programs;
  return std::make_shared<CoarsePrograms>(std::move(programs), grain);
}

std::uint32_t coarsest_grain(const BlockPrograms& programs, std::uint32_t most_outstanding, std::uint32_t fewest_sums) {
  std::uint32_t grain = kCoarsestGrain;
  for (std::uint32_t block = 0; block < programs.blocks(); ++block) {
    for (std::uint32_t group = 0; group < programs.groups(block); ++group) {
      grain = std::min(grain, grain_of(programs, block, group, most_outstanding, fewest_sums));
    }
  }
  return std::bit_floor(std::max(1U, grain));
}

}  // namespace weft
