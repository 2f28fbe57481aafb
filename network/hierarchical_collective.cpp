// All-reduce in two levels: a ring reduces and scatters inside each node, rings between the ranks of one place in their
// nodes ("rails") all-reduce what each of them holds, a ring inside each node gathers. One group of warps works inside
// the node, another between nodes, so loop l is between nodes while l + 1 is reduced and l - 1 gathered.
#include "network/generated_schedule.h"
#include "network/schedule_generators.h"

namespace weft {

namespace {

class HierarchicalSchedule : public GeneratedSchedule {
 public:
  explicit HierarchicalSchedule(const ScheduleRequest& request)
      : GeneratedSchedule(request),
        grid_(ChunkGrid::free_parts(request, request.bytes, request.ranks, ChunkGrid::kLineUnit)),
        places_(request.ranks_per_node),
        nodes_(request.ranks / request.ranks_per_node) {}

  [[nodiscard]] std::uint32_t groups(std::uint32_t /*rank*/, std::uint32_t /*block*/) const override { return 2; }

  [[nodiscard]] std::uint64_t steps(std::uint32_t /*rank*/, std::uint32_t /*block*/,
                                    std::uint32_t group) const override {
    return group == kInside ? (grid_.loops() + 1) * 2 * half_round() : grid_.loops() * rail_steps_per_loop();
  }

  [[nodiscard]] ScheduleStep step(std::uint32_t rank, std::uint32_t block, std::uint32_t group,
                                  std::uint64_t index) const override {
    const Position at{rank, rank % places_, rank / places_, block};
    if (group == kBetween) return rail(at, index);
    const std::uint64_t round = index / (2 * half_round());
    const std::uint64_t item = index % (2 * half_round());
    if (item < half_round()) return round < grid_.loops() ? reduce(at, round, item) : ScheduleStep{};
    return round > 0 ? gather(at, round - 1, item - half_round()) : ScheduleStep{};
  }

  [[nodiscard]] std::vector<std::uint32_t> sends_to(std::uint32_t rank, std::uint32_t block,
                                                    std::uint32_t group) const override {
    const Position at{rank, rank % places_, rank / places_, block};
    if (group == kInside) return places_ > 1 ? std::vector{neighbour(at, 1)} : std::vector<std::uint32_t>{};
    return nodes_ > 1 ? std::vector{rail_neighbour(at, 1)} : std::vector<std::uint32_t>{};
  }
  [[nodiscard]] bool is_waited_for(std::uint32_t /*rank*/, std::uint32_t /*block*/,
                                   std::uint32_t /*group*/) const override {
    return true;
  }

 private:
  static constexpr std::uint32_t kInside = 0;
  static constexpr std::uint32_t kBetween = 1;

  struct Position {
    std::uint32_t rank;
    std::uint32_t place;  // in the node
    std::uint32_t node;
    std::uint32_t block;
  };
  // A node's part is divided among the nodes again; `turn` counts those in the order in which the rail ring takes them.
  struct Item {
    std::uint32_t turn;
    std::uint32_t visit;  // step of the ring in the node
    std::uint32_t slice;
  };

  // Steps in which a loop is reduced, or gathered, inside the node.
  [[nodiscard]] std::uint64_t half_round() const { return std::uint64_t{ranks()} * grid_.slices(); }
  [[nodiscard]] std::uint64_t rail_steps_per_loop() const { return std::uint64_t{2 * nodes_ - 1} * grid_.slices(); }

  [[nodiscard]] Item decode(std::uint64_t item) const {
    const auto slice = static_cast<std::uint32_t>(item % grid_.slices());
    const auto visit = static_cast<std::uint32_t>(item / grid_.slices() % places_);
    return {static_cast<std::uint32_t>(item / grid_.slices() / places_), visit, slice};
  }
  [[nodiscard]] Piece piece(const Position& at, std::uint64_t loop, std::uint32_t place, std::uint32_t share,
                            std::uint32_t slice) const {
    return grid_.piece(loop, at.block, place * nodes_ + share, slice);
  }
  [[nodiscard]] std::uint32_t neighbour(const Position& at, std::uint32_t distance) const {
    return at.node * places_ + (at.place + distance) % places_;
  }
  [[nodiscard]] std::uint32_t rail_neighbour(const Position& at, std::uint32_t distance) const {
    return (at.node + distance) % nodes_ * places_ + at.place;
  }

