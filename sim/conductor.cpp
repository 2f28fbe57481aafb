#include "sim/conductor.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <exception>
#include <thread>

#include "sim/error.h"

namespace weft {

// Runs the chips of one window on all threads: chips are taken from a shared counter, so order varies, results do not.
class Conductor::Workers {
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

  void advance(const std::vector<Active>& chips, Time until) {
    if (helpers_.empty() || chips.size() < 2) {
      for (const Active& active : chips) active.advance(until);
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
      for (std::size_t i = taken_++; i < chips_->size(); i = taken_++) (*chips_)[i].advance(until_);
    } catch (...) {
      if (!failed_.exchange(true)) failure_ = std::current_exception();
    }
  }

  std::barrier<> gate_;
  const std::vector<Active>* chips_ = nullptr;
  Time until_;
  std::atomic<std::size_t> taken_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
  std::vector<std::jthread> helpers_;  // last: they use all of the above
};

Conductor::Conductor(const EngineSpec& spec) : spec_(spec), workers_(std::make_unique<Workers>(spec.threads)) {
  WEFT_CHECK(spec.window > Time(0) && spec.threads > 0, "an engine needs a window and a thread");
}

Conductor::~Conductor() = default;

void Conductor::add_chip(const std::string& name, Chip& chip) {
  numbers_.emplace(&chip, static_cast<std::uint32_t>(chips_.size()));
  chips_.push_back(std::make_unique<ChipEntry>(ChipEntry{name, &chip}));
}

void Conductor::add_wire(WireBase& wire, const Chip& sender, const Chip& receiver) {
  const std::uint32_t from = number_of(sender);
  const std::uint32_t to = number_of(receiver);
  chips_[from]->wires.push_back(&wire);
  chips_[to]->wires.push_back(&wire);
  wire.note_in(chips_[from]->used, to);
}

EngineStatistics Conductor::run_until(const std::function<bool(Time)>& enough) {
  begin();
  while (step()) {
    if (enough && enough(statistics_.end)) break;
  }
  return statistics_;
}

void Conductor::changed(const Chip& chip) {
  const std::uint32_t number = number_of(chip);
  own_[number] = chip.next_activity();
  expect(number, own_[number]);
}

std::uint32_t Conductor::number_of(const Chip& chip) const {
  const auto at = numbers_.find(&chip);
  WEFT_CHECK(at != numbers_.end(), "a wire's chip was not added");
  return at->second;
}

void Conductor::begin() {
  WEFT_CHECK(!chips_.empty(), "an engine needs a chip");
  for (const auto& entry : chips_) {
    entry->chip->meet(chips_.size());
    own_.push_back(entry->chip->next_activity());
  }
  inbox_.assign(chips_.size(), Time::max());
  block_due_.assign((chips_.size() + kBlock - 1) / kBlock, Time::max());
  for (std::uint32_t i = 0; i < own_.size(); ++i) expect(i, own_[i]);
}

void Conductor::expect(std::uint32_t chip, Time when) {
  Time& due = block_due_[chip / kBlock];
  due = earlier(due, when);
}

bool Conductor::step() {
  const Time next = next_wake();
  if (next == Time::max()) return false;
  run_window(later(statistics_.end, next));  // when all sleep, time jumps
  return true;
}

Time Conductor::next_wake() const {
  Time next = Time::max();
  for (const Time due : block_due_) next = earlier(next, due);
  return next;
}

// Before this time no message can be sent.
Time Conductor::first_message(Time start) const {
  Time first = Time::max();
  for (const auto& entry : chips_) {
    first = earlier(first, entry->chip->silent_until(start));
    if (first <= start) return start;
  }
  // Who is silent answers what it receives.
  for (const Time arrival : inbox_) first = earlier(first, later(start, arrival));
  return first == Time::max() ? start : first;
}

// Takes those of a block that have something to do before `end`; the others are what it is due for.
void Conductor::wake_block(std::uint32_t block, Time end) {
  Time& due = block_due_[block];
  due = Time::max();
  const auto behind = std::min(static_cast<std::uint32_t>(own_.size()), (block + 1) * kBlock);
  for (std::uint32_t i = block * kBlock; i < behind; ++i) {
    const Time next = earlier(own_[i], inbox_[i]);
    if (next >= end) {
      due = earlier(due, next);
      continue;
    }
    awake_.push_back(i);
    active_.push_back({chips_[i]->chip, &own_[i]});
  }
}

void Conductor::run_window(Time start) {
  const Time end = (spec_.long_windows ? later(start, first_message(start)) : start) + spec_.window;
  active_.clear();
  awake_.clear();
  for (std::uint32_t block = 0; block < block_due_.size(); ++block) {
    if (block_due_[block] < end) wake_block(block, end);
  }
  // Forwards and backwards in turns: who came last finds the state of the window before in the host's caches.
  if (statistics_.windows % 2 != 0) std::reverse(active_.begin(), active_.end());
  workers_->advance(active_, end);
  for (const std::uint32_t i : awake_) {
    inbox_[i] = Time::max();
    expect(i, own_[i]);
  }
  for (std::size_t at = 0; at < awake_.size(); ++at) {
    const std::uint32_t i = awake_[at];
    // Wires of thousands of chips are far from the host's caches: they come while those of others are handed over.
    if (at + kAhead < awake_.size()) {
      for (const WireBase* wire : chips_[awake_[at + kAhead]]->used) wire->prefetch();
    }
    for (WireBase* wire : chips_[i]->used) {
      Time& arrives = inbox_[wire->receiver()];
      arrives = earlier(arrives, wire->flip());
      expect(wire->receiver(), arrives);
    }
    chips_[i]->used.clear();
  }
  ++statistics_.windows;
  statistics_.end = end;
}

}  // namespace weft
