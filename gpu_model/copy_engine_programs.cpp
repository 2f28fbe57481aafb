#include "gpu_model/engine_phases.h"
#include "sim/error.h"

namespace weft {

namespace {

constexpr std::uint32_t kReduceWarps = 16;  // of a block of the adding kernel, as NCCL's 512 threads
constexpr std::uint32_t kTermsAtOnce = Phase::kMaxLoads;

// A queue of commands to each other rank, and a control queue that moves nothing: it launches kernels and waits for the
// end.
class CopyPlan {
 public:
  explicit CopyPlan(const EnginePlace& place)
      : place_(place),
        ranks_(static_cast<std::uint32_t>(place.group.size())),
        engine_(place.gpu->engines->copy_engine),
        start_(ClockDomain(place.gpu->clock).to_subcycles(engine_.start)),
        largest_part_((lines_of(place).count + ranks_ - 1) / ranks_),
        pieces_(static_cast<std::uint32_t>(
            std::max<std::int64_t>(1, (largest_part_ * kLineBytes + engine_.piece_bytes - 1) / engine_.piece_bytes))) {}

  [[nodiscard]] std::uint32_t peers() const { return ranks_ - 1; }
  [[nodiscard]] std::uint32_t pieces() const { return pieces_; }
  [[nodiscard]] std::uint32_t rank() const { return place_.rank; }
  [[nodiscard]] std::uint32_t flags() const { return 2 + 2 * pieces_; }
  [[nodiscard]] std::uint32_t reduce_blocks() const { return engine_.reduce_blocks; }
  [[nodiscard]] const EnginePlace& place() const { return place_; }
  [[nodiscard]] std::uint32_t lines_in_flight(std::uint32_t queues) const {
    return std::max(kEngineRound, engine_.max_outstanding_lines * engine_.engines / std::max(1U, queues));
  }
  [[nodiscard]] std::int64_t scratch() const { return place_.buffer_end / kLineBytes - peers() * largest_part_; }

  [[nodiscard]] LineRange whole() const { return lines_of(place_); }
  [[nodiscard]] LineRange piece(std::uint32_t owner, std::uint32_t piece) const {
    return whole().part(owner, ranks_).part(piece, pieces_);
  }

  // Tells the peer that this rank's memory may be written to.
  void ready(std::uint32_t queue, Phase& phase) const { phase.post(remote_post(ready_flag(), gpu(peer(queue)))); }

  // A command that copies to the same address at the peer, or to the rank's place in its scratch memory.
  void copy(std::uint32_t queue, std::uint32_t queues, const LineRange& from, std::int64_t to, std::uint32_t posted,
            Phase& phase) const {
    phase.delay = start_;
    if (from.count > 0) {
      phase.load(stream_of(from));
      phase.store(stream_of({to, from.count}, Target::remote, gpu(peer(queue))));
      set_rounds(phase, kEngineRound, std::max(1U, lines_in_flight(queues) / kEngineRound));
    }
    phase.post(remote_post(posted, gpu(peer(queue))));
  }

  // Scatter: the peer's part of what this rank has.
  bool scatter(std::uint32_t queue, std::uint32_t queues, std::uint32_t index, Phase& phase) const {
    if (index == 0) {
      ready(queue, phase);
      return true;
    }
    const std::uint32_t i = index - 1;
    if (i == pieces_) return false;
    if (i == 0) phase.wait({ready_flag(), peers()});
    const LineRange from = piece(peer(queue), i);
    const LineRange part = whole().part(peer(queue), ranks_);
    const std::int64_t slot = scratch_of(place_.rank, peer(queue)) + from.first - part.first;
    copy(queue, queues, from, slot, come_flag(i), phase);
    return true;
  }

  // Gather: this rank's part of the sum.
  bool gather(std::uint32_t queue, std::uint32_t queues, std::uint32_t index, Phase& phase) const {
    if (index == pieces_) return false;
    const LineRange from = piece(place_.rank, index);
    phase.wait({reduced_flag(index), reduce_blocks()});
    copy(queue, queues, from, from.first, gathered_flag(), phase);
    return true;
  }

