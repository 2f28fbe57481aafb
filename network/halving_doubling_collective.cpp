// Recursive vector halving and doubling (Thakur, Rabenseifner, Gropp: Optimization of Collective Communication
// Operations in MPICH, 2005): in each round a rank exchanges half of what it still has with its partner. An all-reduce
// takes the nearest partner first, when there is most to exchange (Rabenseifner), so positions are ranks with their
// bits reversed. Ranks beyond the largest power of two are folded: each gives its data to a rank of the core first and
// gets its result from it at the end. A step of an all-reduce carries as many neighbouring positions as a piece holds.
#include <bit>

#include "network/generated_schedule.h"
#include "network/schedule_generators.h"

namespace weft {

namespace {

// Positions a step carries: a power of two. Where positions have several pieces, one.
std::uint32_t positions_of_step(const ScheduleRequest& request, const ChunkGrid& grid, std::uint32_t core) {
  if (request.kind != CollectiveKind::all_reduce || grid.slices() > 1) return 1;
  return std::min(core, std::bit_floor(std::max(1U, grid.parts_of_piece())));
}

ChunkGrid grid_for(const ScheduleRequest& request) {
  if (request.kind == CollectiveKind::all_reduce) {
    return ChunkGrid::free_parts(request, request.bytes, std::bit_floor(request.ranks), ChunkGrid::kLineUnit);
  }
  const std::int64_t whole = request.bytes * (request.kind == CollectiveKind::all_gather ? request.ranks : 1);
  return ChunkGrid::rank_parts(request, whole, request.ranks, part_stride_of(request), ChunkGrid::kLineUnit);
}

// One group of warps sends, the other receives: else each piece would wait for the partner's one before. The sender
// waits for the receiver's step that made what it sends. A loop of a rank of the core is: fold (receive), halving,
// doubling, unfold (send); of a rank beyond it fold (send) and unfold (receive).
class HalvingDoublingSchedule : public GeneratedSchedule {
 public:
  explicit HalvingDoublingSchedule(const ScheduleRequest& request)
      : GeneratedSchedule(request),
        grid_(grid_for(request)),
        core_(std::bit_floor(request.ranks)),
        run_(positions_of_step(request, grid_, core_)),
        parts_per_position_(request.kind != CollectiveKind::all_reduce && core_ < request.ranks ? 2 : 1),
        partial_(request.kind == CollectiveKind::all_reduce ? ScheduleBuffer::output : ScheduleBuffer::scratch) {}

  [[nodiscard]] std::int64_t scratch_bytes(std::uint32_t /*rank*/) const override {
    return request().kind == CollectiveKind::reduce_scatter ? request().bytes : 0;
  }
  [[nodiscard]] std::uint32_t groups(std::uint32_t /*rank*/, std::uint32_t /*block*/) const override { return 2; }

  [[nodiscard]] std::uint64_t steps(std::uint32_t rank, std::uint32_t /*block*/, std::uint32_t group) const override {
    return grid_.loops() * steps_per_loop(rank, group);
  }

  [[nodiscard]] ScheduleStep step(std::uint32_t rank, std::uint32_t block, std::uint32_t group,
                                  std::uint64_t index) const override {
    const Place place{rank, block, index / steps_per_loop(rank, group), group == kSends};
    std::uint64_t item = index % steps_per_loop(rank, group);
    if (beyond_core(rank)) return place.sends ? fold(place, item) : unfold(place, item);
    if (!place.sends) {
      if (item < fold_steps(rank)) return fold(place, item);
      item -= fold_steps(rank);
    }
    if (item < halving_steps()) return halving(place, item);
    item -= halving_steps();
    return item < doubling_steps() ? doubling(place, item) : unfold(place, item - doubling_steps());
  }

  [[nodiscard]] std::vector<std::uint32_t> sends_to(std::uint32_t rank, std::uint32_t /*block*/,
                                                    std::uint32_t group) const override {
    std::vector<std::uint32_t> peers;
    if (group == kReceives) return peers;
    for (std::uint32_t bit = 1; bit < core_ && !beyond_core(rank); bit <<= 1U) peers.push_back(rank ^ bit);
    if (has_mate(rank)) peers.push_back(mate(rank));
    return peers;
  }
  [[nodiscard]] bool is_waited_for(std::uint32_t /*rank*/, std::uint32_t /*block*/,
                                   std::uint32_t group) const override {
    return group == kReceives;
  }

