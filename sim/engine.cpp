#include "sim/engine.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <deque>
#include <exception>
#include <systemc>
#include <thread>
#include <unordered_map>

#include "sim/error.h"

namespace weft {

namespace {

// A wire as SystemC sees it: the interface that the ports of two modules are bound to.
class WireChannel : public sc_core::sc_interface {
 public:
  explicit WireChannel(WireBase& wire) : wire_(&wire) {}
  [[nodiscard]] WireBase& wire() const { return *wire_; }

 private:
  WireBase* wire_;
};

// A chip as SystemC sees it: a module with one port to which all of its wires are bound (a port a wire takes half a
// kilobyte, and networks have hundreds of thousands). Its process is the engine's.
class ChipModule : public sc_core::sc_module {
 public:
  ChipModule(const sc_core::sc_module_name& name, const std::vector<WireChannel*>& channels)
      : sc_module(name), wires_("wires") {
    for (WireChannel* channel : channels) wires_.bind(*channel);
  }

 private:
  sc_core::sc_port<WireChannel, 0, sc_core::SC_ZERO_OR_MORE_BOUND> wires_;
};

// Runs the chips of one window on all threads: chips are taken from a shared counter, so order varies, results do not.
class Workers {
 public:
  explicit Workers(std::uint32_t threads) : gate_(static_cast<std::ptrdiff_t>(threads)) {
    for (std::uint32_t i = 1; i < threads; ++i) helpers_.emplace_back([this] { helper(); });
  }
  ~Workers() {
    stop_ = true;
    if (!helpers_.empty()) gate_.arrive_and_wait();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void advance(const std::vector<Chip*>& chips, Time until) {
    if (helpers_.empty() || chips.size() < 2) {
      for (Chip* chip : chips) chip->advance(until);
      return;
    }
    chips_ = &chips;
    until_ = until;
    taken_ = 0;
    gate_.arrive_and_wait();
    work();
    gate_.arrive_and_wait();
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  void helper() {
    for (;;) {
      gate_.arrive_and_wait();
      if (stop_) return;
      work();
      gate_.arrive_and_wait();
    }
  }
  void work() {
    try {
      for (std::size_t i = taken_++; i < chips_->size(); i = taken_++) (*chips_)[i]->advance(until_);
    } catch (...) {
      if (!failed_.exchange(true)) failure_ = std::current_exception();
    }
  }

  std::barrier<> gate_;
  const std::vector<Chip*>* chips_ = nullptr;
  Time until_;
  std::atomic<std::size_t> taken_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
  std::vector<std::jthread> helpers_;  // last: they use all of the above
};

sc_core::sc_time to_sc_time(Time t) { return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t.count())); }

}  // namespace

struct Engine::Impl : public sc_core::sc_module {
  struct ChipEntry {
    std::string name;
    Chip* chip;
    std::vector<WireChannel*> channels;
    std::vector<WireBase*> used = {};  // wires it sent on in this window
  };
  EngineSpec spec;
  std::deque<ChipEntry> chips;  // wires point into them
  std::unordered_map<const Chip*, std::uint32_t> numbers;
  std::deque<WireChannel> channels;
  std::vector<std::unique_ptr<ChipModule>> modules;
  std::function<void(Time)> between_windows;
  EngineStatistics statistics;
  std::exception_ptr failure;

  Workers workers;
  std::vector<Time> inbox;  // by chip: the earliest message it has not seen
  std::vector<Time> own;    // by chip: its own next activity
  // By kBlock chips: the earliest of both, so that windows pass over thousands of sleeping chips.
  static constexpr std::uint32_t kBlock = 64;
  std::vector<Time> block_due;
  std::vector<std::uint32_t> awake;
  std::vector<Chip*> active;
  Time now;

  explicit Impl(const EngineSpec& engine_spec)
      : sc_module(sc_core::sc_module_name("engine")), spec(engine_spec), workers(engine_spec.threads) {
    SC_HAS_PROCESS(Impl);
    SC_METHOD(conduct);  // not a thread: chips run on the ordinary stack, which sanitizers and debuggers follow
  }

  [[nodiscard]] std::uint32_t number_of(const Chip& chip) const {
    const auto at = numbers.find(&chip);
    WEFT_CHECK(at != numbers.end(), "a wire's chip was not added");
    return at->second;
  }