  struct Transfer {
    LineRange from;
    std::int64_t to = 0;  // line
  };
  [[nodiscard]] Transfer to_all(const LineRange& range) const { return {range, range.first}; }
  [[nodiscard]] Transfer part_to(std::uint32_t queue) const {
    return {whole().part(peer(queue), ranks_), whole().part(place_.rank, ranks_).first};
  }
  // One copy to every peer, once all are ready.
  bool distribute(std::uint32_t queue, const Transfer& transfer, std::uint32_t index, Phase& phase) const {
    if (index > 0) return false;
    phase.wait({ready_flag(), peers()});
    copy(queue, peers(), transfer.from, transfer.to, gathered_flag(), phase);
    return true;
  }

  // Launches the kernel of each piece that has come from all, then waits for all sums.
  bool control(std::uint32_t index, Phase& phase) const {
    if (index > pieces_) return false;
    if (index < pieces_) {
      phase.wait({come_flag(index), peers()});
      phase.post({index, Target::launch, 0});
    } else {
      phase.wait({gathered_flag(), peers() * pieces_});
    }
    return true;
  }

  // A tile of a block of the adding kernel: as many terms as a phase loads, the sums stay in registers.
  bool add(std::uint32_t piece_index, std::uint32_t block, std::uint32_t index, Phase& phase) const {
    constexpr std::int64_t kTile = kReduceWarps * std::int64_t{kEngineRound};
    const LineRange share = piece(place_.rank, piece_index).part(block, reduce_blocks());
    const std::uint32_t steps = (ranks_ + kTermsAtOnce - 1) / kTermsAtOnce;
    const std::int64_t tile = index / steps;
    const std::int64_t tiles = std::max<std::int64_t>(1, (share.count + kTile - 1) / kTile);
    if (tile == tiles) return false;
    const LineRange range{share.first + tile * kTile, std::min(kTile, share.count - tile * kTile)};
    const std::uint32_t step = index % steps;
    const bool last = step + 1 == steps;
    if (range.count > 0) {
      const std::int64_t offset = range.first - whole().part(place_.rank, ranks_).first;
      for (std::uint32_t t = step * kTermsAtOnce; t < std::min(ranks_, (step + 1) * kTermsAtOnce); ++t) {
        phase.load(stream_of(t == place_.rank ? range : LineRange{scratch_of(t, place_.rank) + offset, range.count}));
      }
      if (last) phase.store(stream_of(range));
      set_rounds(phase, kEngineRound, kReduceWarps);
      phase.compute =
          adding_time(fp32_adds_per_cycle(*place_.gpu), kEngineRound, phase.load_count + (step > 0 ? 1U : 0U));
    }
    if (last && tile + 1 == tiles) phase.post({reduced_flag(piece_index), Target::local, 0});
    return true;
  }

  [[nodiscard]] std::uint32_t gathered_flag() const { return place_.first_flag + 1; }

 private:
  [[nodiscard]] std::uint32_t ready_flag() const { return place_.first_flag; }
  [[nodiscard]] std::uint32_t come_flag(std::uint32_t piece) const { return place_.first_flag + 2 + piece; }
  [[nodiscard]] std::uint32_t reduced_flag(std::uint32_t piece) const { return come_flag(pieces_ + piece); }
  // Each rank begins with its neighbour, so that not all write to the same one.
  [[nodiscard]] std::uint32_t peer(std::uint32_t queue) const { return (place_.rank + 1 + queue % peers()) % ranks_; }
  [[nodiscard]] GpuId gpu(std::uint32_t rank) const { return place_.group[rank]; }
  // Where rank `to` keeps what `from` sends.
  [[nodiscard]] std::int64_t scratch_of(std::uint32_t from, std::uint32_t to) const {
    return scratch() + (from < to ? from : from - 1) * largest_part_;
  }

