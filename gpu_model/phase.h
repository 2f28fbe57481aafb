// What a group of warps does: phases, one after the other. One phase moves lines in rounds: load, compute, store.
// Kernels have one or two phases a block, collectives one for each piece they pass on. A phase is data, computed when
// its warps come to it: a collective's plan does not grow with its steps.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gpu_model/clock_domain.h"
#include "network/packet.h"
#include "sim/program.h"

namespace weft {

inline constexpr std::uint32_t kNoFlag = ~std::uint32_t{0};

// tree, of a store only: a contribution to the routers that sum; each block's lines are a stream of its own.
// launch, of a post only: the flag is a number among the kernels that the script may launch.
enum class Target : std::uint8_t { local, remote, multicast, tree, launch };

// Consecutive lines that a phase reads or writes.
struct LineStream {
  LineAddress first = 0;
  std::uint32_t lines = 0;
  std::uint16_t gpu = 0;  // of remote; of multicast and tree, the group
  Target target = Target::local;
  bool through_l1 = false;
  bool adds = false;                // a remote store that the other GPU's memory adds to what stands there
  bool atomic = false;              // of the own L2: read, changed and written there
  std::uint8_t first_sectors = 15;  // of the first line, as a mask; all others are whole
  std::uint8_t last_sectors = 15;
  std::uint8_t copies = 0;  // of a load by a cluster: lines of other blocks that come to its unit with each, too
  // Flags inside the data (NCCL's LL protocols). A store counts each of its lines at this flag of the GPU it goes to. A
  // load's round begins when this flag of its own GPU has counted `arrived_before` and the lines up to the round's end.
  std::uint32_t arrival_flag = kNoFlag;
  std::uint32_t arrived_before = 0;

  // Of line `line` of the stream, as a mask.
  [[nodiscard]] std::uint32_t sectors(std::uint32_t line) const {
    return (line == 0 ? first_sectors : 15U) & (line + 1 == lines ? last_sectors : 15U);
  }
  // The lines that belong to rounds before `round` of `rounds`.
  [[nodiscard]] std::uint32_t lines_before(std::uint32_t round, std::uint32_t rounds) const {
    return static_cast<std::uint32_t>(std::uint64_t{lines} * round / rounds);
  }
};

// What a sub-partition of a compute unit can do at a time: issue an instruction, and one thing on each of its pipes.
// Loads and stores go through one pipe of the unit, whose rate is that of its ports. Checking flags and packing words
// (LL, LL128) is a chain of instructions that wait for each other: it limits what the collectives of a unit move, and
// leaves its pipes to kernels beside them.
enum class Slot : std::uint8_t { issue, tensor, fp32, fp64, sfu, flags };
inline constexpr std::size_t kSlotCount = 6;

struct FlagWait {
  std::uint32_t flag = 0;
  std::uint32_t value = 0;  // wait until the flag has counted to it
};

struct FlagPost {
  std::uint32_t flag = 0;
  Target target = Target::local;
  std::uint16_t gpu = 0;
};

struct Phase {
  static constexpr std::size_t kMaxLoads = 8;  // seven sources and what stands there
  static constexpr std::size_t kMaxStores = 4;
  static constexpr std::size_t kMaxWaits = 8;  // three peers that send, three that take, two other groups
  static constexpr std::size_t kMaxPosts = 8;

  std::array<LineStream, kMaxLoads> loads{};
  std::array<LineStream, kMaxStores> stores{};
  std::uint8_t load_count = 0;
  std::uint8_t store_count = 0;
  std::uint8_t wait_count = 0;
  std::uint8_t post_count = 0;
  std::uint32_t rounds = 1;
  std::uint32_t stages = 1;  // rounds whose loads may be in flight
  SubCycle compute = 0;      // of a round: time on `busiest` of each sub-partition that it uses
  Slot busiest = Slot::fp32;
  std::array<SubCycle, kSlotCount> beside{};  // of a round: time on the others
  bool barrier = false;                       // the warps meet: a round begins when the one before is through
  SubCycle latency = 0;                 // of a round behind its time in the pipes; rounds then follow each other, too
  SubCycle fence = 0;                   // what a fence before the posts takes once the phase's stores are done
  SubCycle delay = 0;                   // from the last flag waited for to the first load: a command's start
  bool delay_from_start = false;        // delay counts from the beginning of the last phase that had one: a pace
  bool fenced = true;                   // false: the posts do not wait for the stores
  std::uint8_t late_posts = 0;          // a bit for each of `posts` that goes a way that is not simulated:
  std::uint32_t post_delay_phases = 0;  // it leaves later by so many times what the phase took,
  SubCycle post_delay = 0;              // and this
  std::uint8_t proxied_posts = 0;       // a bit for each of `posts` that a host thread sees and passes on,
  SubCycle proxy_delay = 0;             // so much later
  std::array<FlagWait, kMaxWaits> waits{};  // before the first round
  std::array<FlagPost, kMaxPosts> posts{};  // after the last round

