// The windowed engine. SystemC carries structure and time: each chip is an sc_module, each wire is bound to a port of
// its sender and one of its receiver, and simulated time is SystemC's. State advances in plain C++: one process moves
// all chips from t to t+window, where no message can arrive in the window in which it was sent. The result is that of
// an event-by-event simulation, for any number of threads.
#pragma once

#include <functional>
#include <memory>

#include "sim/conductor.h"

namespace weft {

// One elaboration a process, as SystemC has it: build one Engine, run it once.
class Engine : public Conductor {
 public:
  explicit Engine(const EngineSpec& spec);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Runs until every chip sleeps. `between_windows` sees the time after each window (progress); may be empty.
  EngineStatistics run(const std::function<void(Time)>& between_windows);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
