// The windowed engine. SystemC carries structure and time: each chip is an sc_module, each wire is bound to a port of
// its sender and one of its receiver, and simulated time is SystemC's. State advances in plain C++: one process moves
// all chips from t to t+window, where no message can arrive in the window in which it was sent. The result is that of
// an event-by-event simulation, for any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/units.h"
#include "sim/wire.h"

namespace weft {

class Chip {
 public:
  virtual ~Chip() = default;
  // Advances to `until`: handles everything that happens before it. Runs on any thread; touches only its own state,
  // the sending side of its outgoing wires and the receiving side of its incoming ones.
  virtual void advance(Time until) = 0;
  // The time of the next thing this chip does by itself; Time::max() when it sleeps.
  [[nodiscard]] virtual Time next_activity() const = 0;
  // A time before which it sends nothing unless it receives something; at least `now`. While all chips are silent they
  // advance in one long window. Time::max() for a chip that only ever reacts.
  [[nodiscard]] virtual Time silent_until(Time now) const { return now; }
};

struct EngineSpec {
  Time window;  // at most the smallest wire latency; > 0
  std::uint32_t threads = 1;
};

struct EngineStatistics {
  Time end;  // when the last chip fell asleep
  std::int64_t windows = 0;
};

// One elaboration a process, as SystemC has it: build one Engine, run it once.
class Engine {
 public:
  explicit Engine(const EngineSpec& spec);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Chips and wires outlive the engine. Names are SystemC names: unique, no spaces.
  void add_chip(const std::string& name, Chip& chip);
  void add_wire(WireBase& wire, const Chip& sender, const Chip& receiver);

  // Runs until every chip sleeps. `between_windows` sees the time after each window (progress); may be empty.
  EngineStatistics run(const std::function<void(Time)>& between_windows);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
