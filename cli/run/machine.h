// A system put together: GPUs, switches, routers and the wires between them, run by the engine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/config/system_config.h"
#include "gpu_model/gpu.h"
#include "network/fabric.h"
#include "network/switch.h"
#include "sim/engine.h"

namespace weft {

// Where values travel: of what type they are, and where packets leave them.
struct CarriedValues {
  NumberFormat format = NumberFormat::fp32;
  Payloads* payloads = nullptr;  // null: they do not
};

class Machine {
 public:
  // One GPU for each work; a GPU alone has no links. Throws InputError for a network that has no place for them or in
  // which they do not reach each other.
  // Routers sum for `aggregation_groups`; `seed` says which packets get lost, if any do.
  // `folded_gpus`: the GPUs of `work` stand for so many: one for all behind switches of one level, or one or those of
  // the first nodes for all of a cluster, or of the first branch for all of a fat tree; GPU g then for those of which
  // the number modulo all of `work` is g. 0: each GPU is there. A multicast with the number of one of `groups` goes to
  // its GPUs on the sender's node.
  Machine(SystemSpec system, const std::vector<GpuWork>& work, std::vector<MulticastGroup> multicast_groups = {},
          CarriedValues values = {}, std::vector<AggregationGroup> aggregation_groups = {}, std::uint64_t seed = 1,
          std::uint32_t folded_gpus = 0);

  // Runs to the end. `progress` sees the simulated time now and then. Returns false when operations are left that
  // nothing will ever finish: a deadlock.
  bool run(std::uint32_t threads, const std::function<void(Time)>& progress);

  // Runs without SystemC, as often as one likes a process, until all sleep, or GPU 0 has been quiet at a place of its
  // program which is not `from` and the others have ended what it had then: they drift apart. That place, or `from`,
  // and what the L2 of GPU 0 held there.
  // `between`: sees the time after each window, and may leave something out. `apart`: sees what had ended, and says
  // whether GPUs are too far apart for that; if so, it goes on until all are quiet at one place at a time.
  struct QuietMoment {
    ProgramPlace place;
    L2Cache l2;
    bool all_at_once = false;
  };
  QuietMoment run_until_quiet(const ProgramPlace& from, std::uint32_t threads,
                              const std::function<void(Time)>& between = {},
                              const std::function<bool(const std::vector<std::uint32_t>&)>& apart = {});
  // Called by `between` for GPUs that it gave something to do.
  void changed(std::size_t gpu) {
    if (running_ != nullptr) running_->changed(*gpus_[gpu]);
  }
  // Between two windows, so much time is left out on all GPUs: kernels that only take theirs end that much earlier.
  void leave_out(double seconds);
  // The same, until all sleep or `done`, which sees the time after each window.
  void run_until(std::uint32_t threads, const std::function<bool(Time)>& done);
  void run_until_asleep(std::uint32_t threads) {
    run_until(threads, [](Time) { return false; });
  }

  // Before the first run: all GPUs start with what this L2 holds.
  void set_l2(const L2Cache& l2);

  [[nodiscard]] std::size_t gpus() const { return gpus_.size(); }
  [[nodiscard]] const Gpu& gpu(std::size_t index) const { return *gpus_[index]; }
  [[nodiscard]] Gpu& gpu(std::size_t index) { return *gpus_[index]; }
  [[nodiscard]] const MulticastGroup& multicast_group(std::size_t index) const { return multicast_groups_[index]; }
  // Whom a multicast of a GPU reaches, itself among them.
  [[nodiscard]] std::vector<GpuId> members(std::size_t group, GpuId sender) const;
  // 0: none stands for others.
  [[nodiscard]] std::uint32_t folded_gpus() const { return folded_gpus_; }
  // Those of a node, whom its multicasts reach.
  [[nodiscard]] std::uint32_t folded_gpus_of_node() const { return gpus_of_node(folded_gpus_); }
  // Of a cluster; else 0.
  [[nodiscard]] std::uint32_t gpus_per_node() const {
    return system_.network.cluster ? system_.network.cluster->gpus_per_node : 0;
  }
  // Until the first kernel ends that only takes its time (GpuWork::kernels_timed); the longest time: none does.
  [[nodiscard]] Time timed_left() const;
  // The GPU that is simulated for it.
  [[nodiscard]] std::uint32_t stands_for(std::uint32_t gpu) const {
    return gpu % static_cast<std::uint32_t>(gpus_.size());
  }
  // Switches of `switched`, which may reduce.
  [[nodiscard]] std::size_t switches() const { return switches_.size(); }
  [[nodiscard]] const Switch& switch_at(std::size_t index) const { return *switches_[index]; }
  // None: a GPU alone.
  [[nodiscard]] const Fabric* fabric() const { return fabric_ ? &*fabric_ : nullptr; }

  // One direction of one link.
  struct Link {
    std::string name;
    const LaneStatistics* statistics;
    LinkId link;           // whose lane it is
    const TimeBins* load;  // of all lanes of that; null: not kept
  };
  [[nodiscard]] std::vector<Link> links() const;
  [[nodiscard]] Time end() const { return end_; }
  // After a run that did not end: packets that wait for each other, if that is why; else empty (standstill.h).
  [[nodiscard]] std::string deadlock() const;

 private:
  void add_to(Conductor& engine);
  void build_gpus(const std::vector<GpuWork>& work);
  void plan_around_faults(std::uint32_t gpu, LinkPlan& plan) const;
  void build_switches();
  // Of so many in all.
  [[nodiscard]] std::uint32_t gpus_of_node(std::uint32_t all) const;
  [[nodiscard]] AggregationPlan aggregation_plan() const;
  [[nodiscard]] MessageEndpointSpec message_endpoint(std::uint32_t gpu) const;
  void check_delivery() const;
  [[nodiscard]] const Chip& chip(std::uint32_t node) const;
  [[nodiscard]] const LaneStatistics& statistics(std::uint32_t node, std::uint32_t port, std::uint32_t lane) const;

  SystemSpec system_;
  std::vector<MulticastGroup> multicast_groups_;
  std::vector<AggregationGroup> aggregation_groups_;
  std::uint64_t seed_;
  CarriedValues values_;
  std::uint32_t folded_gpus_;
  std::optional<Fabric> fabric_;  // none: a GPU alone
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::vector<std::unique_ptr<Switch>> switches_;
  Time end_;
  Conductor* running_ = nullptr;  // while it does until all are quiet
};

// In the order of Machine::links().
[[nodiscard]] std::vector<std::string> link_names(const Topology& topology);

}  // namespace weft