  [[nodiscard]] ScheduleStep reduce(const Position& at, std::uint64_t loop, std::uint64_t index) const {
    const Item item = decode(index);
    const std::uint32_t share = (at.node + 2 * nodes_ - 1 - item.turn) % nodes_;
    const Piece own = piece(at, loop, (at.place + 2 * places_ - 1 - item.visit) % places_, share, item.slice);
    if (own.bytes == 0) return {};
    const bool last = item.visit + 1 == places_;
    ScheduleStep step{.bytes = own.bytes};
    step.read(ScheduleBuffer::input, own.offset);
    if (item.visit > 0) step.receive(neighbour(at, places_ - 1));
    return last ? step.write(ScheduleBuffer::output, own.offset) : step.send(neighbour(at, 1));
  }

  // Shares in the order in which the rail finishes them.
  [[nodiscard]] ScheduleStep gather(const Position& at, std::uint64_t loop, std::uint64_t index) const {
    const Item item = decode(index);
    const std::uint32_t share = (at.node + nodes_ - item.turn) % nodes_;
    const Piece own = piece(at, loop, (at.place + places_ - item.visit) % places_, share, item.slice);
    if (own.bytes == 0 || places_ == 1) return {};
    ScheduleStep step{.bytes = own.bytes};
    if (item.visit == 0) {
      const std::uint64_t finished = std::uint64_t{nodes_ - 1 + item.turn} * grid_.slices() + item.slice + 1;
      return step.read(ScheduleBuffer::output, own.offset)
          .send(neighbour(at, 1))
          .start_after({at.block, kBetween, loop * rail_steps_per_loop() + finished});
    }
    step.receive(neighbour(at, places_ - 1)).write(ScheduleBuffer::output, own.offset);
    return item.visit + 1 < places_ ? step.send(neighbour(at, 1)) : step;
  }

  [[nodiscard]] ScheduleStep rail(const Position& at, std::uint64_t index) const {
    const std::uint64_t loop = index / rail_steps_per_loop();
    const auto slice = static_cast<std::uint32_t>(index % grid_.slices());
    const auto visit = static_cast<std::uint32_t>(index / grid_.slices() % (2 * nodes_ - 1));
    const std::uint32_t share = (at.node + 2 * nodes_ - 1 - visit) % nodes_;
    const Piece own = piece(at, loop, at.place, share, slice);
    if (own.bytes == 0 || nodes_ == 1) return {};
    ScheduleStep step{.bytes = own.bytes};
    if (visit > 0) step.receive(rail_neighbour(at, nodes_ - 1));
    if (visit + 1 < 2 * nodes_ - 1) step.send(rail_neighbour(at, 1));
    if (visit >= nodes_) return step.write(ScheduleBuffer::output, own.offset);
    const std::uint64_t reduced = (std::uint64_t{visit} * places_ + places_ - 1) * grid_.slices() + slice + 1;
    step.start_after({at.block, kInside, loop * 2 * half_round() + reduced});
    return visit + 1 == nodes_ ? step.add_to(ScheduleBuffer::output, own.offset)
                               : step.read(ScheduleBuffer::output, own.offset);
  }

  ChunkGrid grid_;
  std::uint32_t places_;  // ranks of a node
  std::uint32_t nodes_;
};

}  // namespace

std::unique_ptr<CollectiveSchedule> make_hierarchical(const ScheduleRequest& request) {
  return std::make_unique<HierarchicalSchedule>(request);
}

}  // namespace weft
