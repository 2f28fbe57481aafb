// Machines for tests: a small configuration, and what has run.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/config/run_config.h"
#include "cli/config/system_of.h"
#include "cli/run/machine.h"
#include "cli/run/programs.h"
#include "cli/run/scripts.h"

namespace weft {

// An all-reduce on H100s with few compute units.
inline RunConfig all_reduce(std::int64_t bytes, const std::string& algorithm, std::uint32_t gpus = 8,
                            const std::string& protocol = "Simple") {
  const Json document{{"system", "hgx-h100"},
                      {"gpus", gpus},
                      {"gpu", {{"compute_units", 24}}},
                      {"workload", {{"collective", "all_reduce"}, {"bytes", bytes}}},
                      {"all_reduce", {{"algorithm", algorithm}, {"protocol", protocol}}}};
  return read_run_config(document, "test.json");
}

// A configuration's machine, and that it ran to its end.
struct RanMachine {
  explicit RanMachine(const RunConfig& config) : programs(make_programs(config, notes)), scripts(config, programs) {
    std::vector<GpuWork> work;
    for (std::size_t g = 0; g < programs.size(); ++g) work.push_back(scripts.work(g));
    machine = std::make_unique<Machine>(config.system, work, scripts.multicast_groups());
    finished = machine->run(config.threads, {});
  }
  // Payload bytes by direction: "gpu3->" is what GPU 3 sends, "->gpu3" what it gets.
  [[nodiscard]] std::map<std::string, std::int64_t> bytes() const {
    std::map<std::string, std::int64_t> sums;
    for (const Machine::Link& link : machine->links()) {
      const std::string name = link.name.substr(0, link.name.find('.'));
      const std::size_t arrow = name.find("->");
      sums[name.substr(0, arrow + 2)] += link.statistics->payload_bytes;
      sums[name.substr(arrow)] += link.statistics->payload_bytes;
    }
    return sums;
  }
  std::vector<std::string> notes;
  std::vector<Program> programs;
  Scripts scripts;
  std::unique_ptr<Machine> machine;
  bool finished = false;
};

}  // namespace weft
