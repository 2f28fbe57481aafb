#include "sim/engine.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <exception>
#include <systemc>
#include <thread>

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

using WirePort = sc_core::sc_port<WireChannel>;

// A chip as SystemC sees it: a module with a port for each wire. Its process is the engine's.
class ChipModule : public sc_core::sc_module {
 public:
  ChipModule(const sc_core::sc_module_name& name, Chip& chip, const std::vector<WireChannel*>& channels)
      : sc_module(name), chip_(&chip) {
    for (WireChannel* channel : channels) {
      ports_.push_back(std::make_unique<WirePort>(sc_core::sc_gen_unique_name("wire")));
      ports_.back()->bind(*channel);
    }
  }
  [[nodiscard]] Chip& chip() const { return *chip_; }

 private:
  Chip* chip_;
  std::vector<std::unique_ptr<WirePort>> ports_;
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
  };
  struct WireEntry {
    WireBase* wire;
    std::size_t receiver;
  };

  EngineSpec spec;
  std::vector<ChipEntry> chips;
  std::vector<WireEntry> wires;
  std::vector<std::unique_ptr<WireChannel>> channels;
  std::vector<std::unique_ptr<ChipModule>> modules;
  std::function<void(Time)> between_windows;
  EngineStatistics statistics;
  std::exception_ptr failure;

  Workers workers;
  std::vector<Time> inbox;  // by chip: the earliest message it has not seen
  std::vector<Time> wake;   // by chip: the earlier of its own next activity and its inbox
  std::vector<Chip*> active;
  Time now;

  explicit Impl(const EngineSpec& engine_spec)
      : sc_module(sc_core::sc_module_name("engine")), spec(engine_spec), workers(engine_spec.threads) {
    SC_HAS_PROCESS(Impl);
    SC_METHOD(conduct);  // not a thread: chips run on the ordinary stack, which sanitizers and debuggers follow
  }

  [[nodiscard]] std::size_t index_of(const Chip& chip) const {
    const auto at = std::find_if(chips.begin(), chips.end(), [&](const ChipEntry& e) { return e.chip == &chip; });
    WEFT_CHECK(at != chips.end(), "a wire's chip was not added");
    return static_cast<std::size_t>(at - chips.begin());
  }

  void elaborate() {
    for (const ChipEntry& entry : chips) {
      modules.push_back(
          std::make_unique<ChipModule>(sc_core::sc_module_name(entry.name.c_str()), *entry.chip, entry.channels));
    }
    inbox.assign(chips.size(), Time::max());
    wake.assign(chips.size(), Time::max());
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

  Time next_wake() {
    for (std::size_t i = 0; i < chips.size(); ++i) wake[i] = std::min(inbox[i], chips[i].chip->next_activity());
    return *std::min_element(wake.begin(), wake.end());
  }

  void run_window(Time start) {
    Time first_message = Time::max();
    for (const ChipEntry& entry : chips) first_message = std::min(first_message, entry.chip->silent_until(start));
    // Who is silent answers what it receives.
    for (const Time arrival : inbox) first_message = std::min(first_message, std::max(start, arrival));
    const Time end = std::max(start, first_message == Time::max() ? start : first_message) + spec.window;
    active.clear();
    for (std::size_t i = 0; i < chips.size(); ++i) {
      if (wake[i] < end) active.push_back(&modules[i]->chip());
    }
    workers.advance(active, end);
    std::fill(inbox.begin(), inbox.end(), Time::max());
    for (const WireEntry& entry : wires) {
      inbox[entry.receiver] = std::min(inbox[entry.receiver], entry.wire->flip());
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

void Engine::add_chip(const std::string& name, Chip& chip) { impl_->chips.push_back({name, &chip, {}}); }

void Engine::add_wire(WireBase& wire, const Chip& sender, const Chip& receiver) {
  WireChannel* channel = impl_->channels.emplace_back(std::make_unique<WireChannel>(wire)).get();
  impl_->chips[impl_->index_of(sender)].channels.push_back(channel);
  impl_->chips[impl_->index_of(receiver)].channels.push_back(channel);
  impl_->wires.push_back({&wire, impl_->index_of(receiver)});
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
