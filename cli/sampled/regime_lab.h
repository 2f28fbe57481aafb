// Simulates stretches of a program in detail, each from a quiet moment on.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "cli/sampled/like_kernels.h"
#include "cli/sampled/pace_beside.h"
#include "cli/sampled/regime.h"
#include "cli/sampled/shift_flows.h"
#include "cli/sampled/symmetry.h"
#include "gpu_model/kernel_signature.h"

namespace weft {

class KernelPaces;

// By how much times at a coarser grain scatter around those in cycle, one standard deviation (docs/validation.md).
inline constexpr double kGrainScatter = 0.01;

class RegimeLab {
 public:
  // All outlive it. `scripts`: null, collectives end at once. `quiet`: of the same programs without communication,
  // which have run there.
  RegimeLab(const RunConfig& config, const std::vector<Program>& programs, const Scripts* scripts,
            const RegimeLab* quiet = nullptr);
  ~RegimeLab();
  RegimeLab(const RegimeLab&) = delete;
  RegimeLab& operator=(const RegimeLab&) = delete;

  // The kernel by itself on an idle GPU, on the L2 that the operations before it leave. Waves that repeat are left out.
  [[nodiscard]] Regime kernel(OpId op);
  // With a second sample: nothing is left out, and nothing of the kernel before is under way.
  [[nodiscard]] Regime kernel_twice(OpId op);
  // From `state` to the next quiet moment of all GPUs; what GPU 0 did. `by_itself`: that is the end of its first
  // operation, a collective. `apart`: how far they are before (Regime).
  [[nodiscard]] Regime company(const HostState& state, bool by_itself, const std::vector<SubCycle>& apart = {});
  // A collective at once, with nothing beside it, on an L2 without its message.
  [[nodiscard]] Regime collective_by_itself(OpId op);
  // Of its message, on all GPUs that are simulated for it; and memory lines in one of the model, where it is by itself.
  [[nodiscard]] double bytes_simulated(OpId collective);
  [[nodiscard]] std::uint32_t grain_by_itself(OpId collective) { return grain_of(collective); }
  // How it moves its data: what of it matters to kernels beside it, but for how fast.
  [[nodiscard]] std::string shape_of(OpId collective) const;

  [[nodiscard]] std::int64_t memory_transactions() const { return memory_transactions_; }
  [[nodiscard]] std::int64_t packets() const { return packets_; }
  // Simulated time, in detail.
  [[nodiscard]] Time simulated() const { return simulated_; }
  // Why not one GPU stands for all, in words; empty: it does. None: nothing was asked for that needs more.
  [[nodiscard]] std::optional<std::string> why_not_folded() const;
  // Those that stand for all; and whether they do so by trees in which all nodes are alike.
  [[nodiscard]] std::uint32_t standing() const;
  [[nodiscard]] bool has_alike_trees() const;
  // Of an uneven collective (repeated_steps.h) that another one follows, where not one GPU stands for all: whoever is
  // through goes on with that.
  [[nodiscard]] bool next_begins_apart(OpId op);
  // Whether some collectives end at other times on other GPUs.
  [[nodiscard]] bool has_uneven() const { return std::ranges::any_of(uneven_, std::identity()); }
  // Whether kernels beside collectives, and long shifts, only took their time (regime_ring.cpp).
  [[nodiscard]] bool timed_kernels() const { return round_rings_.value_or(false); }