  void elaborate() {
    for (const ChipEntry& entry : chips) {
      modules.push_back(std::make_unique<ChipModule>(sc_core::sc_module_name(entry.name.c_str()), entry.channels));
      own.push_back(entry.chip->next_activity());
    }
    inbox.assign(chips.size(), Time::max());
    block_due.assign((chips.size() + kBlock - 1) / kBlock, Time::max());
    for (std::uint32_t i = 0; i < own.size(); ++i) expect(i, own[i]);
  }

  void expect(std::uint32_t chip, Time when) {
    Time& due = block_due[chip / kBlock];
    due = std::min(due, when);
  }

  // One window a call. SystemC's scheduler would lose the type of an exception: it is kept here and thrown by run().
  void conduct() {
    try {
      if (const Time next = next_wake(); next != Time::max()) {
        run_window(std::max(now, next));  // when all sleep, time jumps
        next_trigger(to_sc_time(now) - sc_core::sc_time_stamp());
        return;
      }
    } catch (...) {
      failure = std::current_exception();
    }
    // No trigger: SystemC runs out of events and sc_start() returns.
  }

  [[nodiscard]] Time next_wake() const {
    Time next = Time::max();
    for (const Time due : block_due) next = std::min(next, due);
    return next;
  }

  // Before this time no message can be sent.
  [[nodiscard]] Time first_message(Time start) const {
    Time first = Time::max();
    for (const ChipEntry& entry : chips) {
      first = std::min(first, entry.chip->silent_until(start));
      if (first <= start) return start;
    }
    // Who is silent answers what it receives.
    for (const Time arrival : inbox) first = std::min(first, std::max(start, arrival));
    return first == Time::max() ? start : first;
  }

  // Takes those of a block that have something to do before `end`; the others are what it is due for.
  void wake_block(std::uint32_t block, Time end) {
    Time& due = block_due[block];
    due = Time::max();
    const auto behind = std::min(static_cast<std::uint32_t>(own.size()), (block + 1) * kBlock);
    for (std::uint32_t i = block * kBlock; i < behind; ++i) {
      const Time next = std::min(own[i], inbox[i]);
      if (next >= end) {
        due = std::min(due, next);
        continue;
      }
      awake.push_back(i);
      active.push_back(chips[i].chip);
    }
  }

  void run_window(Time start) {
    const Time end = std::max(start, first_message(start)) + spec.window;
    active.clear();
    awake.clear();
    for (std::uint32_t block = 0; block < block_due.size(); ++block) {
      if (block_due[block] < end) wake_block(block, end);
    }
    workers.advance(active, end);
    for (const std::uint32_t i : awake) {
      inbox[i] = Time::max();
      own[i] = chips[i].chip->next_activity();
      expect(i, own[i]);
    }
    for (const std::uint32_t i : awake) {
      for (WireBase* wire : chips[i].used) {
        Time& arrives = inbox[wire->receiver()];
        arrives = std::min(arrives, wire->flip());
        expect(wire->receiver(), arrives);
      }
      chips[i].used.clear();
    }
    ++statistics.windows;
    statistics.end = now = end;
    if (between_windows) between_windows(end);
  }
};

Engine::Engine(const EngineSpec& spec) {
  WEFT_CHECK(spec.window > Time(0) && spec.threads > 0, "an engine needs a window and a thread");
  sc_core::sc_set_time_resolution(1, sc_core::SC_FS);
  impl_ = std::make_unique<Impl>(spec);
}

Engine::~Engine() = default;

void Engine::add_chip(const std::string& name, Chip& chip) {
  impl_->numbers.emplace(&chip, static_cast<std::uint32_t>(impl_->chips.size()));
  impl_->chips.push_back({name, &chip, {}});
}

void Engine::add_wire(WireBase& wire, const Chip& sender, const Chip& receiver) {
  const std::uint32_t from = impl_->number_of(sender);
  const std::uint32_t to = impl_->number_of(receiver);
  WireChannel* channel = &impl_->channels.emplace_back(wire);
  impl_->chips[from].channels.push_back(channel);
  impl_->chips[to].channels.push_back(channel);
  wire.note_in(impl_->chips[from].used, to);
}

EngineStatistics Engine::run(const std::function<void(Time)>& between_windows) {
  WEFT_CHECK(!impl_->chips.empty(), "an engine needs a chip");
  impl_->between_windows = between_windows;
  impl_->elaborate();
  sc_core::sc_start();
  if (impl_->failure != nullptr) std::rethrow_exception(impl_->failure);
  return impl_->statistics;
}

}  // namespace weft
