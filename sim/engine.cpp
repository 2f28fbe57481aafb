#include "sim/engine.h"

#include <deque>
#include <exception>
#include <systemc>

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

sc_core::sc_time to_sc_time(Time t) { return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t.count())); }

}  // namespace

struct Engine::Impl : public sc_core::sc_module {
  Engine* engine;
  std::deque<WireChannel> channels;
  std::vector<std::unique_ptr<ChipModule>> modules;
  std::function<void(Time)> between_windows;
  std::exception_ptr failure;

  explicit Impl(Engine& owner) : sc_module(sc_core::sc_module_name("engine")), engine(&owner) {
    SC_HAS_PROCESS(Impl);
    SC_METHOD(conduct);  // not a thread: chips run on the ordinary stack, which sanitizers and debuggers follow
  }

  void elaborate() {
    std::unordered_map<WireBase*, WireChannel*> channel_of;
    for (const auto& entry : engine->chips()) {
      std::vector<WireChannel*> own;
      for (WireBase* wire : entry->wires) {
        WireChannel*& channel = channel_of[wire];
        if (channel == nullptr) channel = &channels.emplace_back(*wire);
        own.push_back(channel);
      }
      modules.push_back(std::make_unique<ChipModule>(sc_core::sc_module_name(entry->name.c_str()), own));
    }
  }

  // One window a call. SystemC's scheduler would lose the type of an exception: it is kept here and thrown by run().
  void conduct() {
    try {
      if (engine->step()) {
        const Time now = engine->statistics().end;
        if (between_windows) between_windows(now);
        next_trigger(to_sc_time(now) - sc_core::sc_time_stamp());
        return;
      }
    } catch (...) {
      failure = std::current_exception();
    }
    // No trigger: SystemC runs out of events and sc_start() returns.
  }
};

Engine::Engine(const EngineSpec& spec) : Conductor(spec) {
  sc_core::sc_set_time_resolution(1, sc_core::SC_FS);
  impl_ = std::make_unique<Impl>(*this);
}

Engine::~Engine() = default;

EngineStatistics Engine::run(const std::function<void(Time)>& between_windows) {
  begin();
  impl_->between_windows = between_windows;
  impl_->elaborate();
  sc_core::sc_start();
  if (impl_->failure != nullptr) std::rethrow_exception(impl_->failure);
  return statistics();
}

}  // namespace weft