 private:
  // regime_kernels.cpp: kernels by themselves.
  Regime simulated(OpId kernel);
  Regime observed(const Gpu& gpu, OpId kernel, const GpuProgress& moved, double variance);
  Regime kernel_on(L2Cache l2, OpId op, bool skip_waves);
  void count(const Machine& machine);
  L2Cache l2_before(OpId op);
  // To have it there, and go on with it.
  void bring_l2_before(OpId op);
  [[nodiscard]] L2Cache::Touched told_of(const KernelProgram& kernel, double bytes);
  void keep_l2(const L2Cache& l2, std::uint32_t next);
  void keep_before_first_collective(OpId op);
  [[nodiscard]] GpuWork quiet_work();
  [[nodiscard]] HostState state_before(std::uint32_t first) const;
  void start_flow_at(OpId op);
  GpuProgress flow_to_end_of(OpId op);
  // The system and the collectives, told at one grain.
  struct Grain {
    RunConfig config;
    SystemSpec system;  // config has the real one, by which collectives are planned
    std::optional<FoldedMachine> folded;
    std::optional<Scripts> each;  // of all GPUs, where none stands for others
  };
  [[nodiscard]] RunConfig config_at(std::uint32_t grain) const;
  [[nodiscard]] SystemSpec system_at(std::uint32_t grain) const;
  Grain& at_grain(std::uint32_t grain);
  [[nodiscard]] std::uint32_t grain_of(OpId collective);
  // A network in which messages pass routers of other GPUs.
  [[nodiscard]] bool flows_meet() const;
  // Of a machine in which all collectives from an operation on may run, and nothing else does but take its time.
  [[nodiscard]] std::uint32_t grain_from(std::uint32_t op);
  [[nodiscard]] bool is_uneven_row(std::uint32_t op) const;
  // For a collective by itself: by fewer GPUs than the whole program needs. None: not possible.
  [[nodiscard]] std::unique_ptr<Grain> folded_alone(OpId collective, std::uint32_t grain);
  [[nodiscard]] std::unique_ptr<Machine> quiet_machine(const HostState& state);
  [[nodiscard]] std::unique_ptr<Machine> machine_from(const std::vector<HostState>& states, Grain& at,
                                                      bool round_rings);
  // What a machine of such lines says of links, switches and HBM, as the real one would.
  void tell_real_network(const Machine& machine, std::uint32_t grain, Regime& regime) const;
  // regime_ring.cpp: where some GPUs stand for all, and programs go round rings. By themselves: kernels, kernels beside
  // collectives, shifts. And a stretch in which those of long messages only take their time.
  [[nodiscard]] bool goes_round_rings();
  const Regime& alone(OpId op);
  const PaceBeside& beside(OpId kernel, OpId collective);
  [[nodiscard]] OpId shift_behind(OpId op) const;
  const ShiftByItself& shift(OpId op, std::uint32_t grain);
  [[nodiscard]] KernelPaces paces_of(Machine& machine);
  void add_timed(const Machine& machine, const KernelPaces& paces, const std::vector<bool>& shifts, std::uint32_t first,
                 std::uint32_t grain, Regime& regime);
  [[nodiscard]] Regime long_ring(const HostState& state, std::uint32_t grain);
  [[nodiscard]] L2Cache at_grain(const L2Cache& l2, std::uint32_t grain, std::uint32_t wanted) const;

  const RunConfig* config_;
  const std::vector<Program>* programs_;
  const Scripts* scripts_;
  const RegimeLab* quiet_;
  std::shared_ptr<LikeKernels> like_;      // with those of `quiet_`
  std::uint32_t first_collective_;         // operation; without one, their number
  std::map<std::uint32_t, L2Cache> kept_;  // as left before operations just before the first collective
  std::vector<bool> uneven_;               // by operation
  std::map<std::uint32_t, Grain> grains_;
  ScriptedKernel nothing_;
  std::optional<Scripts> copies_;  // where collectives end at once
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
  std::optional<L2Cache> l2_;  // as left before operation l2_at_
  std::uint32_t l2_at_ = kNowhere;
  std::optional<L2Cache> asked_;  // what a kernel would do to it
  std::unique_ptr<Gpu> flow_;     // runs kernels by themselves, one after the other
  HostState flow_state_;
  std::uint32_t flow_next_ = 0;              // the operation after those that have run
  GpuProgress flow_done_;                    // by those
  std::map<KernelSignature, Regime> alone_;  // of kernels that only take their time
  std::map<std::pair<KernelSignature, Message>, PaceBeside> beside_;
  std::map<std::pair<std::uint32_t, Message>, ShiftByItself> shifts_;  // by grain
  std::optional<bool> round_rings_;                                    // once it was asked for
  std::int64_t memory_transactions_ = 0, packets_ = 0;
  Time simulated_;
};

}  // namespace weft
