// A collective as data: what each rank does, thread block by thread block, step by step. Algorithms generate it, the
// checker proves that it computes the collective, gpu_model/ turns its steps into phases of warps.
//
// Steps are computed when they are asked for and not stored: a ring of 4096 ranks has 33 million of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "network/ring_orders.h"
#include "sim/program.h"

namespace weft {

enum class ScheduleBuffer : std::uint8_t { none, input, output, scratch };

// One step moves one piece. Its value is the sum of what `receives_from` sent, of the sources if there are any, and of
// what stands at the destination if it accumulates. It is written to the destination, if there is one, and goes to all
// of `sends_to`. Offsets and sizes in bytes. A step that moves a piece within one rank only copies source to
// destination; where both are the same memory (a collective in place) that copy is nothing.
struct ScheduleStep {
  static constexpr std::size_t kMaxPeers = 3;  // three children: NCCL_MAX_TREE_ARITY
  static constexpr std::size_t kMaxAfter = 2;
  static constexpr std::uint32_t kMaxSources = 7;  // seven peers of a node of eight

  // The step starts when `steps` steps of another group of warps of the same rank are done.
  struct After {
    std::uint32_t block = 0;
    std::uint32_t group = 0;
    std::uint64_t steps = 0;  // idle ones count
  };

  std::int64_t bytes = 0;  // 0: nothing moves, only the order counts (a barrier's token)
  std::int64_t source_offset = 0;
  std::int64_t destination_offset = 0;
  std::int64_t source_stride = 0;  // from one of `source_count` sources to the next, in the same buffer
  std::uint32_t source_count = 1;
  ScheduleBuffer source = ScheduleBuffer::none;
  ScheduleBuffer destination = ScheduleBuffer::none;
  bool accumulates = false;
  std::uint8_t receive_count = 0;
  std::uint8_t send_count = 0;
  std::uint8_t after_count = 0;
  std::uint8_t unawaited = 0;     // a bit for each of `receives_from` whose piece is taken as if it had come
  std::uint32_t hops_beyond = 0;  // others learn that the step is done by a way of so many messages
  std::array<std::uint32_t, kMaxPeers> receives_from{};  // ranks of the group
  std::array<std::uint32_t, kMaxPeers> sends_to{};
  std::array<After, kMaxAfter> after{};

  // Nothing to do: the place of a piece that a message too short for all of them does not have. Both ends of a
  // connection leave it out.
  [[nodiscard]] bool idle() const { return bytes == 0 && receive_count == 0 && send_count == 0 && after_count == 0; }

  ScheduleStep& read(ScheduleBuffer buffer, std::int64_t offset) {
    source = buffer;
    source_offset = offset;
    return *this;
  }
  ScheduleStep& write(ScheduleBuffer buffer, std::int64_t offset) {
    destination = buffer;
    destination_offset = offset;
    return *this;
  }
  ScheduleStep& add_to(ScheduleBuffer buffer, std::int64_t offset) {
    accumulates = true;
    return write(buffer, offset);
  }
  ScheduleStep& receive(std::uint32_t rank) {
    receives_from.at(receive_count++) = rank;
    return *this;
  }
  ScheduleStep& receive_unawaited(std::uint32_t rank) {
    unawaited = static_cast<std::uint8_t>(unawaited | 1U << receive_count);
    return receive(rank);
  }
  ScheduleStep& send(std::uint32_t rank) {
    sends_to.at(send_count++) = rank;
    return *this;
  }
  ScheduleStep& start_after(const After& earlier) {
    after.at(after_count++) = earlier;
    return *this;
  }
};

// A connection is (from, to, channel): what is sent on it is received in the same order, piece by piece, each of the
// same size on both ends. At each end one group of warps uses it.
class CollectiveSchedule {
 public:
  virtual ~CollectiveSchedule() = default;

  [[nodiscard]] virtual std::uint32_t ranks() const = 0;
  // Buffers of one rank.
  [[nodiscard]] virtual std::int64_t input_bytes(std::uint32_t rank) const = 0;
  [[nodiscard]] virtual std::int64_t output_bytes(std::uint32_t rank) const = 0;
  [[nodiscard]] virtual std::int64_t scratch_bytes(std::uint32_t /*rank*/) const { return 0; }
  // Works only where one buffer is a part of the other, and uses only the larger one: an all_gather's output, which
  // holds the rank's part from the beginning; a reduce_scatter's input, which holds it at the end; either of an
  // all_reduce, called output. A run whose buffers lie apart copies first, or last.
  [[nodiscard]] virtual bool in_place() const { return false; }

