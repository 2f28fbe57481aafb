// Moves chips from window to window: what the engine does in a window, with or without SystemC around it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
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
  // Before the first window: so many chips take turns.
  void meet(std::size_t chips) { among_many_ = chips >= kMany; }

 protected:
  // What a chip touches will not be in the host's caches when its turn comes: it is worth the while to prefetch it.
  [[nodiscard]] bool among_many() const { return among_many_; }

 private:
  static constexpr std::size_t kMany = 160;  // 128 endpoints on a torus are not, 128 GPUs on a fat tree are
  bool among_many_ = false;
};

struct EngineSpec {
  Time window;  // at most the smallest wire latency; > 0
  std::uint32_t threads = 1;
  bool long_windows = true;  // while all are silent
};

struct EngineStatistics {
  Time end;  // when the last chip fell asleep
  std::int64_t windows = 0;
};

class Conductor {
 public:
  explicit Conductor(const EngineSpec& spec);
  ~Conductor();
  Conductor(const Conductor&) = delete;
  Conductor& operator=(const Conductor&) = delete;

  // Chips and wires outlive it. Names are SystemC names: unique, no spaces.
  void add_chip(const std::string& name, Chip& chip);
  void add_wire(WireBase& wire, const Chip& sender, const Chip& receiver);

  // Runs until every chip sleeps, or `enough`, which sees the time after each window, says so; once.
  EngineStatistics run_until(const std::function<bool(Time)>& enough);
  // Between two windows: the chip may have something to do earlier than it said.
  void changed(const Chip& chip);

 protected:
  struct ChipEntry {
    std::string name;
    Chip* chip;
    std::vector<WireBase*> wires = {};  // that begin or end at it
    std::vector<WireBase*> used = {};   // wires it sent on in this window
  };
  [[nodiscard]] const std::vector<std::unique_ptr<ChipEntry>>& chips() const { return chips_; }
  // Before the first window.
  void begin();
  // One window; false: all chips sleep.
  bool step();
  [[nodiscard]] const EngineStatistics& statistics() const { return statistics_; }

 private:
  class Workers;
  struct Active {
    Chip* chip;
    Time* own;  // its own next activity: asked for while what it touched is in the host's nearer caches

    void advance(Time until) const {
      chip->advance(until);
      *own = chip->next_activity();
    }
  };

  [[nodiscard]] std::uint32_t number_of(const Chip& chip) const;
  void expect(std::uint32_t chip, Time when);
  [[nodiscard]] Time next_wake() const;
  [[nodiscard]] Time first_message(Time start) const;
  void wake_block(std::uint32_t block, Time end);
  void run_window(Time start);

  EngineSpec spec_;
  std::vector<std::unique_ptr<ChipEntry>> chips_;  // wires point into them
  std::unordered_map<const Chip*, std::uint32_t> numbers_;
  EngineStatistics statistics_;
  std::unique_ptr<Workers> workers_;
  std::vector<Time> inbox_;  // by chip: the earliest message it has not seen
  std::vector<Time> own_;    // by chip: its own next activity
  // By kBlock chips: the earliest of both, so that windows pass over thousands of sleeping chips.
  static constexpr std::uint32_t kBlock = 64;
  static constexpr std::size_t kAhead = 4;
  std::vector<Time> block_due_;
  std::vector<std::uint32_t> awake_;
  std::vector<Active> active_;  // the same
};

}  // namespace weft