  EnginePlace place_;
  std::uint32_t ranks_;
  CopyEngineSpec engine_;
  SubCycle start_;
  std::int64_t largest_part_;  // lines
  std::uint32_t pieces_;       // of a part
};

ScriptedKernel adding_kernel(const CopyPlan& plan, std::uint32_t piece) {
  ScriptedKernel kernel;
  kernel.threads_per_block = 32 * kReduceWarps;
  kernel.registers_per_thread = plan.place().library->registers_per_thread;
  kernel.programs =
      std::make_shared<PhaseFunction>(plan.reduce_blocks(), kReduceWarps * kEngineRound * kTermsAtOnce,
                                      [plan, piece](std::uint32_t block, std::uint32_t index, Phase& phase) {
                                        return plan.add(piece, block, index, phase);
                                      });
  return kernel;
}

// Every queue sends what `transfer` says, if the rank sends; whoever gets something from `senders` ranks waits for
// them.
using TransferOf = std::function<CopyPlan::Transfer(const CopyPlan&, std::uint32_t queue)>;
ScriptedKernel distribution(const CopyPlan& plan, bool sends, std::uint32_t senders, const TransferOf& transfer) {
  ScriptedKernel kernel;
  kernel.executor = Executor::copy_engine;
  kernel.programs = std::make_shared<PhaseFunction>(
      plan.peers(), plan.lines_in_flight(plan.peers()),
      [plan, sends, senders, transfer](std::uint32_t queue, std::uint32_t index, Phase& phase) {
        if (index == 0) {
          plan.ready(queue, phase);
          return true;
        }
        if (sends && plan.distribute(queue, transfer(plan, queue), index - 1, phase)) return true;
        if (index != (sends ? 2U : 1U) || queue != 0 || senders == 0) return false;
        phase.wait({plan.gathered_flag(), senders});
        return true;
      });
  return kernel;
}

}  // namespace

std::uint32_t copy_engine_flags(const EnginePlace& place) { return CopyPlan(place).flags(); }

ScriptedKernel copy_engine_all_reduce(const EnginePlace& place) {
  const CopyPlan plan(place);
  if (plan.scratch() < 0) throw InputError("an all-reduce by copy engines: expected memory for what all ranks send");
  const std::uint32_t queues = 2 * plan.peers();
  ScriptedKernel kernel;
  kernel.executor = Executor::copy_engine;
  kernel.programs = std::make_shared<PhaseFunction>(
      queues + 1, plan.lines_in_flight(queues), [plan, queues](std::uint32_t block, std::uint32_t index, Phase& phase) {
        if (block < plan.peers()) return plan.scatter(block, queues, index, phase);
        if (block < queues) return plan.gather(block, queues, index, phase);
        return plan.control(index, phase);
      });
  for (std::uint32_t piece = 0; piece < plan.pieces(); ++piece) kernel.launched.push_back(adding_kernel(plan, piece));
  return kernel;
}

ScriptedKernel copy_engine_all_gather(const EnginePlace& place) {
  const CopyPlan plan(place);
  return distribution(plan, true, plan.peers(), [](const CopyPlan& p, std::uint32_t /*queue*/) {
    return p.to_all(p.whole().part(p.rank(), p.peers() + 1));
  });
}

ScriptedKernel copy_engine_all_to_all(const EnginePlace& place) {
  const CopyPlan plan(place);
  return distribution(plan, true, plan.peers(),
                      [](const CopyPlan& p, std::uint32_t queue) { return p.part_to(queue); });
}

ScriptedKernel copy_engine_broadcast(const EnginePlace& place) {
  const CopyPlan plan(place);
  const bool root = plan.rank() == 0;
  return distribution(plan, root, root ? 0 : 1,
                      [](const CopyPlan& p, std::uint32_t /*queue*/) { return p.to_all(p.whole()); });
}

}  // namespace weft