 private:
  static constexpr std::uint32_t kSends = 0;
  static constexpr std::uint32_t kReceives = 1;

  struct Place {
    std::uint32_t rank;
    std::uint32_t block;
    std::uint64_t loop;
    bool sends;
  };

  // Part of the message by its owner's position in the core; `layer` 1: of the rank folded into it.
  struct Part {
    std::uint32_t position;
    std::uint32_t layer;
    std::uint32_t slice;
    std::uint32_t positions = 1;  // from there on
  };
  // What one step of an exchange between the halves of 2 * `width` positions carries: those from `offset` on.
  struct Exchange {
    std::uint32_t width;
    std::uint32_t offset;
    std::uint32_t positions;
  };

  [[nodiscard]] bool gathers() const { return request().kind == CollectiveKind::all_gather; }
  [[nodiscard]] bool scatters() const { return request().kind == CollectiveKind::reduce_scatter; }
  [[nodiscard]] bool beyond_core(std::uint32_t rank) const { return rank >= core_; }
  [[nodiscard]] bool has_mate(std::uint32_t rank) const { return beyond_core(rank) || rank + core_ < ranks(); }
  [[nodiscard]] std::uint32_t mate(std::uint32_t rank) const { return beyond_core(rank) ? rank - core_ : rank + core_; }
  // The part that belongs to the pair's rank beyond the core.
  [[nodiscard]] std::uint32_t folded_part(std::uint32_t rank) const { return rank % core_ + core_; }
  [[nodiscard]] std::uint32_t parts() const { return request().kind == CollectiveKind::all_reduce ? core_ : ranks(); }

  [[nodiscard]] std::uint64_t fold_steps(std::uint32_t rank) const {
    return has_mate(rank) ? std::uint64_t{gathers() ? 1 : parts() / run_} * grid_.slices() : 0;
  }
  [[nodiscard]] std::uint64_t unfold_steps(std::uint32_t rank) const {
    return has_mate(rank) ? std::uint64_t{scatters() ? 1 : parts() / run_} * grid_.slices() : 0;
  }
  // Rounds exchange 1, 2, ... core/2 positions, or these the other way: at first each in one step, from `run_`
  // positions on in steps of so many.
  [[nodiscard]] std::uint32_t pieces_per_position() const { return parts_per_position_ * grid_.slices(); }
  [[nodiscard]] std::uint32_t small_rounds() const { return static_cast<std::uint32_t>(std::countr_zero(run_)); }
  [[nodiscard]] std::uint32_t exchanges() const { return small_rounds() + core_ / run_ - 1; }
  [[nodiscard]] std::uint64_t exchange_steps() const { return std::uint64_t{exchanges()} * pieces_per_position(); }
  // By its number when doubling; halving goes through the widths the other way, and through the steps of one this way.
  [[nodiscard]] Exchange doubling_exchange(std::uint32_t number) const {
    if (number < small_rounds()) return {1U << number, 0, 1U << number};
    const std::uint32_t step = number - small_rounds() + 1;
    const std::uint32_t steps = std::bit_floor(step);
    return {steps * run_, (step - steps) * run_, run_};
  }
  [[nodiscard]] Exchange halving_exchange(std::uint32_t number) const {
    const std::uint32_t runs = core_ / run_;
    if (number + 1 >= runs) {
      const std::uint32_t width = run_ >> (number + 2 - runs);
      return {width, 0, width};
    }
    const std::uint32_t steps = std::bit_ceil(runs - number) / 2;
    return {steps * run_, (number + 2 * steps - runs) * run_, run_};
  }
  // The number of the exchange of `width` that carries `position`.
  [[nodiscard]] std::uint32_t number_when_doubling(std::uint32_t width, std::uint32_t position) const {
    if (width < run_) return static_cast<std::uint32_t>(std::countr_zero(width));
    return small_rounds() + width / run_ - 1 + (position & (width - 1)) / run_;
  }
  [[nodiscard]] std::uint32_t number_when_halving(std::uint32_t width, std::uint32_t position) const {
    const std::uint32_t runs = core_ / run_;
    if (width < run_) return runs - 2 + small_rounds() - static_cast<std::uint32_t>(std::countr_zero(width));
    return runs - 2 * (width / run_) + (position & (width - 1)) / run_;
  }
  [[nodiscard]] std::uint64_t halving_steps() const { return gathers() ? 0 : exchange_steps(); }
  [[nodiscard]] std::uint64_t doubling_steps() const { return scatters() ? 0 : exchange_steps(); }
  [[nodiscard]] std::uint64_t steps_per_loop(std::uint32_t rank, std::uint32_t group) const {
    const bool folds = (group == kSends) == beyond_core(rank);
    const std::uint64_t with_mate = folds ? fold_steps(rank) : unfold_steps(rank);
    return with_mate + (beyond_core(rank) ? 0 : halving_steps() + doubling_steps());
  }

