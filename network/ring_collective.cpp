// A ring, with the steps of NCCL's Simple protocol (src/device/all_reduce.h, all_gather.h, reduce_scatter.h,
// broadcast.h, reduce.h): chunks travel round, slices of a chunk are passed on as soon as they have come.
#include "network/generated_schedule.h"
#include "network/schedule_generators.h"

namespace weft {

namespace {

bool has_root(CollectiveKind kind) { return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce; }

ChunkGrid ring_grid(const ScheduleRequest& request) {
  switch (request.kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter: {
      const std::int64_t whole = request.bytes * (request.kind == CollectiveKind::all_gather ? request.ranks : 1);
      return ChunkGrid::rank_parts(request, whole, request.ranks, part_stride_of(request), request.chunk_unit);
    }
    default:
      return ChunkGrid::free_parts(request, request.bytes, has_root(request.kind) ? 1 : request.ranks,
                                   request.chunk_unit, request.chunk_order);
  }
}

// A chunk has the number of the rank whose part it is, whatever the order of the ring.
class RingSchedule : public GeneratedSchedule {
 public:
  explicit RingSchedule(const ScheduleRequest& request) : GeneratedSchedule(request), grid_(ring_grid(request)) {
    const bool may_idle = request.kind == CollectiveKind::all_reduce && grid_.loops() > 0;
    // Loops before the last one are full.
    for (std::uint32_t channel = 0; channel < request.channels && may_idle && !idles_; ++channel) {
      idles_ = grid_.used_parts(grid_.loops() - 1, channel) < ranks();
    }
  }

  [[nodiscard]] std::uint64_t steps(std::uint32_t /*rank*/, std::uint32_t /*block*/,
                                    std::uint32_t /*group*/) const override {
    return grid_.loops() * visits() * grid_.slices();
  }

  [[nodiscard]] ScheduleStep step(std::uint32_t rank, std::uint32_t block, std::uint32_t /*group*/,
                                  std::uint64_t index) const override {
    const auto slice = static_cast<std::uint32_t>(index % grid_.slices());
    const auto visit = static_cast<std::uint32_t>(index / grid_.slices() % visits());
    const std::uint64_t loop = index / grid_.slices() / visits();
    const std::uint32_t part = chunk_at(rank, visit, block);
    const Piece piece = grid_.piece(loop, block, part, slice);
    if (piece.bytes == 0) return {};
    return has_root(request().kind) ? chain_step(rank, block, piece) : ring_step(rank, block, visit, piece);
  }

  // A short message leaves channels and chunks without bytes. In rank order, a rank comes to the parts one by one, from
  // its own downwards.
  [[nodiscard]] std::uint64_t skip_idle(std::uint32_t rank, std::uint32_t block, std::uint32_t /*group*/,
                                        std::uint64_t index) const override {
    if (!idles_) return index;
    const std::uint64_t loop = index / grid_.slices() / visits();
    const std::uint64_t loop_end = (loop + 1) * visits() * grid_.slices();
    const std::uint32_t used = grid_.used_parts(loop, block);
    if (used == 0) return loop_end;
    if (used == ranks() || request().ring_orders || request().alternate_directions) return index;
    const auto visit = static_cast<std::uint32_t>(index / grid_.slices() % visits());
    const std::uint32_t part = chunk_at(rank, visit, block);
    if (part < used) return index;
    return std::min(loop_end, (index / grid_.slices() + part + 1 - used) * grid_.slices());
  }

  [[nodiscard]] std::vector<std::uint32_t> sends_to(std::uint32_t rank, std::uint32_t block,
                                                    std::uint32_t /*group*/) const override {
    if (has_root(request().kind) && rank == previous(first_of_chain(block), block)) return {};
    return {next(rank, block)};
  }

 private:
  // The rank `distance` places further, at most all of them, in the direction of the block's ring.
  [[nodiscard]] std::uint32_t further(std::uint32_t rank, std::uint32_t distance, std::uint32_t block) const {
    if (request().alternate_directions && block % 2 == 1) distance = ranks() - distance;
    return request().ring_orders ? request().ring_orders->after(block, rank, distance) : after(rank, distance);
  }
  [[nodiscard]] std::uint32_t next(std::uint32_t rank, std::uint32_t block) const { return further(rank, 1, block); }
  [[nodiscard]] std::uint32_t previous(std::uint32_t rank, std::uint32_t block) const {
    return further(rank, ranks() - 1, block);
  }
  [[nodiscard]] std::uint32_t first_of_chain(std::uint32_t block) const {
    return request().kind == CollectiveKind::reduce ? next(request().root, block) : request().root;
  }

  // Chunks a rank touches in a loop.
  [[nodiscard]] std::uint32_t visits() const {
    if (has_root(request().kind)) return 1;
    return request().kind == CollectiveKind::all_reduce ? 2 * ranks() - 1 : ranks();
  }

  // Of an all_gather the rank's own part comes first, of reductions it comes when all others have added to it.
  [[nodiscard]] std::uint32_t chunk_at(std::uint32_t rank, std::uint32_t visit, std::uint32_t block) const {
    if (has_root(request().kind)) return 0;
    const std::uint32_t back = (request().kind == CollectiveKind::all_gather ? visit : visit + 1) % ranks();
    return further(rank, ranks() - back, block);
  }

  [[nodiscard]] ScheduleStep ring_step(std::uint32_t rank, std::uint32_t block, std::uint32_t visit,
                                       const Piece& piece) const {
    const bool gathers = request().kind == CollectiveKind::all_gather;
    const bool scatters = request().kind == CollectiveKind::reduce_scatter;
    const bool uses_input = gathers ? visit == 0 : visit < ranks();
    const bool keeps = gathers || visit + 1 >= ranks();
    ScheduleStep step{.bytes = piece.bytes};
    if (visit > 0) step.receive(previous(rank, block));
    if (uses_input) step.read(ScheduleBuffer::input, gathers ? piece.offset_in_part : piece.offset);
    if (keeps) step.write(ScheduleBuffer::output, scatters ? piece.offset_in_part : piece.offset);
    if (visit + 1 < visits()) step.send(next(rank, block));
    return step;
  }

  [[nodiscard]] ScheduleStep chain_step(std::uint32_t rank, std::uint32_t block, const Piece& piece) const {
    const bool reduces = request().kind == CollectiveKind::reduce;
    const std::uint32_t first = first_of_chain(block);
    const std::uint32_t last = previous(first, block);
    ScheduleStep step{.bytes = piece.bytes};
    if (rank != first) step.receive(previous(rank, block));
    if (reduces || rank == first) step.read(ScheduleBuffer::input, piece.offset);
    if (!reduces || rank == last) step.write(ScheduleBuffer::output, piece.offset);
    if (rank != last) step.send(next(rank, block));
    return step;
  }

  ChunkGrid grid_;
  bool idles_ = false;  // some chunks of an all-reduce have no bytes
};

}  // namespace

std::unique_ptr<CollectiveSchedule> make_ring(const ScheduleRequest& request) {
  return std::make_unique<RingSchedule>(request);
}

}  // namespace weft