  // Thread blocks of a rank, the groups of warps of a block that work at the same time, each through its own steps in
  // order, and the channel whose connections a group uses.
  [[nodiscard]] virtual std::uint32_t blocks(std::uint32_t rank) const = 0;
  [[nodiscard]] virtual std::uint32_t channel(std::uint32_t /*rank*/, std::uint32_t block,
                                              std::uint32_t /*group*/) const {
    return block;
  }
  [[nodiscard]] virtual std::uint32_t groups(std::uint32_t rank, std::uint32_t block) const = 0;
  [[nodiscard]] virtual std::uint64_t steps(std::uint32_t rank, std::uint32_t block, std::uint32_t group) const = 0;
  // In constant time.
  [[nodiscard]] virtual ScheduleStep step(std::uint32_t rank, std::uint32_t block, std::uint32_t group,
                                          std::uint64_t index) const = 0;
  // The first step from `index` on that may have something to do: for who would go through long runs of idle ones.
  [[nodiscard]] virtual std::uint64_t skip_idle(std::uint32_t /*rank*/, std::uint32_t /*block*/,
                                                std::uint32_t /*group*/, std::uint64_t index) const {
    return index;
  }

  // What can be known of a group of warps without going through its steps, for buffers and flags: the ranks it sends
  // to, and whether others of its rank wait for it. May name more than a short message needs. A schedule that does not
  // say goes through all steps.
  [[nodiscard]] virtual std::vector<std::uint32_t> sends_to(std::uint32_t rank, std::uint32_t block,
                                                            std::uint32_t group) const;
  [[nodiscard]] virtual bool is_waited_for(std::uint32_t rank, std::uint32_t block, std::uint32_t group) const;

  // Names a step in messages.
  [[nodiscard]] virtual std::string describe(std::uint32_t rank, std::uint32_t block, std::uint32_t group,
                                             std::uint64_t index) const;
};

// How a ring cuts a message that all ranks have. Loops over it, in each a chunk for every (channel, part): the chunks
// of a channel side by side (by_loop), or those of a part (by_part). Since chunks are rounded up, this decides whether
// a short message leaves the last channels without work, or all channels without the last parts. Or each channel has a
// share of its own, with loops and chunks of its own (by_channel).
enum class ChunkOrder { by_loop, by_part, by_channel };

// An all-reduce by double_binary_tree: pieces get smaller until there are enough of them, as NCCL's do
// (src/enqueue.cc): with Simple for the depth of the tree, with LL128 for nodes and the ranks of one. With LL they stay
// as they are.
enum class TreePieces { whole, by_depth, by_nodes };

// What a generator is asked for.
struct ScheduleRequest {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t bytes = 0;          // of one rank's input, as CollectiveDemand::bytes; whole elements
  std::int64_t element_bytes = 4;  // 1, 2, 4 or 8: pieces are whole elements
  std::uint32_t ranks = 0;
  std::uint32_t root = 0;                             // broadcast, reduce, gather, scatter; who sends in send_receive
  std::uint32_t distance = 1;                         // shift: as CollectiveDemand::distance, below ranks
  std::optional<std::uint32_t> first = std::nullopt;  // shift: as CollectiveDemand::first, below ranks
  std::uint32_t channels = 1;                         // thread blocks; the schedule says how many it uses
  std::uint32_t channels_to_peer = 1;  // all_to_all, gather, scatter: thread blocks that share what goes to one peer
  std::int64_t piece_bytes = 1 << 20;  // the most that one step carries: a slot of a connection's buffer
  std::uint32_t pieces_per_chunk = 2;  // pieces in which a chunk is passed on (NCCL's slices); a ring needs
                                       // connections with more slots than these
  std::int64_t chunk_unit = 4096;      // ring: chunks, or shares of channels, are multiples of it but for the last
  ChunkOrder chunk_order = ChunkOrder::by_loop;  // ring
  TreePieces tree_pieces = TreePieces::whole;
  std::uint32_t ranks_per_node = 0;  // hierarchical, double_binary_tree: ranks 0 ... this - 1 are the first node
  // double_binary_tree, of nodes with different numbers of ranks: the first one of each; else empty.
  std::vector<std::uint32_t> first_ranks = {};
  bool alike_trees = false;           // double_binary_tree: where there are any (binary_tree.h); computes nothing
  bool alternate_directions = false;  // ring: odd channels go round the other way; NCCL's do not
  // Ring: of as many ranks, by channel; null: by rank on all channels.
  std::shared_ptr<const RingOrders> ring_orders = nullptr;
};

}  // namespace weft
