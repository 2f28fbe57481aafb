// A system put together: GPUs, switches and the wires between them, run by the engine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/system_config.h"
#include "gpu_model/gpu.h"
#include "network/switch.h"
#include "sim/engine.h"

namespace weft {

class Machine {
 public:
  // One GPU for each work; a GPU alone has no links.
  Machine(const SystemSpec& system, const std::vector<GpuWork>& work);

  // Runs to the end. `progress` sees the simulated time now and then. Returns false when operations are left that
  // nothing will ever finish: a deadlock.
  bool run(std::uint32_t threads, const std::function<void(Time)>& progress);

  [[nodiscard]] std::size_t gpus() const { return gpus_.size(); }
  [[nodiscard]] const Gpu& gpu(std::size_t index) const { return *gpus_[index]; }
  [[nodiscard]] std::size_t switches() const { return switches_.size(); }
  [[nodiscard]] const Switch& switch_at(std::size_t index) const { return *switches_[index]; }

  // One direction of one link.
  struct Link {
    std::string name;
    const LaneStatistics* statistics;
  };
  [[nodiscard]] std::vector<Link> links() const;
  [[nodiscard]] Time end() const { return end_; }

 private:
  struct Connection {
    std::string name;
    std::unique_ptr<LinkWires> wires;
    const Chip* sender = nullptr;
    const Chip* receiver = nullptr;
  };
  LinkWires* connect(const std::string& name);
  void build_switched(const std::vector<GpuWork>& work);
  void build_fully_connected(const std::vector<GpuWork>& work);

  SystemSpec system_;
  std::vector<Connection> connections_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::vector<std::unique_ptr<Switch>> switches_;
  Time end_;
};

}  // namespace weft