  void load(const LineStream& stream) { loads.at(load_count++) = stream; }
  void store(const LineStream& stream) { stores.at(store_count++) = stream; }
  void wait(const FlagWait& w) { waits.at(wait_count++) = w; }
  void post(const FlagPost& p) { posts.at(post_count++) = p; }
  void post_late(const FlagPost& p) {
    late_posts = static_cast<std::uint8_t>(late_posts | 1U << post_count);
    post(p);
  }
  void post_to_proxy(const FlagPost& p) {
    proxied_posts = static_cast<std::uint8_t>(proxied_posts | 1U << post_count);
    post(p);
  }
};

// The phases of one group of warps, in order.
class PhaseCursor {
 public:
  virtual ~PhaseCursor() = default;
  // Replaces `phase`. False: there is no further one, and `phase` is as it was.
  virtual bool next(Phase& phase) = 0;
  // Goes on by itself from where this one is.
  [[nodiscard]] virtual std::unique_ptr<PhaseCursor> clone() const = 0;
};

// What the blocks of a kernel do. Each group of warps of a block goes through phases of its own.
class BlockPrograms {
 public:
  virtual ~BlockPrograms() = default;
  [[nodiscard]] virtual std::uint32_t blocks() const = 0;
  [[nodiscard]] virtual std::uint32_t groups(std::uint32_t block) const = 0;
  // Loads that the warps of a group keep outstanding.
  [[nodiscard]] virtual std::uint32_t lines_in_flight(std::uint32_t block, std::uint32_t group) const = 0;
  // No warps: the network's interface does what this group does, by DMA.
  [[nodiscard]] virtual bool by_nic(std::uint32_t /*block*/, std::uint32_t /*group*/) const { return false; }
  [[nodiscard]] virtual std::unique_ptr<PhaseCursor> start(std::uint32_t block, std::uint32_t group) const = 0;
};

// Phases written down: for what has few of them.
struct WarpScript {
  std::vector<Phase> phases;
  std::uint32_t lines_in_flight = 0;
};

class WrittenPrograms final : public BlockPrograms {
 public:
  explicit WrittenPrograms(std::vector<std::vector<WarpScript>> blocks) : blocks_(std::move(blocks)) {}

  [[nodiscard]] std::uint32_t blocks() const override { return static_cast<std::uint32_t>(blocks_.size()); }
  [[nodiscard]] std::uint32_t groups(std::uint32_t block) const override {
    return static_cast<std::uint32_t>(blocks_[block].size());
  }
  [[nodiscard]] std::uint32_t lines_in_flight(std::uint32_t block, std::uint32_t group) const override {
    return blocks_[block][group].lines_in_flight;
  }
  [[nodiscard]] std::unique_ptr<PhaseCursor> start(std::uint32_t block, std::uint32_t group) const override {
    return std::make_unique<Cursor>(blocks_[block][group].phases);
  }

 private:
  class Cursor final : public PhaseCursor {
   public:
    explicit Cursor(const std::vector<Phase>& phases) : phases_(&phases) {}
    bool next(Phase& phase) override {
      if (next_ == phases_->size()) return false;
      phase = (*phases_)[next_++];
      return true;
    }
    [[nodiscard]] std::unique_ptr<PhaseCursor> clone() const override { return std::make_unique<Cursor>(*this); }

   private:
    const std::vector<Phase>* phases_;
    std::size_t next_ = 0;
  };
  std::vector<std::vector<WarpScript>> blocks_;  // by block, the groups of warps
};

// Whose units the agents of a kernel run on. Those of engines take no place from kernels.
enum class Executor : std::uint8_t { compute_units, host_copy_engine, copy_engine, endpoint_engine };

// A kernel whose blocks follow programs of their own: a collective's part on one GPU, or a copy.
struct ScriptedKernel {
  Executor executor = Executor::compute_units;
  std::uint32_t threads_per_block = 0;
  std::uint32_t registers_per_thread = 0;
  std::uint32_t shared_memory_bytes = 0;
  SubCycle start_latency = 0;                     // from a block's start to its first phase
  std::shared_ptr<const BlockPrograms> programs;  // null: no blocks
  // Kernels that its agents launch, each once, by posts with Target::launch. The operation ends with the last of all.
  std::vector<ScriptedKernel> launched;

  [[nodiscard]] std::uint32_t blocks() const { return programs == nullptr ? 0 : programs->blocks(); }
};

}  // namespace weft