  // Its own inverse.
  [[nodiscard]] std::uint32_t position_of(std::uint32_t rank) const {
    if (request().kind != CollectiveKind::all_reduce) return rank;
    std::uint32_t reversed = 0;
    for (std::uint32_t bit = 1; bit < core_; bit <<= 1U) reversed = reversed << 1U | ((rank & bit) != 0 ? 1U : 0U);
    return reversed;
  }

  // The piece of an exchange, whose round begins at `first`: positions from there, each with its layers and slices.
  [[nodiscard]] Part part_of(std::uint64_t item, std::uint32_t first, std::uint32_t positions) const {
    const auto rest = static_cast<std::uint32_t>(item % pieces_per_position());
    return {first, rest / grid_.slices(), rest % grid_.slices(), positions};
  }
  [[nodiscard]] Piece piece_of(const Place& place, const Part& part) const {
    const std::uint32_t index = part.position + part.layer * core_;
    if (part.positions > 1) return grid_.pieces(place.loop, place.block, index, part.positions);
    return index < parts() ? grid_.piece(place.loop, place.block, index, part.slice) : Piece{};
  }

  // The step before which the receiver has done `item` of this loop.
  [[nodiscard]] ScheduleStep::After received(const Place& place, std::uint64_t item) const {
    return {place.block, kReceives, place.loop * steps_per_loop(place.rank, kReceives) + item + 1};
  }
  [[nodiscard]] std::uint64_t item_of(std::uint32_t exchange, const Part& part) const {
    return std::uint64_t{exchange} * pieces_per_position() + part.layer * grid_.slices() + part.slice;
  }
  // The round of halving that left `kept` positions made the partial sum of `part`.
  [[nodiscard]] ScheduleStep::After summed(const Place& place, const Part& part, std::uint32_t kept) const {
    if (kept == core_) {
      const std::uint32_t index = part.position + part.layer * core_;
      return received(place, std::uint64_t{index / run_} * grid_.slices() + part.slice);
    }
    return received(place, fold_steps(place.rank) + item_of(number_when_halving(kept, part.position), part));
  }

  void wait_until_held(const Place& place, const Part& part, ScheduleStep& step) const {
    const std::uint32_t own = position_of(place.rank);
    // Of several positions with the own one among them, half came last.
    const std::uint32_t differs = std::max((part.position ^ own) & ~(part.positions - 1), part.positions / 2);
    if (differs != 0) {
      const std::uint32_t exchange = number_when_doubling(std::bit_floor(differs), part.position);
      step.start_after(received(place, fold_steps(place.rank) + halving_steps() + item_of(exchange, part)));
    } else if (!gathers()) {
      step.start_after(summed(place, part, 1));
    } else if (part.layer == 1) {
      step.start_after(received(place, part.slice));
    }
  }

  [[nodiscard]] ScheduleStep halving(const Place& place, std::uint64_t item) const {
    const Exchange exchange = halving_exchange(static_cast<std::uint32_t>(item / pieces_per_position()));
    const std::uint32_t half = exchange.width;
    const std::uint32_t own = position_of(place.rank);
    const std::uint32_t kept = own & ~(half - 1);
    const Part part = part_of(item, (place.sends ? kept ^ half : kept) + exchange.offset, exchange.positions);
    const Piece piece = piece_of(place, part);
    if (piece.bytes == 0) return {};
    const std::uint32_t partner = position_of(own ^ half);
    const bool untouched = 2 * half == core_ && !has_mate(place.rank);
    const ScheduleBuffer source = untouched ? ScheduleBuffer::input : partial_;
    ScheduleStep step{.bytes = piece.bytes};
    if (place.sends) {
      if (!untouched) step.start_after(summed(place, part, 2 * half));
      return step.read(source, piece.offset).send(partner);
    }
    step.receive(partner);
    if (scatters() && half == 1 && part.layer == 0) {
      return step.read(source, piece.offset).write(ScheduleBuffer::output, piece.offset_in_part);
    }
    return untouched ? step.read(source, piece.offset).write(partial_, piece.offset)
                     : step.add_to(partial_, piece.offset);
  }

