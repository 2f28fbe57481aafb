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
      return ChunkGrid::rank_parts(request, whole, request.ranks, part_stride_of(request), ChunkGrid::kRingChunkUnit);
    }
    default:
      return ChunkGrid::free_parts(request, request.bytes, has_root(request.kind) ? 1 : request.ranks,
                                   ChunkGrid::kRingChunkUnit);
  }
}

// Positions number the ranks in the direction of the ring, from the one at which a chain begins.
class RingSchedule : public GeneratedSchedule {
 public:
  explicit RingSchedule(const ScheduleRequest& request) : GeneratedSchedule(request), grid_(ring_grid(request)) {}

  [[nodiscard]] std::uint64_t steps(std::uint32_t /*rank*/, std::uint32_t /*block*/,
                                    std::uint32_t /*group*/) const override {
    return grid_.loops() * visits() * grid_.slices();
  }

  [[nodiscard]] ScheduleStep step(std::uint32_t rank, std::uint32_t block, std::uint32_t /*group*/,
                                  std::uint64_t index) const override {
    const bool turned = is_turned(block);
    const auto slice = static_cast<std::uint32_t>(index % grid_.slices());
    const auto visit = static_cast<std::uint32_t>(index / grid_.slices() % visits());
    const std::uint64_t loop = index / grid_.slices() / visits();
    const std::uint32_t part = chunk_at(rank, visit, turned);
    const Piece piece = grid_.piece(loop, block, part, slice);
    if (piece.bytes == 0) return {};
    return has_root(request().kind) ? chain_step(rank, turned, piece) : ring_step(rank, turned, visit, piece);
  }

  [[nodiscard]] std::vector<std::uint32_t> sends_to(std::uint32_t rank, std::uint32_t block,
                                                    std::uint32_t /*group*/) const override {
    const bool turned = is_turned(block);
    if (has_root(request().kind) && rank == previous(first_of_chain(turned), turned)) return {};
    return {next(rank, turned)};
  }

 private:
  [[nodiscard]] bool is_turned(std::uint32_t block) const { return request().alternate_directions && block % 2 == 1; }
  [[nodiscard]] std::uint32_t first_of_chain(bool turned) const {
    return request().kind == CollectiveKind::reduce ? next(request().root, turned) : request().root;
  }
  [[nodiscard]] std::uint32_t next(std::uint32_t rank, bool turned) const {
    return turned ? before(rank, 1) : after(rank, 1);
  }
  [[nodiscard]] std::uint32_t previous(std::uint32_t rank, bool turned) const { return next(rank, !turned); }

  // Chunks a rank touches in a loop.
  [[nodiscard]] std::uint32_t visits() const {
    if (has_root(request().kind)) return 1;
    return request().kind == CollectiveKind::all_reduce ? 2 * ranks() - 1 : ranks();
  }

  // Of an all_gather the rank's own part comes first, of reductions it comes when all others have added to it.
  [[nodiscard]] std::uint32_t chunk_at(std::uint32_t rank, std::uint32_t visit, bool turned) const {
    if (has_root(request().kind)) return 0;
    const std::uint32_t back = (request().kind == CollectiveKind::all_gather ? visit : visit + 1) % ranks();
    return turned ? after(rank, back) : before(rank, back);
  }

  [[nodiscard]] ScheduleStep ring_step(std::uint32_t rank, bool turned, std::uint32_t visit, const Piece& piece) const {
    const bool gathers = request().kind == CollectiveKind::all_gather;
    const bool scatters = request().kind == CollectiveKind::reduce_scatter;
    const bool uses_input = gathers ? visit == 0 : visit < ranks();
    const bool keeps = gathers || visit + 1 >= ranks();
    ScheduleStep step{.bytes = piece.bytes};
    if (visit > 0) step.receive(previous(rank, turned));
    if (uses_input) step.read(ScheduleBuffer::input, gathers ? piece.offset_in_part : piece.offset);
    if (keeps) step.write(ScheduleBuffer::output, scatters ? piece.offset_in_part : piece.offset);
    if (visit + 1 < visits()) step.send(next(rank, turned));
    return step;
  }

  [[nodiscard]] ScheduleStep chain_step(std::uint32_t rank, bool turned, const Piece& piece) const {
    const bool reduces = request().kind == CollectiveKind::reduce;
    const std::uint32_t first = first_of_chain(turned);
    const std::uint32_t last = previous(first, turned);
    ScheduleStep step{.bytes = piece.bytes};
    if (rank != first) step.receive(previous(rank, turned));
    if (reduces || rank == first) step.read(ScheduleBuffer::input, piece.offset);
    if (!reduces || rank == last) step.write(ScheduleBuffer::output, piece.offset);
    if (rank != last) step.send(next(rank, turned));
    return step;
  }

  ChunkGrid grid_;
};

}  // namespace

std::unique_ptr<CollectiveSchedule> make_ring(const ScheduleRequest& request) {
  return std::make_unique<RingSchedule>(request);
}

}  // namespace weft
