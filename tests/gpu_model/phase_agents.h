// Agents of block programs that run without time, phase by phase: whoever can goes on.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "gpu_model/phase.h"

namespace weft {

class PhaseAgents {
 public:
  virtual ~PhaseAgents() = default;
  // In one order of agents or the other. False: some wait for ever.
  bool run(bool backwards) {
    if (backwards) std::reverse(agents_.begin(), agents_.end());
    for (bool went = true; went;) {
      went = false;
      for (Agent& agent : agents_) {
        while (!agent.done && may_start(agent)) {
          execute(agent.gpu, agent.phase);
          advance(agent);
          went = true;
        }
      }
    }
    return std::all_of(agents_.begin(), agents_.end(), [](const Agent& agent) { return agent.done; });
  }

 protected:
  // All agents of what a GPU does.
  void add(std::uint32_t gpu, std::shared_ptr<const BlockPrograms> programs) {
    for (std::uint32_t block = 0; block < programs->blocks(); ++block) {
      for (std::uint32_t group = 0; group < programs->groups(block); ++group) {
        agents_.push_back({gpu, programs->start(block, group), {}, false});
        advance(agents_.back());
      }
    }
    programs_.push_back(std::move(programs));
  }
  virtual void execute(std::uint32_t gpu, const Phase& phase) = 0;

  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint64_t> memory_;  // by GPU and line
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> flags_;  // by GPU and flag

 private:
  struct Agent {
    std::uint32_t gpu;
    std::unique_ptr<PhaseCursor> cursor;
    Phase phase;
    bool done;
  };
  static void advance(Agent& agent) {
    agent.phase = Phase{};
    agent.done = !agent.cursor->next(agent.phase);
  }
  bool may_start(const Agent& agent) {
    for (std::size_t w = 0; w < agent.phase.wait_count; ++w) {
      if (flags_[{agent.gpu, agent.phase.waits[w].flag}] < agent.phase.waits[w].value) return false;
    }
    return true;
  }

  std::vector<std::shared_ptr<const BlockPrograms>> programs_;
  std::vector<Agent> agents_;
};

}  // namespace weft