  [[nodiscard]] ScheduleStep doubling(const Place& place, std::uint64_t item) const {
    const Exchange exchange = doubling_exchange(static_cast<std::uint32_t>(item / pieces_per_position()));
    const std::uint32_t width = exchange.width;
    const std::uint32_t own = position_of(place.rank);
    const std::uint32_t held = own & ~(width - 1);
    const Part part = part_of(item, (place.sends ? held : held ^ width) + exchange.offset, exchange.positions);
    const Piece piece = piece_of(place, part);
    if (piece.bytes == 0) return {};
    const std::uint32_t partner = position_of(own ^ width);
    ScheduleStep step{.bytes = piece.bytes};
    if (!place.sends) return step.receive(partner).write(ScheduleBuffer::output, piece.offset);
    wait_until_held(place, part, step);
    if (gathers() && width == 1 && part.layer == 0) {
      step.read(ScheduleBuffer::input, piece.offset_in_part).write(ScheduleBuffer::output, piece.offset);
    } else {
      step.read(ScheduleBuffer::output, piece.offset);
    }
    return step.send(partner);
  }

  // The part, or the first of those, that is given to a mate and back.
  [[nodiscard]] std::uint32_t folded(const Place& place, std::uint64_t item, bool own_only) const {
    return own_only ? folded_part(place.rank) : static_cast<std::uint32_t>(item / grid_.slices()) * run_;
  }
  [[nodiscard]] Piece folded_piece(const Place& place, std::uint32_t part, std::uint32_t slice) const {
    return run_ > 1 ? grid_.pieces(place.loop, place.block, part, run_)
                    : grid_.piece(place.loop, place.block, part, slice);
  }

  [[nodiscard]] ScheduleStep fold(const Place& place, std::uint64_t item) const {
    const auto slice = static_cast<std::uint32_t>(item % grid_.slices());
    const Piece piece = folded_piece(place, folded(place, item, gathers()), slice);
    if (piece.bytes == 0) return {};
    ScheduleStep step{.bytes = piece.bytes};
    if (place.sends) {
      step.read(ScheduleBuffer::input, gathers() ? piece.offset_in_part : piece.offset).send(mate(place.rank));
      return gathers() ? step.write(ScheduleBuffer::output, piece.offset) : step;
    }
    step.receive(mate(place.rank));
    if (gathers()) return step.write(ScheduleBuffer::output, piece.offset);
    return step.read(ScheduleBuffer::input, piece.offset).write(partial_, piece.offset);
  }

  [[nodiscard]] ScheduleStep unfold(const Place& place, std::uint64_t item) const {
    const auto slice = static_cast<std::uint32_t>(item % grid_.slices());
    const std::uint32_t part = folded(place, item, scatters());
    const Piece piece = folded_piece(place, part, slice);
    if (piece.bytes == 0 || (gathers() && part == folded_part(place.rank))) return {};
    ScheduleStep step{.bytes = piece.bytes};
    const std::int64_t kept = scatters() ? piece.offset_in_part : piece.offset;
    if (!place.sends) return step.receive(mate(place.rank)).write(ScheduleBuffer::output, kept);
    wait_until_held(place, {part % core_, part / core_, slice, run_}, step);
    return step.read(scatters() ? partial_ : ScheduleBuffer::output, piece.offset).send(mate(place.rank));
  }

  ChunkGrid grid_;
  std::uint32_t core_;                // ranks: the largest power of two
  std::uint32_t run_;                 // positions of a step
  std::uint32_t parts_per_position_;  // 2 where a folded rank has a part of its own
  ScheduleBuffer partial_;            // where sums grow
};

}  // namespace

std::unique_ptr<CollectiveSchedule> make_halving_doubling(const ScheduleRequest& request) {
  if (request.kind == CollectiveKind::barrier) return make_dissemination_barrier(request);
  return std::make_unique<HalvingDoublingSchedule>(request);
}

}  // namespace weft
